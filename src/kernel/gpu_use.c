// SPDX-License-Identifier: GPL-2.0-only
/* Reads /sys/class/kfd/kfd/proc, where each KFD process has a directory with its queues, and a file
 * for its memory on each GPU. */
#include "kernel/gpu_use.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#include "amdgpu_plugin_util.h"
#include "kernel/proc.h"

static uint64_t read_number(int directory, const char *name)
{
	uint64_t number = 0;

	(void)read_number_at(directory, name, &number);
	return number;
}

static int add_gpu(struct gpu_use *use, uint64_t gpu_id)
{
	const uint32_t id = (uint32_t)gpu_id;

	return id ? array_append(&use->ids, &use->count, sizeof(id), &id) : 0;
}

/* Calls @add for each entry of a directory, which may be missing or may disappear meanwhile. */
static int for_each_entry(int above, const char *path, struct gpu_use *use,
			  int (*add)(struct gpu_use *use, int directory, const char *name))
{
	int ret = 0, error;
	_cleanup_closedir_ DIR *stream = dir_open_at(above, path, &error);
	struct dirent *entry;

	while (stream && !ret && (entry = next_entry(stream, &error))) {
		if (entry->d_name[0] != '.')
			ret = add(use, dirfd(stream), entry->d_name);
	}
	return ret;
}

static int add_queue(struct gpu_use *use, int directory, const char *name)
{
	char path[300];

	(void)snprintf(path, sizeof(path), "%s/gpuid", name);
	return add_gpu(use, read_number(directory, path));
}

/* Of a file vram_ID, the GPU with this gpu_id. */
static int add_memory(struct gpu_use *use, int directory, const char *name)
{
	unsigned int id;

	if (sscanf(name, "vram_%u", &id) != 1 || !read_number(directory, name))
		return 0;
	return add_gpu(use, id);
}

static int add_process(struct gpu_use *use, int directory, const char *name)
{
	char queues[300];
	int ret = for_each_entry(directory, name, use, add_memory);

	(void)snprintf(queues, sizeof(queues), "%s/queues", name);
	return ret < 0 ? ret : for_each_entry(directory, queues, use, add_queue);
}

int gpu_use_read(struct gpu_use *ret_use)
{
	*ret_use = (struct gpu_use){ 0 };
	return for_each_entry(AT_FDCWD, PROC_KFD, ret_use, add_process);
}

void gpu_use_mark(const struct gpu_use *use, struct topology *topology)
{
	for (size_t i = 0; i < topology->num_nodes; i++) {
		struct topology_node *node = &topology->nodes[i];

		for (size_t j = 0; j < use->count; j++)
			node->in_use |= use->ids[j] == node->gpu_id;
	}
}

void gpu_use_done(struct gpu_use *use)
{
	free(use->ids);
	*use = (struct gpu_use){ 0 };
}
