/* SPDX-License-Identifier: GPL-2.0-only */
/* Maps by trying each assignment. Shares only data types with the plugin, and is fast enough for
 * eight GPUs. */
#ifndef TEST_MAP_ORACLE_H
#define TEST_MAP_ORACLE_H

#include "amdgpu_plugin_topology.h"
#include "criu/options.h"

#define ORACLE_GPUS_MAX 8

struct oracle_answer {
	const char *outcome;
	char words[64];
	/* By source GPU in node order. */
	const struct topology_node *source[ORACLE_GPUS_MAX];
	const struct topology_node *destination[ORACLE_GPUS_MAX];
	size_t num_gpus;
};

void oracle_ask(const struct topology *source, const struct topology *destination,
		const struct map_options *options, struct oracle_answer *ret_answer);

#endif
