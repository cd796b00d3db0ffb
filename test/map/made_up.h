/* SPDX-License-Identifier: GPL-2.0-only */
/* Machines that nobody has captured: random ones with everything that rules speak of, and regular
 * ones of any size. The same seed makes the same machine. */
#ifndef TEST_MAP_MADE_UP_H
#define TEST_MAP_MADE_UP_H

#include "amdgpu_plugin_topology.h"

struct dice {
	uint64_t state;
};

/* 0 to @sides - 1. */
uint32_t dice_roll(struct dice *dice, uint32_t sides);
bool dice_percent(struct dice *dice, uint32_t percent);

/* Up to @max_gpus GPUs of few kinds with random links, hives and CPU nodes, that look like trouble:
 * ids that are zero or twice, links that lead nowhere or one way. */
void machine_random(struct dice *dice, size_t max_gpus, struct topology *ret_topology);

/* @num_hives hives of @size equal GPUs, spread over @num_cpus CPU nodes in turn of hives (or,
 * @striped, of GPUs); slots and ids as on any machine of that shape. */
void machine_of_hives(size_t num_hives, size_t size, size_t num_cpus, bool striped,
		      struct topology *ret_topology);

/* A copy with other node numbers, gpu_ids, minors, slots and unique_ids: another machine
 * of the same shape. */
void machine_renamed(struct dice *dice, const struct topology *topology,
		     struct topology *ret_topology);

void machine_copy(const struct topology *topology, struct topology *ret_topology);
/* A copy without some GPUs, as in a container. */
void machine_some(struct dice *dice, const struct topology *topology, size_t num_gpus,
		  struct topology *ret_topology);

/* The GPU with number @index, counted as they lie in the topology. */
struct topology_node *machine_gpu(struct topology *topology, size_t index);
/* Attaches @gpu to the CPU node of @other_gpu. */
void machine_move_gpu(struct topology *topology, size_t gpu, size_t other_gpu);
void machine_lose_link(struct topology *topology, size_t gpu_a, size_t gpu_b);

#endif
