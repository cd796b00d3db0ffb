// SPDX-License-Identifier: GPL-2.0-only
/* Keeps of each state image the few fields by which tasks find it. */
#include "image/image_set.h"

#include <errno.h>
#include <stdlib.h>

#include "amdgpu_plugin_util.h"
#include "criu/log.h"

struct image_set_kfd {
	int id;
	pid_t pid;
};

struct image_set_render {
	bool has_pid, has_minor;
	pid_t pid;
	uint32_t minor;
};

int image_set_add_kfd(struct image_set *set, int id, const CriuKfd *kfd)
{
	const struct image_set_kfd entry = { id, (pid_t)kfd->pid };

	return kfd->num_of_gpus ? array_append(&set->kfds, &set->num_kfds, sizeof(entry), &entry)
				: 0;
}

int image_set_add_render(struct image_set *set, const CriuRenderNode *render)
{
	const struct image_set_render entry = {
		.has_pid = render->has_compute_pid,
		.has_minor = render->has_drm_render_minor,
		.pid = (pid_t)render->compute_pid,
		.minor = render->drm_render_minor,
	};

	return array_append(&set->renders, &set->num_renders, sizeof(entry), &entry);
}

void image_set_done(struct image_set *set)
{
	free(set->kfds);
	free(set->renders);
	*set = (struct image_set){ 0 };
}

int image_set_find_kfd(const struct image_set *set, pid_t pid, int *ret_id)
{
	const struct image_set_kfd *found = NULL;

	for (size_t i = 0; i < set->num_kfds; i++) {
		if (set->kfds[i].pid != pid)
			continue;
		if (found)
			return log_error(
				-EINVAL,
				"images: kfd %d and kfd %d both have the state of process %d; use the images of one dump",
				found->id, set->kfds[i].id, pid);
		found = &set->kfds[i];
	}
	if (!found)
		return -ENOENT;
	*ret_id = found->id;
	return 0;
}

bool image_set_has_compute_file(const struct image_set *set, pid_t pid, uint32_t minor)
{
	for (size_t i = 0; i < set->num_renders; i++) {
		const struct image_set_render *render = &set->renders[i];

		if (render->has_pid && render->pid == pid && render->minor == minor)
			return true;
	}
	return false;
}

bool image_set_may_have_compute_file(const struct image_set *set, pid_t pid, uint32_t minor)
{
	bool unclaimed = false;

	for (size_t i = 0; i < set->num_renders; i++) {
		const struct image_set_render *render = &set->renders[i];

		unclaimed |= !render->has_pid && (!render->has_minor || render->minor == minor);
	}
	return unclaimed || image_set_has_compute_file(set, pid, minor);
}
