// SPDX-License-Identifier: GPL-2.0-only
/* Hides the extra GPUs from the process, or adds them to the devices of RESTORE. map_decide() finds
 * these GPUs (map->extra). */
#include "devices/extra_gpus.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "amdgpu_plugin_util.h"
#include "criu/log.h"
#include "image/image_priv.h"
#include "kernel/amdgpu_module.h"
#include "kernel/render_node.h"

static bool is_other(const struct restored_task *task, const struct topology_node *gpu)
{
	bool mapped = false;

	for (size_t i = 0; i < task->map.num_nodes; i++)
		mapped |= task->map.local[i] == gpu;
	return gpu->gpu_id && !mapped;
}

/* The other GPUs: "0x70b3 (renderD128) 0x59ea (renderD129)" */
static void list_others(const struct restored_task *task, char *text, size_t size)
{
	size_t used = 0;

	text[0] = '\0';
	for (size_t i = 0; i < task->local.num_nodes && used < size; i++) {
		const struct topology_node *gpu = &task->local.nodes[i];

		if (is_other(task, gpu))
			used += (size_t)snprintf(text + used, size - used, "%s0x%04x (renderD%u)",
						 used ? " " : "", gpu->gpu_id,
						 gpu->drm_render_minor);
	}
}

static bool has_unreachable(const struct topology *local)
{
	bool found = false;

	for (size_t i = 0; i < local->num_nodes; i++)
		found |= local->nodes[i].gpu_id && local->nodes[i].unreachable;
	return found;
}

static bool forbids_xnack(const struct gpu_map *map)
{
	int noretry = amdgpu_module_read_noretry();
	bool found = false;

	for (size_t i = 0; i < map->num_extra; i++)
		found |= amdgpu_module_forbids_xnack(map->extra[i], noretry);
	return found;
}

/* Why RESTORE fails if the process has more GPUs than those of its image, or NULL if it does not.
 */
static const char *why_must_hide(const struct restored_task *task)
{
	const struct kfd_priv priv = image_priv_in(task->kfd, &task->layout);

	if (has_unreachable(&task->local))
		return "it cannot open the render node of each";
	if (!task->map.num_extra)
		return NULL;
	if (kfd_priv_has_xnack(&priv) && forbids_xnack(&task->map))
		return "the process has XNACK on, which a GPU of gfx10 or newer forbids, and one of gfx9 with amdgpu.noretry=1";
	if (!task->layout.is_known)
		return "the image has private data of an unknown layout";
	return task->layout.num_svm_ranges ? "the image has SVM ranges for its own GPUs only"
					   : NULL;
}

/* KFD gives the other GPUs to the process, and RESTORE takes them, or must not. */
static int cannot_hide(struct restored_task *task, int ret, const char *cause)
{
	char names[512];

	list_others(task, names, sizeof(names));
	if (task->must_hide)
		return log_error(
			ret,
			"kfd %d: the image has %u GPUs, and the task also sees %s; %s; the plugin cannot hide these GPUs, as %s; hide them with the device cgroup, which runc sets before a restore (podman: --runtime runc)",
			task->kfd_id, task->kfd->num_of_gpus, names, task->must_hide, cause);
	log_info("kfd %d: the task also sees %s; the plugin cannot hide these GPUs, as %s",
		 task->kfd_id, names, cause);
	task->hides_others = false;
	return 0;
}

int extra_gpus_check(struct restored_task *task)
{
	task->must_hide = why_must_hide(task);
	task->hides_others = task->must_hide || task->map.num_extra;
	return task->hides_others && task->kfd_opened
		       ? cannot_hide(task, -EINVAL, "the task has opened /dev/kfd already")
		       : 0;
}

bool extra_gpus_is_hidden(const struct restored_task *task, const struct topology_node *gpu)
{
	return task->hides_others && is_other(task, gpu);
}

static int hide(const struct restored_task *task, struct hide *ret_hide, const char **ret_cause)
{
	_cleanup_free_ uint32_t *minors = calloc(task->local.num_nodes + 1, sizeof(*minors));
	size_t count = 0;

	*ret_cause = "memory is short";
	if (!minors)
		return -ENOMEM;
	for (size_t i = 0; i < task->local.num_nodes; i++) {
		if (is_other(task, &task->local.nodes[i]))
			minors[count++] = task->local.nodes[i].drm_render_minor;
	}
	return hide_begin(minors, count, ret_hide, ret_cause);
}

int extra_gpus_hide(struct restored_task *task, struct hide *ret_hide)
{
	const char *cause;
	char names[512];
	int ret;

	*ret_hide = (struct hide){ .link = -1 };
	/* Later opens do not change the GPUs of the process. */
	if (!task->hides_others || task->kfd_opened)
		return 0;
	ret = hide(task, ret_hide, &cause);
	if (ret < 0)
		return cannot_hide(task, ret, cause);
	task->map.num_extra = 0;
	list_others(task, names, sizeof(names));
	log_info("kfd %d: a program in the task's cgroup hides %s while the task opens /dev/kfd",
		 task->kfd_id, names);
	return 0;
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
			.user_gpu_id = kfd_state_choose_id(state, gpu->gpu_id),
			.actual_gpu_id = gpu->gpu_id,
			.drm_fd = (uint32_t)fd,
		};
		state->num_devices++;
	}
	return 0;
}
