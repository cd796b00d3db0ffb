/* SPDX-License-Identifier: GPL-2.0-only */
/* Small machines for the tests of the mapper: built node by node, or those of
 * test/data/make-machines. For regular machines of any size see test/map/synthetic.h. */
#ifndef TEST_UNIT_MACHINES_H
#define TEST_UNIT_MACHINES_H

#include "gpu_node.h"
#include "host.h"
#include "map/explain.h"
#include "map/map.h"

static const struct map_options all_checks = {
#define ON(field, variable, kind, value) .field = true,
	MAP_CHECKS(ON)
#undef ON
};

static inline void add_cpu(struct topology *topology, uint32_t node_id)
{
	struct topology_node *node = topology_add(topology);

	node->node_id = node_id;
	node->cpu_cores_count = 32;
}

static inline void add_link(struct topology *topology, uint32_t from, uint32_t to, uint32_t type,
			    uint32_t weight)
{
	for (size_t i = 0; i < topology->num_nodes; i++) {
		struct topology_node *node = &topology->nodes[i];

		if (node->node_id != from)
			continue;
		node->links = realloc(node->links, (node->num_links + 1) * sizeof(*node->links));
		assert_non_null(node->links);
		node->links[node->num_links++] = (struct topology_link){ type, to, weight };
		return;
	}
	fail();
}

/* Adds a GPU at CPU node @cpu. All GPUs are equal. */
static inline void add_gpu(struct topology *topology, uint32_t node_id, uint32_t gpu_id,
			   uint32_t cpu)
{
	struct topology_node *node = topology_add(topology);

	*node = gpu_node(node_id, gpu_id);
	node->caches_count = 100;
	node->lds_size_in_kb = 64;
	node->wave_front_size = 64;
	node->array_count = 8;
	node->simd_arrays_per_engine = 1;
	node->cu_per_simd_array = 14;
	node->simd_per_cu = 4;
	node->max_slots_scratch_cu = 32;
	node->num_sdma_engines = 2;
	node->num_sdma_xgmi_engines = 3;
	node->num_sdma_queues_per_engine = 8;
	node->num_cp_queues = 24;
	node->capability = 0x2c778280;
	node->location_id = node_id << 8;
	node->num_xcc = 1;
	node->cwsr_size = 0x1000000;
	node->ctl_stack_size = 0x7000;
	add_link(topology, node_id, cpu, LINK_PCIE, 20);
}

static inline void join(struct topology *topology, uint32_t a, uint32_t b)
{
	add_link(topology, a, b, LINK_XGMI, 15);
	add_link(topology, b, a, LINK_XGMI, 15);
}

static inline void read_machine(const char *name, struct topology *topology)
{
	char path[128];

	(void)snprintf(path, sizeof(path), MACHINES "/%s", name);
	assert_int_equal(topology_read(path, topology), 0);
}

static inline int map_with(const struct topology *saved, const struct topology *local,
			   const struct map_options *options, uint32_t *ids)
{
	struct gpu_map map;
	int ret;

	assert_int_equal(map_decide(saved, local, options, &map), 0);
	assert_int_equal(map.num_nodes, saved->num_nodes);
	ret = explain_map(&map);
	if (ret < 0) {
		map_done(&map);
		return ret;
	}
	for (size_t i = 0; i < saved->num_nodes; i++) {
		assert_int_equal(map.local[i] != NULL, saved->nodes[i].gpu_id != 0);
		if (map.local[i])
			*ids++ = map.local[i]->gpu_id;
	}
	map_done(&map);
	return 0;
}

/* @expected: the gpu_ids of the present GPUs, in the order of the saved GPUs. */
static inline void assert_map(const struct topology *saved, const struct topology *local,
			      const uint32_t *expected)
{
	uint32_t ids[64];
	size_t count = topology_count_gpus(saved);

	assert_int_equal(map_with(saved, local, &all_checks, ids), 0);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(ids[i], expected[i]);
}

static inline void assert_refused(const struct topology *saved, const struct topology *local)
{
	uint32_t ids[64];

	unit_forget_lines();
	assert_int_equal(map_with(saved, local, &all_checks, ids), -ENODEV);
	assert_int_equal(unit_count_lines("Error (amdgpu_plugin): "), 1);
}

/* Two machines of one CPU and one GPU each. */
static inline void make_pair(struct topology *saved, struct topology *local)
{
	*saved = *local = (struct topology){ 0 };
	add_cpu(saved, 0);
	add_gpu(saved, 1, 0x1111, 0);
	add_cpu(local, 0);
	add_gpu(local, 1, 0x2222, 0);
}

#endif
