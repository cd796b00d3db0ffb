// SPDX-License-Identifier: GPL-2.0-only
/* Adds the extra GPUs to the devices of RESTORE, or refuses the restore. map_gpus() finds these
 * GPUs (map->extra). */
#include "restore/extra_gpus.h"

#include <errno.h>
#include <stdio.h>

#include "criu/log.h"
#include "kernel/render_node.h"

/* "0x70b3 (renderD128) 0x59ea (renderD129)" */
static void list_extra_gpus(const struct gpu_map *map, char *text, size_t size)
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
	list_extra_gpus(map, names, sizeof(names));
	ret = kfd_priv_has_svm(priv, &has_svm);
	if (ret < 0)
		return log_error(
			ret,
			"kfd %d: the image has %u GPUs, and the task also sees %s; the image has "
			"private data of an unknown layout; hide these GPUs with the device cgroup",
			id, priv->num_devices, names);
	if (has_svm)
		return log_error(
			-EINVAL,
			"kfd %d: the image has %u GPUs, and the task also sees %s; the image has SVM "
			"ranges for its own GPUs only; hide these GPUs with the device cgroup",
			id, priv->num_devices, names);
	log_info("kfd %d: the task also sees %s", id, names);
	return 0;
}

static bool is_used(const struct gpu_map *map, const struct kfd_state *state, uint32_t id)
{
	for (uint32_t i = 0; i < state->num_devices; i++) {
		if (state->devices[i].user_gpu_id == id)
			return true;
	}
	/* Another extra GPU gets its own id, if it can. */
	for (size_t i = 0; i < map->num_extra; i++) {
		if (map->extra[i]->gpu_id == id)
			return true;
	}
	return false;
}

/* The id of this GPU, unless the process already knows another GPU by it: of two devices with the
 * same id, the driver finds only the first. */
static uint32_t choose_user_id(const struct gpu_map *map, const struct kfd_state *state,
			       const struct topology_node *gpu)
{
	uint32_t id = gpu->gpu_id;
	bool free = true;

	for (uint32_t i = 0; i < state->num_devices; i++)
		free &= state->devices[i].user_gpu_id != id;
	while (!free) {
		id = id % KFD_GPU_ID_MAX + 1;
		free = !is_used(map, state, id);
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
			return log_error(ret, "extra GPU 0x%04x: cannot open renderD%u",
					 gpu->gpu_id, gpu->drm_render_minor);
		state->devices[state->num_devices] = (struct kfd_device_bucket){
			.user_gpu_id = choose_user_id(map, state, gpu),
			.actual_gpu_id = gpu->gpu_id,
			.drm_fd = (uint32_t)fd,
		};
		state->num_devices++;
	}
	return 0;
}
