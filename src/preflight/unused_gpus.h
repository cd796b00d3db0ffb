/* SPDX-License-Identifier: GPL-2.0-only */
/* Warns of GPUs that a job sees and does not use. RESTORE takes a process only with as many GPUs as
 * it saw, so the job does not come back on a machine that has only the GPUs that it uses. */
#ifndef AMDGPU_PLUGIN_PREFLIGHT_UNUSED_GPUS_H
#define AMDGPU_PLUGIN_PREFLIGHT_UNUSED_GPUS_H

#include <stdbool.h>

struct dump_session;
struct topology;

/* One element for each node of a topology. */
struct gpu_use {
	bool is_seen;
	bool is_used;
};

/* Logs a line if the job uses GPUs, and sees one that none of its processes uses. */
void unused_gpus_warn(const struct topology *topology, const struct gpu_use *uses);

/* The same for all processes of a dump, after CHECKPOINT. A process uses a GPU on which it has
 * a queue or a BO. libhsakmt gives each GPU the page with its registers, which does not count.
 * -ENOMEM, logged. */
int unused_gpus_check(const struct dump_session *session);

#endif
