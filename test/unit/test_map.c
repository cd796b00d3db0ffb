// SPDX-License-Identifier: GPL-2.0-only
/* Which GPU may stand for which: the comparisons one by one, links, CPU nodes, and the choice among several.
 * The rules are those of the mapper's header; machines are made here or read from test/data/machines. */
#include "host.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "amdgpu_plugin_map.h"
#include "amdgpu_plugin_util.h"

#define MACHINES "test/data/machines"

static const struct options all_checks = {
#define ON(field, variable) .field = true,
	OPTION_SWITCHES(ON)
#undef ON
};

static void add_cpu(struct topology *topology, uint32_t node_id)
{
	struct topology_node *node = topology_add(topology);

	node->node_id = node_id;
	node->cpu_cores_count = 32;
}

static void add_link(struct topology *topology, uint32_t from, uint32_t to, uint32_t type,
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

/* One of many equal GPUs, next to CPU node @cpu. */
static void add_gpu(struct topology *topology, uint32_t node_id, uint32_t gpu_id, uint32_t cpu)
{
	struct topology_node *node = topology_add(topology);

	*node = (struct topology_node){
		.node_id = node_id,
		.gpu_id = gpu_id,
		.actual_gpu_id = gpu_id,
		.vram_size = 64ULL << 30,
		.vram_public = 1,
		.simd_count = 416,
		.caches_count = 100,
		.max_waves_per_simd = 8,
		.lds_size_in_kb = 64,
		.num_gws = 64,
		.wave_front_size = 64,
		.array_count = 8,
		.simd_arrays_per_engine = 1,
		.cu_per_simd_array = 14,
		.simd_per_cu = 4,
		.max_slots_scratch_cu = 32,
		.vendor_id = 0x1002,
		.device_id = 0x740f,
		.drm_render_minor = 128 + node_id,
		.num_sdma_engines = 2,
		.num_sdma_xgmi_engines = 3,
		.num_sdma_queues_per_engine = 8,
		.num_cp_queues = 24,
		.fw_version = 92,
		.capability = 0x2c778280,
		.sdma_fw_version = 9,
		.location_id = node_id << 8,
		.gfx_target_version = 90010,
		.num_xcc = 1,
		.cwsr_size = 0x1000000,
		.ctl_stack_size = 0x7000,
	};
	add_link(topology, node_id, cpu, LINK_PCIE, 20);
}

static void join(struct topology *topology, uint32_t a, uint32_t b)
{
	add_link(topology, a, b, LINK_XGMI, 15);
	add_link(topology, b, a, LINK_XGMI, 15);
}

static void read_machine(const char *name, struct topology *topology)
{
	char path[128];

	(void)snprintf(path, sizeof(path), MACHINES "/%s", name);
	assert_int_equal(topology_read(path, topology), 0);
}

static int map_with(const struct topology *saved, const struct topology *local,
		    const struct options *options, uint32_t *ids)
{
	struct gpu_map map;
	int ret = map_gpus(saved, local, options, &map);

	if (ret < 0)
		return ret;
	assert_int_equal(map.num_nodes, saved->num_nodes);
	for (size_t i = 0; i < saved->num_nodes; i++) {
		assert_int_equal(map.local[i] != NULL, saved->nodes[i].gpu_id != 0);
		if (map.local[i])
			*ids++ = map.local[i]->gpu_id;
	}
	map_done(&map);
	return 0;
}

/* The gpu_ids that the saved GPUs land on must be these, in order. */
static void assert_map(const struct topology *saved, const struct topology *local,
		       const uint32_t *expected)
{
	uint32_t ids[64];
	size_t count = topology_count_gpus(saved);

	assert_int_equal(map_with(saved, local, &all_checks, ids), 0);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(ids[i], expected[i]);
}

static void assert_refused(const struct topology *saved, const struct topology *local)
{
	uint32_t ids[64];

	unit_forget_lines();
	assert_int_equal(map_with(saved, local, &all_checks, ids), -ENODEV);
	assert_int_equal(unit_count_lines("amdgpu_plugin: Error: "), 1);
}

/* Saved and local: a machine each of one CPU and one GPU. */
static void make_pair(struct topology *saved, struct topology *local)
{
	*saved = *local = (struct topology){ 0 };
	add_cpu(saved, 0);
	add_gpu(saved, 1, 0x1111, 0);
	add_cpu(local, 0);
	add_gpu(local, 1, 0x2222, 0);
}

static void a_gpu_lands_on_an_equal_one(void **state)
{
	struct topology saved, local;

	(void)state;
	make_pair(&saved, &local);
	/* None of these matters. */
	local.nodes[1].node_id = 5;
	local.nodes[1].drm_render_minor = 140;
	local.nodes[1].location_id = 77;
	local.nodes[1].domain = 3;
	local.nodes[1].unique_id = 123;
	local.nodes[1].hive_id = 9;
	local.nodes[1].mem_banks_count = 4;
	local.nodes[1].io_links_count = 4;
	local.nodes[1].gds_size_in_kb = 4;
	assert_map(&saved, &local, (const uint32_t[]){ 0x2222 });
	topology_done(&saved);
	topology_done(&local);
}

static void a_source_without_gpus_is_mapped_to_nothing(void **state)
{
	struct topology saved = { 0 }, local = { 0 };

	(void)state;
	assert_map(&saved, &local, NULL);
	add_cpu(&saved, 0);
	assert_map(&saved, &local, NULL);
	topology_done(&saved);
}

struct difference {
	const char *name;
	size_t offset;
	size_t size;
	const char *variable;
	size_t option;
};

#define FIELD(f) #f, offsetof(struct topology_node, f), sizeof(((struct topology_node *)0)->f)

static uint64_t get(const struct topology_node *node, const struct difference *row)
{
	const char *at = (const char *)node + row->offset;

	return row->size == 8 ? *(const uint64_t *)(const void *)at :
				*(const uint32_t *)(const void *)at;
}

static void set(struct topology_node *node, const struct difference *row, uint64_t value)
{
	char *at = (char *)node + row->offset;

	if (row->size == 8)
		*(uint64_t *)(void *)at = value;
	else
		*(uint32_t *)(void *)at = (uint32_t)value;
}

static const struct difference same[] = {
	{ FIELD(vendor_id), NULL, 0 },
	{ FIELD(device_id), NULL, 0 },
	{ FIELD(simd_count), NULL, 0 },
	{ FIELD(max_waves_per_simd), NULL, 0 },
	{ FIELD(lds_size_in_kb), NULL, 0 },
	{ FIELD(wave_front_size), NULL, 0 },
	{ FIELD(array_count), NULL, 0 },
	{ FIELD(simd_arrays_per_engine), NULL, 0 },
	{ FIELD(cu_per_simd_array), NULL, 0 },
	{ FIELD(simd_per_cu), NULL, 0 },
	{ FIELD(max_slots_scratch_cu), NULL, 0 },
	{ FIELD(num_sdma_engines), NULL, 0 },
	{ FIELD(num_sdma_xgmi_engines), NULL, 0 },
	{ FIELD(num_sdma_queues_per_engine), NULL, 0 },
	{ FIELD(num_cp_queues), NULL, 0 },
};

static const struct difference same_if_stated[] = {
	{ FIELD(gfx_target_version), NULL, 0 },
	{ FIELD(num_xcc), NULL, 0 },
	{ FIELD(cwsr_size), NULL, 0 },
	{ FIELD(ctl_stack_size), NULL, 0 },
};

#define SWITCH(variable, field) #variable, offsetof(struct options, field)

static const struct difference at_least[] = {
	{ FIELD(vram_size), SWITCH(KFD_VRAM_SIZE_CHECK, check_vram_size) },
	{ FIELD(num_gws), SWITCH(KFD_NUM_GWS_CHECK, check_num_gws) },
	{ FIELD(caches_count), SWITCH(KFD_CACHES_COUNT_CHECK, check_caches) },
	{ FIELD(fw_version), SWITCH(KFD_FW_VER_CHECK, check_fw_version) },
	{ FIELD(sdma_fw_version), SWITCH(KFD_SDMA_FW_VER_CHECK, check_sdma_fw) },
};

/* Refused with a line that names the GPUs and the property, whatever checks are off. */
static void assert_differs(const struct topology *saved, const struct topology *local,
			   const char *property)
{
	const struct options no_checks = { 0 };
	uint32_t ids[1];

	print_message("case %s\n", property);
	assert_refused(saved, local);
	assert_logged("0x1111", "0x2222", property);
	assert_int_equal(map_with(saved, local, &no_checks, ids), -ENODEV);
}

static void every_property_of_the_hardware_must_be_the_same(void **state)
{
	struct topology saved, local;

	(void)state;
	make_pair(&saved, &local);
	for (size_t i = 0; i < ARRAY_SIZE(same); i++) {
		uint64_t value = get(&local.nodes[1], &same[i]);

		set(&local.nodes[1], &same[i], value + 1);
		assert_differs(&saved, &local, same[i].name);
		set(&local.nodes[1], &same[i], value - 1);
		assert_differs(&saved, &local, same[i].name);
		set(&local.nodes[1], &same[i], value);
	}
	topology_done(&saved);
	topology_done(&local);
}

static void what_not_all_kernels_print_is_compared_where_both_do(void **state)
{
	struct topology saved, local;

	(void)state;
	make_pair(&saved, &local);
	for (size_t i = 0; i < ARRAY_SIZE(same_if_stated); i++) {
		const struct difference *row = &same_if_stated[i];
		uint64_t value = get(&local.nodes[1], row);

		set(&local.nodes[1], row, value + 1);
		assert_differs(&saved, &local, row->name);
		set(&local.nodes[1], row, 0);
		assert_map(&saved, &local, (const uint32_t[]){ 0x2222 });
		set(&local.nodes[1], row, value);
		set(&saved.nodes[1], row, 0);
		assert_map(&saved, &local, (const uint32_t[]){ 0x2222 });
		set(&saved.nodes[1], row, value);
	}
	topology_done(&saved);
	topology_done(&local);
}

/* All checks but the row's. */
static struct options without(const struct difference *row)
{
	struct options options = all_checks;

	*(bool *)((char *)&options + row->option) = false;
	return options;
}

static void a_gpu_with_less_is_refused_unless_its_switch_is_off(void **state)
{
	struct topology saved, local;

	(void)state;
	make_pair(&saved, &local);
	for (size_t i = 0; i < ARRAY_SIZE(at_least); i++) {
		const struct difference *row = &at_least[i];
		uint64_t value = get(&local.nodes[1], row);
		uint32_t ids[1];

		print_message("case %s\n", row->name);
		set(&local.nodes[1], row, value + 1);
		assert_map(&saved, &local, (const uint32_t[]){ 0x2222 });
		set(&local.nodes[1], row, value - 1);
		assert_refused(&saved, &local);
		assert_logged("0x1111", "0x2222", row->name, row->variable);
		for (size_t j = 0; j < ARRAY_SIZE(at_least); j++) {
			struct options options = without(&at_least[j]);

			assert_int_equal(map_with(&saved, &local, &options, ids), j == i ? 0 : -ENODEV);
		}
		set(&local.nodes[1], row, value);
	}
	topology_done(&saved);
	topology_done(&local);
}

static void capability_is_compared_but_for_the_bits_of_the_driver(void **state)
{
	static const struct difference row = { FIELD(capability),
					       SWITCH(KFD_CAPABILITY_CHECK, check_capability) };
	const struct options relaxed = without(&row);
	struct topology saved, local;
	uint32_t ids[1];

	(void)state;
	make_pair(&saved, &local);
	for (unsigned int bit = 0; bit < 32; bit++) {
		bool of_driver = (bit >= 15 && bit <= 18) || bit >= 29;

		print_message("case bit %u\n", bit);
		local.nodes[1].capability = saved.nodes[1].capability ^ 1u << bit;
		unit_forget_lines();
		assert_int_equal(map_with(&saved, &local, &all_checks, ids), of_driver ? 0 : -ENODEV);
		assert_int_equal(unit_logged("capability", "KFD_CAPABILITY_CHECK", NULL), !of_driver);
		assert_int_equal(map_with(&saved, &local, &relaxed, ids), 0);
	}
	topology_done(&saved);
	topology_done(&local);
}

static void cpu_visible_vram_needs_cpu_visible_vram(void **state)
{
	struct topology saved, local;

	(void)state;
	make_pair(&saved, &local);
	local.nodes[1].vram_public = 0;
	assert_differs(&saved, &local, "vram_public");
	saved.nodes[1].vram_public = 0;
	assert_map(&saved, &local, (const uint32_t[]){ 0x2222 });
	local.nodes[1].vram_public = 1;
	assert_map(&saved, &local, (const uint32_t[]){ 0x2222 });
	topology_done(&saved);
	topology_done(&local);
}

static void the_first_difference_names_its_switch(void **state)
{
	const char *variable = "";
	struct topology saved, local;

	(void)state;
	make_pair(&saved, &local);
	assert_null(map_first_difference(&saved.nodes[1], &local.nodes[1], &all_checks, &variable));
	assert_null(variable);
	local.nodes[1].fw_version--;
	assert_string_equal(map_first_difference(&saved.nodes[1], &local.nodes[1], &all_checks,
						 &variable), "fw_version");
	assert_string_equal(variable, "KFD_FW_VER_CHECK");
	local.nodes[1].wave_front_size = 32;
	assert_string_equal(map_first_difference(&saved.nodes[1], &local.nodes[1], &all_checks,
						 &variable), "wave_front_size");
	assert_null(variable);
	topology_done(&saved);
	topology_done(&local);
}

static void a_machine_maps_onto_itself(void **state)
{
	static const char *const names[] = { "one", "one-other", "eight", "eight-other" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		struct topology saved = { 0 }, local = { 0 };
		uint32_t own[64];
		size_t count = 0;

		read_machine(names[i], &saved);
		read_machine(names[i], &local);
		for (size_t j = 0; j < saved.num_nodes; j++) {
			if (saved.nodes[j].gpu_id)
				own[count++] = saved.nodes[j].gpu_id;
		}
		assert_map(&saved, &local, own);
		topology_done(&saved);
		topology_done(&local);
	}
}

/* No GPU twice, all pairs linked by XGMI still linked, CPU neighbours still neighbours. */
static void assert_map_keeps_links(const struct topology *saved, const struct topology *local)
{
	struct gpu_map map;

	assert_int_equal(map_gpus(saved, local, &all_checks, &map), 0);
	for (size_t i = 0; i < saved->num_nodes; i++) {
		for (size_t link = 0; link < saved->nodes[i].num_links; link++) {
			const struct topology_link *from = &saved->nodes[i].links[link];
			const struct topology_node *to = topology_find_node(saved, from->node_to);
			const struct topology_node *at = map.local[i];
			bool found = false;

			if (!at || !to || !to->gpu_id || from->type != LINK_XGMI)
				continue;
			for (size_t j = 0; j < at->num_links; j++)
				found |= at->links[j].type == LINK_XGMI &&
					 at->links[j].node_to == map.local[to - saved->nodes]->node_id;
			assert_true(found);
		}
		for (size_t j = 0; j < i; j++)
			assert_true(!map.local[i] || map.local[i] != map.local[j]);
	}
	map_done(&map);
}

static void a_machine_maps_onto_one_with_other_ids_minors_and_order(void **state)
{
	static const char *const pairs[][2] = {
		{ "one", "one-other" },	    { "one-other", "one" },    { "eight", "eight-other" },
		{ "eight-other", "eight" }, { "one", "eight" },	       { "one", "eight-other" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(pairs); i++) {
		struct topology saved = { 0 }, local = { 0 };

		print_message("case %s to %s\n", pairs[i][0], pairs[i][1]);
		read_machine(pairs[i][0], &saved);
		read_machine(pairs[i][1], &local);
		assert_map_keeps_links(&saved, &local);
		topology_done(&saved);
		topology_done(&local);
	}
}

static void more_gpus_than_are_here_are_refused_in_words(void **state)
{
	struct topology saved = { 0 }, local = { 0 };

	(void)state;
	read_machine("eight", &saved);
	read_machine("one", &local);
	assert_refused(&saved, &local);
	assert_logged("Error: ", "8", "1", "GPUs");
	topology_done(&saved);
	topology_done(&local);
}

static void a_gpu_without_match_is_named(void **state)
{
	struct topology saved, local;

	(void)state;
	make_pair(&saved, &local);
	local.nodes[1].device_id = 0x744c;
	assert_refused(&saved, &local);
	assert_logged("Error: ", "0x1111");
	topology_done(&saved);
	topology_done(&local);
}

/* Four GPUs 0x11.. on CPU 0 and 1, two and two. */
static void make_four(struct topology *topology, uint32_t first_id)
{
	*topology = (struct topology){ 0 };
	add_cpu(topology, 0);
	add_cpu(topology, 1);
	for (uint32_t i = 0; i < 4; i++)
		add_gpu(topology, 2 + i, first_id + i, i / 2);
}

static void xgmi_pairs_stay_xgmi_pairs(void **state)
{
	struct topology saved, local;

	(void)state;
	make_four(&saved, 0x10);
	make_four(&local, 0x20);
	join(&saved, 2, 3);
	assert_refused(&saved, &local);
	/* The local pair is on the other CPU node. */
	join(&local, 4, 5);
	assert_map(&saved, &local, (const uint32_t[]){ 0x22, 0x23, 0x20, 0x21 });
	topology_done(&saved);
	topology_done(&local);
}

static void one_direction_makes_an_xgmi_pair(void **state)
{
	for (unsigned int which = 0; which < 2; which++) {
		struct topology saved, local;

		make_four(&saved, 0x10);
		make_four(&local, 0x20);
		add_link(&saved, which ? 2 : 3, which ? 3 : 2, LINK_XGMI, 15);
		assert_refused(&saved, &local);
		add_link(&local, which ? 5 : 4, which ? 4 : 5, LINK_XGMI, 15);
		assert_map(&saved, &local, (const uint32_t[]){ 0x22, 0x23, 0x20, 0x21 });
		topology_done(&saved);
		topology_done(&local);
	}
	(void)state;
}

static void gpus_not_linked_may_land_on_linked_ones(void **state)
{
	struct topology saved, local;

	(void)state;
	make_four(&saved, 0x10);
	make_four(&local, 0x20);
	join(&local, 2, 3);
	assert_map(&saved, &local, (const uint32_t[]){ 0x20, 0x21, 0x22, 0x23 });
	topology_done(&saved);
	topology_done(&local);
}

static void neighbours_on_a_cpu_node_stay_neighbours(void **state)
{
	struct topology saved, local = { 0 };

	(void)state;
	make_four(&saved, 0x10);
	add_cpu(&local, 0);
	add_cpu(&local, 1);
	/* In turns, so that the first two are not neighbours. */
	for (uint32_t i = 0; i < 4; i++)
		add_gpu(&local, 2 + i, 0x20 + i, i % 2);
	assert_map(&saved, &local, (const uint32_t[]){ 0x20, 0x22, 0x21, 0x23 });
	topology_done(&saved);
	topology_done(&local);
}

static void neighbours_are_not_separated_but_with_the_check_off(void **state)
{
	struct options relaxed = all_checks;
	struct topology saved = { 0 }, local = { 0 };
	uint32_t ids[2];

	(void)state;
	relaxed.check_numa = false;
	for (uint32_t i = 0; i < 2; i++) {
		add_cpu(&saved, i);
		add_cpu(&local, i);
	}
	for (uint32_t i = 0; i < 2; i++) {
		add_gpu(&saved, 2 + i, 0x10 + i, 0);
		add_gpu(&local, 2 + i, 0x20 + i, i);
	}
	assert_refused(&saved, &local);
	assert_logged("Error: ", "KFD_NUMA_CHECK");
	assert_int_equal(map_with(&saved, &local, &relaxed, ids), 0);
	topology_done(&saved);
	topology_done(&local);
}

static void gpus_of_different_cpu_nodes_come_together_only_with_a_warning(void **state)
{
	struct topology saved = { 0 }, local = { 0 };

	(void)state;
	for (uint32_t i = 0; i < 2; i++) {
		add_cpu(&saved, i);
		add_cpu(&local, i);
	}
	for (uint32_t i = 0; i < 2; i++)
		add_gpu(&saved, 2 + i, 0x10 + i, i);
	add_gpu(&local, 2, 0x20, 0);
	add_gpu(&local, 3, 0x21, 0);
	assert_map(&saved, &local, (const uint32_t[]){ 0x20, 0x21 });
	assert_logged("Warn: ", "CPU node");
	/* A third one on the other CPU node keeps them apart. */
	add_gpu(&local, 4, 0x22, 1);
	unit_forget_lines();
	assert_map(&saved, &local, (const uint32_t[]){ 0x20, 0x22 });
	assert_int_equal(unit_count_lines("Warn: "), 0);
	topology_done(&saved);
	topology_done(&local);
}

static void the_nearest_cpu_node_counts(void **state)
{
	struct topology saved = { 0 }, local = { 0 };

	(void)state;
	for (uint32_t i = 0; i < 2; i++) {
		add_cpu(&saved, i);
		add_cpu(&local, i);
	}
	for (uint32_t i = 0; i < 2; i++) {
		add_gpu(&saved, 2 + i, 0x10 + i, 0);
		add_gpu(&local, 2 + i, 0x20 + i, i);
	}
	assert_refused(&saved, &local);
	/* The second local GPU is nearer to CPU node 0 after all. */
	add_link(&local, 3, 0, LINK_PCIE, 13);
	assert_map(&saved, &local, (const uint32_t[]){ 0x20, 0x21 });
	topology_done(&saved);
	topology_done(&local);
}

static void a_gpu_on_xgmi_to_its_cpu_needs_the_same(void **state)
{
	struct topology saved, local;

	(void)state;
	make_pair(&saved, &local);
	saved.nodes[1].links[0].type = LINK_XGMI;
	assert_refused(&saved, &local);
	local.nodes[1].links[0].type = LINK_XGMI;
	assert_map(&saved, &local, (const uint32_t[]){ 0x2222 });
	/* PCIe is content with either. */
	saved.nodes[1].links[0].type = LINK_PCIE;
	assert_map(&saved, &local, (const uint32_t[]){ 0x2222 });
	topology_done(&saved);
	topology_done(&local);
}

static void a_gpu_with_a_cpu_link_needs_one(void **state)
{
	struct topology saved, local;

	(void)state;
	make_pair(&saved, &local);
	local.nodes[1].num_links = 0;
	assert_refused(&saved, &local);
	saved.nodes[1].num_links = 0;
	assert_map(&saved, &local, (const uint32_t[]){ 0x2222 });
	topology_done(&saved);
	topology_done(&local);
}

/* Two equal GPUs here, of which the higher node is the one that was saved. */
static void make_choice(struct topology *saved, struct topology *local)
{
	*saved = *local = (struct topology){ 0 };
	add_cpu(saved, 0);
	add_gpu(saved, 2, 0x1111, 0);
	add_cpu(local, 0);
	add_gpu(local, 1, 0x2222, 0);
	add_gpu(local, 2, 0x3333, 0);
	local->nodes[2].location_id = 0x9900;
}

static void the_lowest_node_is_taken_where_there_is_a_choice(void **state)
{
	struct topology saved, local;

	(void)state;
	make_choice(&saved, &local);
	assert_map(&saved, &local, (const uint32_t[]){ 0x2222 });
	topology_done(&saved);
	topology_done(&local);
}

static void the_very_same_gpu_is_preferred_by_unique_id(void **state)
{
	struct topology saved, local;

	(void)state;
	make_choice(&saved, &local);
	saved.nodes[1].unique_id = local.nodes[2].unique_id = 0xabcdef;
	assert_map(&saved, &local, (const uint32_t[]){ 0x3333 });
	topology_done(&saved);
	topology_done(&local);
}

static void the_very_same_gpu_is_preferred_by_slot_and_id(void **state)
{
	struct topology saved, local;

	(void)state;
	make_choice(&saved, &local);
	saved.nodes[1].location_id = local.nodes[2].location_id;
	saved.nodes[1].actual_gpu_id = local.nodes[2].actual_gpu_id;
	assert_map(&saved, &local, (const uint32_t[]){ 0x3333 });
	/* The slot alone does not tell. */
	saved.nodes[1].domain = 1;
	assert_map(&saved, &local, (const uint32_t[]){ 0x2222 });
	topology_done(&saved);
	topology_done(&local);
}

static void a_migrated_process_is_known_by_the_machine_s_id_not_its_own(void **state)
{
	struct topology saved, local;

	(void)state;
	make_choice(&saved, &local);
	/* It knows the GPU by an id that happens to be another one's here. */
	saved.nodes[1].gpu_id = 0x2222;
	saved.nodes[1].actual_gpu_id = 0x3333;
	saved.nodes[1].location_id = local.nodes[2].location_id;
	assert_map(&saved, &local, (const uint32_t[]){ 0x3333 });
	topology_done(&saved);
	topology_done(&local);
}

static void staying_the_same_gives_way_where_links_demand_it(void **state)
{
	struct topology saved, local;

	(void)state;
	make_four(&saved, 0x10);
	make_four(&local, 0x10);
	join(&saved, 2, 3);
	/* The pair is elsewhere now. */
	join(&local, 4, 5);
	assert_map(&saved, &local, (const uint32_t[]){ 0x12, 0x13, 0x10, 0x11 });
	topology_done(&saved);
	topology_done(&local);
}

/* The same nodes in another order of the array, as another order of links would be. */
static void reverse_links(struct topology *topology)
{
	for (size_t i = 0; i < topology->num_nodes; i++) {
		struct topology_node *node = &topology->nodes[i];

		for (size_t j = 0; j < node->num_links / 2; j++) {
			struct topology_link link = node->links[j];

			node->links[j] = node->links[node->num_links - 1 - j];
			node->links[node->num_links - 1 - j] = link;
		}
	}
}

static void the_answer_does_not_depend_on_the_order_of_links(void **state)
{
	static const char *const pairs[][2] = { { "eight", "eight-other" }, { "eight-other", "eight" } };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(pairs); i++) {
		struct topology saved = { 0 }, local = { 0 };
		uint32_t first[8], second[8];

		read_machine(pairs[i][0], &saved);
		read_machine(pairs[i][1], &local);
		assert_int_equal(map_with(&saved, &local, &all_checks, first), 0);
		reverse_links(&saved);
		reverse_links(&local);
		assert_int_equal(map_with(&saved, &local, &all_checks, second), 0);
		assert_memory_equal(first, second, sizeof(first));
		topology_done(&saved);
		topology_done(&local);
	}
}

static void surplus_gpus_are_no_obstacle(void **state)
{
	struct topology saved, local;

	(void)state;
	make_pair(&saved, &local);
	topology_done(&local);
	make_four(&local, 0x20);
	local.nodes[2].wave_front_size = 32;
	assert_map(&saved, &local, (const uint32_t[]){ 0x21 });
	topology_done(&saved);
	topology_done(&local);
}

/* Each saved GPU has a match, but two need the same one. */
static void two_gpus_never_share_one(void **state)
{
	struct topology saved = { 0 }, local = { 0 };

	(void)state;
	add_cpu(&saved, 0);
	add_cpu(&local, 0);
	for (uint32_t i = 1; i <= 2; i++) {
		add_gpu(&saved, i, 0x10 + i, 0);
		add_gpu(&local, i, 0x20 + i, 0);
		saved.nodes[i].fw_version = 100;
	}
	local.nodes[1].fw_version = 100;
	assert_refused(&saved, &local);
	saved.nodes[1].fw_version = 92;
	assert_map(&saved, &local, (const uint32_t[]){ 0x22, 0x21 });
	topology_done(&saved);
	topology_done(&local);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNIT_TEST(a_gpu_lands_on_an_equal_one),
		UNIT_TEST(a_source_without_gpus_is_mapped_to_nothing),
		UNIT_TEST(every_property_of_the_hardware_must_be_the_same),
		UNIT_TEST(what_not_all_kernels_print_is_compared_where_both_do),
		UNIT_TEST(a_gpu_with_less_is_refused_unless_its_switch_is_off),
		UNIT_TEST(capability_is_compared_but_for_the_bits_of_the_driver),
		UNIT_TEST(cpu_visible_vram_needs_cpu_visible_vram),
		UNIT_TEST(the_first_difference_names_its_switch),
		UNIT_TEST(a_machine_maps_onto_itself),
		UNIT_TEST(a_machine_maps_onto_one_with_other_ids_minors_and_order),
		UNIT_TEST(more_gpus_than_are_here_are_refused_in_words),
		UNIT_TEST(a_gpu_without_match_is_named),
		UNIT_TEST(xgmi_pairs_stay_xgmi_pairs),
		UNIT_TEST(one_direction_makes_an_xgmi_pair),
		UNIT_TEST(gpus_not_linked_may_land_on_linked_ones),
		UNIT_TEST(neighbours_on_a_cpu_node_stay_neighbours),
		UNIT_TEST(neighbours_are_not_separated_but_with_the_check_off),
		UNIT_TEST(gpus_of_different_cpu_nodes_come_together_only_with_a_warning),
		UNIT_TEST(the_nearest_cpu_node_counts),
		UNIT_TEST(a_gpu_on_xgmi_to_its_cpu_needs_the_same),
		UNIT_TEST(a_gpu_with_a_cpu_link_needs_one),
		UNIT_TEST(the_lowest_node_is_taken_where_there_is_a_choice),
		UNIT_TEST(the_very_same_gpu_is_preferred_by_unique_id),
		UNIT_TEST(the_very_same_gpu_is_preferred_by_slot_and_id),
		UNIT_TEST(a_migrated_process_is_known_by_the_machine_s_id_not_its_own),
		UNIT_TEST(staying_the_same_gives_way_where_links_demand_it),
		UNIT_TEST(the_answer_does_not_depend_on_the_order_of_links),
		UNIT_TEST(surplus_gpus_are_no_obstacle),
		UNIT_TEST(two_gpus_never_share_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
