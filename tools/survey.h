/* SPDX-License-Identifier: GPL-2.0-only */
/* What /proc and KFD's sysfs say of a running process. */
#ifndef AMDGPU_PLUGIN_TOOLS_SURVEY_H
#define AMDGPU_PLUGIN_TOOLS_SURVEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "amdgpu_plugin_topology.h"

struct survey {
	pid_t pid;
	/* The process has /dev/kfd open. */
	bool has_kfd;
	/* The process has /dev/kfd or the render node of a GPU open, or maps one of them. Doorbells
	 * are mappings of /dev/kfd. */
	bool has_files;
	/* The process maps the render node of a GPU. */
	bool maps_gpu;
	/* KFD's sysfs knows the process. Without it, queues, num_visible, is_visible and vram_bytes
	 * are not known. Linux 5.9 and newer have it, but for processes of another pid namespace.
	 */
	bool is_in_sysfs;
	/* The GPUs that the driver lets the process see, also those that are not in the topology.
	 */
	size_t num_visible;
	/* The GPUs that the process sees, opens or maps. */
	struct survey_gpu {
		/* Borrowed. */
		const struct topology_node *node;
		bool is_open;
		/* The driver lets the process see it. */
		bool is_visible;
		/* The VRAM of its BOs. */
		uint64_t vram_bytes;
		/* Its mappings of the render node. */
		size_t num_mapped;
		uint64_t mapped_bytes;
	} * gpus;
	size_t num_gpus;
	struct survey_queue {
		uint32_t id;
		/* enum kfd_priv_queue_type */
		uint32_t type;
		/* The gpu_id on this machine. */
		uint32_t gpu_id;
	} * queues;
	size_t num_queues;
};

/* -ESRCH: there is no such process. -EACCES, -EPERM: no right. Logs nothing. Borrows @topology.
 * Free the result with survey_done(). */
int survey_read(pid_t pid, const struct topology *topology, struct survey *ret_survey);
/* About the bytes of contents that a dump would save. *@ret_largest: those of the GPU that has
 * most. It may be NULL. */
uint64_t survey_estimate(const struct survey *survey, uint64_t *ret_largest);
void survey_done(struct survey *survey);

#endif
