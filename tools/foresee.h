/* SPDX-License-Identifier: GPL-2.0-only */
/* Refusals that show without pausing a process. The log has the same lines as a dump, one for each
 * broken rule, and warnings where only the dump can tell. */
#ifndef AMDGPU_PLUGIN_TOOLS_FORESEE_H
#define AMDGPU_PLUGIN_TOOLS_FORESEE_H

#include <stdbool.h>
#include <stddef.h>

#include "amdgpu_plugin_topology.h"
#include "criu/options.h"
#include "survey.h"

struct pid_list;

/* Only AMD's out-of-tree driver has a version. */
#define DRIVER_VERSION "/sys/module/amdgpu/version"

/* The driver and the GPUs of @topology: 0; -EOPNOTSUPP: every dump would be refused. */
int foresee_machine(const struct options *options, const struct topology *topology);
/* Warns of rules that some processes break on this machine. */
void foresee_warn(const struct options *options, const struct topology *topology);
/* Which compute queues of a GPU this machine restores. */
enum foresee_queue {
	FORESEE_QUEUE_NONE,
	FORESEE_QUEUE_AT_REST, /* without running waves */
	FORESEE_QUEUE_WITH_WAVES,
};
enum foresee_queue foresee_compute_queue(const struct topology_node *gpu);
/* The image directory. */
int foresee_images(const struct options *options);
/* The dump of @tasks: 0; -EOPNOTSUPP: it would be refused. Other errors, logged: something
 * cannot be examined. @surveys: those of the tasks that use a GPU. */
int foresee_tree(const struct options *options, const struct topology *topology,
		 const struct pid_list *tasks, const struct survey *surveys, size_t count);
/* The rules of which nothing shows before the dump, as "a BO has an unknown kind". @index counts
 * them from 0. False: there are no more. */
bool foresee_name_late(size_t index, char *text, size_t size);

#endif
