/* SPDX-License-Identifier: GPL-2.0-only */
/* A restore on another GPU of the machine. The process sees one GPU when it starts, and another one
 * when it comes back. */
#ifndef AMDGPU_PLUGIN_TOOLS_SELFTEST_MOVE_H
#define AMDGPU_PLUGIN_TOOLS_SELFTEST_MOVE_H

#include "amdgpu_plugin_topology.h"

struct selftest;

#define SELFTEST_MOVE_CAUSE 160
/* Of the job's thread, as hide_attach() wants it. */
#define SELFTEST_MOVE_NAME "selftest-hidden"

struct selftest_move {
	const struct topology_node *from, *to;
	/* Hides all GPUs but @from from the processes of a job that start, until it is closed. */
	int link;
	/* The value of the option device-map. */
	char map[32];
};

/* Finds a GPU to which the plugin would map @from, and hides the others. The caller closes the
 * link. On error @ret_cause says why that is not possible. */
int selftest_move_begin(const struct selftest *selftest, const struct topology_node *from,
			struct selftest_move *ret_move, char ret_cause[SELFTEST_MOVE_CAUSE]);

#endif
