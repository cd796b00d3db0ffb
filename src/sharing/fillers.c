// SPDX-License-Identifier: GPL-2.0-only
/* Takes and frees handles without use. imports.c and gem_handles.c make the handles between them.
 */
#include "sharing/fillers.h"

#include <errno.h>
#include <stdlib.h>

#include "amdgpu_plugin_util.h"
#include "criu/log.h"
#include "kernel/kfd.h"

static int add(struct fillers *fillers)
{
	uint64_t handle, wanted = fillers->next;
	int ret = fillers->take(fillers->fd, (uint32_t)(wanted >> 32), &handle);

	if (!ret)
		ret = array_append(&fillers->list, &fillers->count, sizeof(handle), &handle);
	if (ret < 0)
		return log_error(ret, "kfd %d: cannot take %s %u of GPU 0x%04x", fillers->kfd_id,
				 fillers->kind, (uint32_t)wanted, (uint32_t)(wanted >> 32));
	return fillers_check(fillers, handle, wanted);
}

static bool is_taken(struct fillers *fillers)
{
	while (fillers->passed < fillers->num_taken &&
	       fillers->taken[fillers->passed] < fillers->next)
		fillers->passed++;
	return fillers->passed < fillers->num_taken &&
	       fillers->taken[fillers->passed] == fillers->next;
}

int fillers_reach(struct fillers *fillers, uint64_t handle)
{
	int ret = 0;

	if (fillers->next >> 32 != handle >> 32)
		fillers->next = KFD_HANDLE(handle >> 32, 0);
	while (!ret && fillers->next < handle) {
		if (is_taken(fillers))
			fillers->next++;
		else
			ret = add(fillers);
	}
	return ret;
}

int fillers_check(struct fillers *fillers, uint64_t handle, uint64_t wanted)
{
	fillers->next = wanted + 1;
	if (handle == wanted)
		return 0;
	return log_error(-EEXIST, "kfd %d: %s %u of GPU 0x%04x would be %u instead",
			 fillers->kfd_id, fillers->kind, (uint32_t)wanted, (uint32_t)(wanted >> 32),
			 (uint32_t)handle);
}

int fillers_done(struct fillers *fillers, int ret)
{
	for (size_t i = 0; i < fillers->count; i++) {
		uint64_t handle = fillers->list[i];
		int freed = fillers->free(fillers->fd, handle);

		if (freed < 0 && !ret)
			ret = log_error(freed, "kfd %d: cannot free %s %u of GPU 0x%04x again",
					fillers->kfd_id, fillers->kind, (uint32_t)handle,
					(uint32_t)(handle >> 32));
	}
	free(fillers->list);
	fillers->list = NULL;
	return ret;
}
