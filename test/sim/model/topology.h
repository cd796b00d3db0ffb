/* SPDX-License-Identifier: GPL-2.0-only */
/* What the model needs of a machine: its GPUs and their properties, from a bundle of the files that
 * sysfs has below topology/. */
#ifndef SIM_TOPOLOGY_H
#define SIM_TOPOLOGY_H

#include "sim.h"

/* Reads the bundle of a machine, and fills sim->gpus. -EINVAL: the bundle is damaged; -ENOMEM. */
int sim_topology_read(struct sim *sim, const char *bundle, u64 size);

/* Whether the caller may see this GPU. */
bool sim_topology_visible(const struct sim_gpu *gpu);

#endif
