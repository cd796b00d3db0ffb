/* SPDX-License-Identifier: GPL-2.0-only */
/* Topologies of synthetic machines: random ones with each property that a rule reads, and regular
 * ones of any size. The same seed makes the same machine. */
#ifndef TEST_MAP_SYNTHETIC_H
#define TEST_MAP_SYNTHETIC_H

#include "amdgpu_plugin_topology.h"

struct dice {
	uint64_t state;
};

/* A number from 0 to @sides - 1. */
uint32_t dice_roll(struct dice *dice, uint32_t sides);
bool dice_percent(struct dice *dice, uint32_t percent);

/* Up to @max_gpus GPUs of few kinds with random links, hives and CPU nodes. Some machines have
 * defects: repeated gpu_ids, links to missing nodes, links in one direction. */
void machine_random(struct dice *dice, size_t max_gpus, struct topology *ret_topology);

/* @num_hives hives of @size equal GPUs. Each hive (or GPU, if @striped) goes to one of @num_cpus
 * CPU nodes. Two machines of one shape have equal slots and ids. */
void machine_of_hives(size_t num_hives, size_t size, size_t num_cpus, bool striped,
		      struct topology *ret_topology);

/* A copy with other node numbers, gpu_ids, minors, slots and unique_ids: another machine of the
 * same shape. */
void machine_renamed(struct dice *dice, const struct topology *topology,
		     struct topology *ret_topology);

/* @topology becomes that of a process that has moved: a GPU of @percent of its GPUs is known to the
 * process by the gpu_id of a random GPU of @other. */
void machine_take_ids(struct dice *dice, const struct topology *other, uint32_t percent,
		      struct topology *topology);

void machine_copy(const struct topology *topology, struct topology *ret_topology);
/* A copy with @num_gpus of the GPUs, as in a container. */
void machine_some(struct dice *dice, const struct topology *topology, size_t num_gpus,
		  struct topology *ret_topology);

/* The GPU number @index of the topology. */
struct topology_node *machine_gpu(struct topology *topology, size_t index);
/* Attaches @gpu to the CPU node of @other_gpu. */
void machine_move_gpu(struct topology *topology, size_t gpu, size_t other_gpu);
void machine_lose_link(struct topology *topology, size_t gpu_a, size_t gpu_b);

#endif
