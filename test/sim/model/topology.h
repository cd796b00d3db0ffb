/* SPDX-License-Identifier: GPL-2.0-only */
/* The machine as sysfs shows it: files with their verbatim contents, read from a bundle, and the
 * GPUs in them. The front end makes directories of it. */
#ifndef SIM_TOPOLOGY_H
#define SIM_TOPOLOGY_H

#include "sim.h"

#define SIM_TOPOLOGY_PATH 64

struct sim_topology_file {
	char path[SIM_TOPOLOGY_PATH]; /* below topology/ */
	const char *data;             /* in the bundle */
	u32 size;
	struct sim_gpu *gpu; /* the node to which it belongs, or NULL */
};

struct sim_topology {
	struct sim_topology_file *files;
	u32 count;
};

/* Reads machine @name (NULL: the last one) from a bundle, which must stay, and fills sim->gpus.
 * -ENOENT: no such machine; -EINVAL: the bundle is damaged; -ENOMEM. */
int sim_topology_read(struct sim *sim, const char *bundle, u64 size, const char *name,
		      struct sim_topology *ret_topology);
void sim_topology_done(struct sim_topology *topology);

/* What read() of the file returns to the caller: bytes, or -EPERM for a GPU that is hidden from it.
 */
int sim_topology_show(const struct sim_topology_file *file, char *text, u32 size);

/* Whether the caller may see this GPU. */
bool sim_topology_visible(const struct sim_gpu *gpu);

#endif
