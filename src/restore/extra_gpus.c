// SPDX-License-Identifier: GPL-2.0-only
/* Lists surplus GPUs for RESTORE, or says why a restore beside them cannot be. Which GPUs they are
 * the mapper has found out. */
#include "restore/extra_gpus.h"

#include <errno.h>
#include <stdio.h>

#include "criu/log.h"
#include "kernel/render_node.h"

/* "0x70b3 (renderD128) 0x59ea (renderD129)" */
static void list_surplus(const struct gpu_map *map, char *text, size_t size)
{
	size_t used = 0;

	text[0] = '\0';
	for (size_t i = 0; i < map->num_extra && used < size; i++)
		used += (size_t)snprintf(text + used, size - used, "%s0x%04x (renderD%u)",
					 i ? " " : "", map->extra[i]->gpu_id,
					 map->extra[i]->drm_render_minor);
}

static int check_reachable(int id, const struct topology *local)
{
	for (size_t i = 0; i < local->num_nodes; i++) {
		const struct topology_node *node = &local->nodes[i];

		if (node->gpu_id && node->unreachable)
			return log_error(
				-EINVAL,
				"kfd %d: the task sees GPU 0x%04x, but cannot open its render "
				"node renderD%u; hide the GPU with the device cgroup, or make the node",
				id, node->gpu_id, node->drm_render_minor);
	}
	return 0;
}

int extra_gpus_check(int id, const struct gpu_map *map, const struct topology *local,
		     const struct kfd_priv *priv)
{
	char names[512];
	bool has_svm;
	int ret;

	ret = check_reachable(id, local);
	if (ret < 0 || !map->num_extra)
		return ret;
	list_surplus(map, names, sizeof(names));
	ret = kfd_priv_has_svm(priv, &has_svm);
	if (ret < 0)
		return log_error(
			ret,
			"kfd %d: the image has %u GPUs, and the task sees %s besides; as its private "
			"data is of an unknown layout, hide them with the device cgroup",
			id, priv->num_devices, names);
	if (has_svm)
		return log_error(
			-EINVAL,
			"kfd %d: the image has %u GPUs, and the task sees %s besides; as its SVM "
			"ranges are saved for no others, hide them with the device cgroup",
			id, priv->num_devices, names);
	log_info("kfd %d: the task sees %s besides its own GPUs", id, names);
	return 0;
}

static bool is_taken(const struct gpu_map *map, const struct kfd_state *state, uint32_t id)
{
	for (uint32_t i = 0; i < state->num_devices; i++) {
		if (state->devices[i].user_gpu_id == id)
			return true;
	}
	/* An id of another surplus GPU is left to that. */
	for (size_t i = 0; i < map->num_extra; i++) {
		if (map->extra[i]->gpu_id == id)
			return true;
	}
	return false;
}

/* The process may know another GPU by the id of this one, and the driver would find only
 * the first of two. */
static uint32_t id_for(const struct gpu_map *map, const struct kfd_state *state,
		       const struct topology_node *gpu)
{
	uint32_t id = gpu->gpu_id;
	bool free = true;

	for (uint32_t i = 0; i < state->num_devices; i++)
		free &= state->devices[i].user_gpu_id != id;
	while (!free) {
		id = id % KFD_GPU_ID_MAX + 1;
		free = !is_taken(map, state, id);
	}
	return id;
}

int extra_gpus_add(const struct gpu_map *map, int lowest_fd, struct kfd_state *state)
{
	for (size_t i = 0; i < map->num_extra; i++) {
		const struct topology_node *gpu = map->extra[i];
		int fd, ret;

		ret = render_node_open(gpu->drm_render_minor, lowest_fd, &fd);
		if (ret < 0)
			return log_error(ret, "surplus GPU 0x%04x: cannot open renderD%u",
					 gpu->gpu_id, gpu->drm_render_minor);
		state->devices[state->num_devices] = (struct kfd_device_bucket){
			.user_gpu_id = id_for(map, state, gpu),
			.actual_gpu_id = gpu->gpu_id,
			.drm_fd = (uint32_t)fd,
		};
		state->num_devices++;
	}
	return 0;
}
