// SPDX-License-Identifier: GPL-2.0-only
/* The rules for one GPU, captured machines, and a choice that the log tells. test_map_oracle.c has
 * the rules between GPUs. */
#include "machines.h"

UNIT_TEST(a_gpu_maps_to_an_equal_gpu)
{
	_cleanup_(topology_done) struct topology saved = { 0 }, local = { 0 };

	make_pair(&saved, &local);
	/* No rule reads these. */
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
}

UNIT_TEST(an_image_without_gpus_needs_no_gpu)
{
	struct topology saved = { 0 }, local = { 0 };

	assert_map(&saved, &local, NULL);
	add_cpu(&saved, 0);
	assert_map(&saved, &local, NULL);
	topology_done(&saved);
}

struct property {
	const char *name;
	size_t offset;
	size_t size;
	const char *variable;
	size_t option;
};

#define FIELD(f) #f, offsetof(struct topology_node, f), sizeof(((struct topology_node *)0)->f)

static uint64_t get(const struct topology_node *node, const struct property *row)
{
	const char *at = (const char *)node + row->offset;

	return row->size == 8 ? *(const uint64_t *)(const void *)at
			      : *(const uint32_t *)(const void *)at;
}

static void set(struct topology_node *node, const struct property *row, uint64_t value)
{
	char *at = (char *)node + row->offset;

	if (row->size == 8)
		*(uint64_t *)(void *)at = value;
	else
		*(uint32_t *)(void *)at = (uint32_t)value;
}

static const struct property same[] = {
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

static const struct property same_if_stated[] = {
	{ FIELD(gfx_target_version), NULL, 0 },
	{ FIELD(num_xcc), NULL, 0 },
	{ FIELD(cwsr_size), NULL, 0 },
	{ FIELD(ctl_stack_size), NULL, 0 },
};

#define SWITCH(variable, field) #variable, offsetof(struct map_options, field)

static const struct property at_least[] = {
	{ FIELD(vram_size), SWITCH(KFD_VRAM_SIZE_CHECK, check_vram_size) },
	{ FIELD(num_gws), SWITCH(KFD_NUM_GWS_CHECK, check_num_gws) },
	{ FIELD(caches_count), SWITCH(KFD_CACHES_COUNT_CHECK, check_caches) },
	{ FIELD(fw_version), SWITCH(KFD_FW_VER_CHECK, check_fw_version) },
	{ FIELD(sdma_fw_version), SWITCH(KFD_SDMA_FW_VER_CHECK, check_sdma_fw) },
};

/* The mapper refuses even with all checks off, and names the GPUs and the property. */
static void assert_differs(const struct topology *saved, const struct topology *local,
			   const char *property)
{
	const struct map_options no_checks = { 0 };
	uint32_t ids[1];

	print_message("case %s\n", property);
	assert_refused(saved, local);
	assert_logged("0x1111", "0x2222", property);
	assert_int_equal(map_with(saved, local, &no_checks, ids), -ENODEV);
}

UNIT_TEST(each_hardware_property_must_be_equal)
{
	_cleanup_(topology_done) struct topology saved = { 0 }, local = { 0 };

	make_pair(&saved, &local);
	for (size_t i = 0; i < ARRAY_SIZE(same); i++) {
		uint64_t value = get(&local.nodes[1], &same[i]);

		set(&local.nodes[1], &same[i], value + 1);
		assert_differs(&saved, &local, same[i].name);
		set(&local.nodes[1], &same[i], value - 1);
		assert_differs(&saved, &local, same[i].name);
		set(&local.nodes[1], &same[i], value);
	}
}

UNIT_TEST(a_property_of_newer_kernels_is_compared_if_both_sides_state_it)
{
	_cleanup_(topology_done) struct topology saved = { 0 }, local = { 0 };

	make_pair(&saved, &local);
	for (size_t i = 0; i < ARRAY_SIZE(same_if_stated); i++) {
		const struct property *row = &same_if_stated[i];
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
}

/* All checks but the check of @row. */
static struct map_options without(const struct property *row)
{
	struct map_options options = all_checks;

	*(bool *)((char *)&options + row->option) = false;
	return options;
}

UNIT_TEST(a_gpu_with_less_is_refused_unless_the_check_is_off)
{
	_cleanup_(topology_done) struct topology saved = { 0 }, local = { 0 };

	make_pair(&saved, &local);
	for (size_t i = 0; i < ARRAY_SIZE(at_least); i++) {
		const struct property *row = &at_least[i];
		uint64_t value = get(&local.nodes[1], row);
		uint32_t ids[1];

		print_message("case %s\n", row->name);
		set(&local.nodes[1], row, value + 1);
		assert_map(&saved, &local, (const uint32_t[]){ 0x2222 });
		set(&local.nodes[1], row, value - 1);
		assert_refused(&saved, &local);
		assert_logged("0x1111", "0x2222", row->name, row->variable);
		for (size_t j = 0; j < ARRAY_SIZE(at_least); j++) {
			struct map_options options = without(&at_least[j]);

			assert_int_equal(map_with(&saved, &local, &options, ids),
					 j == i ? 0 : -ENODEV);
		}
		set(&local.nodes[1], row, value);
	}
}

UNIT_TEST(capability_is_compared_without_the_bits_of_the_driver)
{
	static const struct property row = { FIELD(capability),
					     SWITCH(KFD_CAPABILITY_CHECK, check_capability) };
	const struct map_options relaxed = without(&row);
	_cleanup_(topology_done) struct topology saved = { 0 }, local = { 0 };
	uint32_t ids[1];

	make_pair(&saved, &local);
	for (unsigned int bit = 0; bit < 32; bit++) {
		bool is_driver_bit = (bit >= 15 && bit <= 18) || bit >= 29;

		print_message("case bit %u\n", bit);
		local.nodes[1].capability = saved.nodes[1].capability ^ 1u << bit;
		unit_forget_lines();
		assert_int_equal(map_with(&saved, &local, &all_checks, ids),
				 is_driver_bit ? 0 : -ENODEV);
		assert_int_equal(unit_logged("capability", "KFD_CAPABILITY_CHECK", NULL),
				 !is_driver_bit);
		assert_int_equal(map_with(&saved, &local, &relaxed, ids), 0);
	}
}

UNIT_TEST(cpu_visible_vram_needs_cpu_visible_vram)
{
	_cleanup_(topology_done) struct topology saved = { 0 }, local = { 0 };

	make_pair(&saved, &local);
	local.nodes[1].vram_public = 0;
	assert_differs(&saved, &local, "vram_public");
	saved.nodes[1].vram_public = 0;
	assert_map(&saved, &local, (const uint32_t[]){ 0x2222 });
	local.nodes[1].vram_public = 1;
	assert_map(&saved, &local, (const uint32_t[]){ 0x2222 });
}

/* Another kernel counts something of the same card in another way. */
UNIT_TEST(only_the_same_card_may_differ_by_force)
{
	static const struct {
		const char *name;
		bool by_slot, by_unique_id;
		uint32_t num_xcc, device_id;
		bool forced;
	} cases[] = {
		{ "the same slot", true, false, 1, 0, true },
		{ "the same unique_id", false, true, 1, 0, true },
		{ "another card", false, false, 1, 0, false },
		{ "another partition mode", true, true, 2, 0, false },
		{ "another device in the slot", true, false, 1, 0x744c, false },
	};
	struct map_options force = all_checks;

	force.force = true;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_(topology_done) struct topology saved = { 0 }, local = { 0 };
		uint32_t id;

		print_message("case %s\n", cases[i].name);
		make_pair(&saved, &local);
		local.nodes[1].location_id = cases[i].by_slot ? saved.nodes[1].location_id : 0x4200;
		saved.nodes[1].unique_id = cases[i].by_unique_id ? 7 : 0;
		local.nodes[1].unique_id = cases[i].by_unique_id ? 7 : 0;
		local.nodes[1].num_xcc = cases[i].num_xcc;
		local.nodes[1].device_id =
			cases[i].device_id ? cases[i].device_id : saved.nodes[1].device_id;
		local.nodes[1].simd_count = saved.nodes[1].simd_count + 4;
		assert_refused(&saved, &local);
		assert_int_equal(unit_count_lines("AMDGPU_FORCE=1 relaxes this"), cases[i].forced);
		unit_forget_lines();
		assert_int_equal(map_with(&saved, &local, &force, &id),
				 cases[i].forced ? 0 : -ENODEV);
		if (cases[i].forced)
			assert_logged("Warn  (amdgpu_plugin): ", "0x1111", "simd_count");
	}
}

/* Two cards with one slot on two machines are two cards if their unique_ids differ. */
UNIT_TEST(force_takes_no_other_card_in_the_same_slot)
{
	struct map_options force = all_checks;
	_cleanup_(topology_done) struct topology saved = { 0 }, local = { 0 };
	uint32_t id;

	force.force = true;
	make_pair(&saved, &local);
	saved.nodes[1].unique_id = 7;
	local.nodes[1].unique_id = 8;
	local.nodes[1].simd_count += 4;
	assert_int_equal(map_with(&saved, &local, &force, &id), -ENODEV);
}

/* Two partitions of one card. */
static void add_partitions(struct topology *topology, const uint64_t *unique_ids, uint32_t gpu_id)
{
	add_cpu(topology, 0);
	for (uint32_t i = 0; i < 2; i++) {
		add_gpu(topology, 1 + i, gpu_id + i, 0);
		topology->nodes[1 + i].location_id = 0x4200 + i;
		topology->nodes[1 + i].unique_id = unique_ids[i];
	}
}

/* Older drivers give all partitions of a card the id of the card. Then the slot names a partition.
 */
UNIT_TEST(force_takes_the_slot_if_partitions_shared_an_id)
{
	static const struct {
		const char *name;
		uint64_t saved[2], local[2];
		bool forced;
	} cases[] = {
		{ "an id each after a driver update", { 7, 7 }, { 8, 9 }, true },
		{ "one of them kept the id of the card", { 7, 7 }, { 7, 9 }, true },
		{ "an id each at the dump", { 8, 9 }, { 7, 7 }, true },
		{ "the same driver", { 7, 7 }, { 7, 7 }, true },
		{ "another card", { 7, 7 }, { 8, 8 }, false },
		{ "other cards", { 7, 8 }, { 9, 10 }, false },
	};
	struct map_options force = all_checks;

	force.force = true;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_(topology_done) struct topology saved = { 0 }, local = { 0 };
		uint32_t ids[2];

		print_message("case %s\n", cases[i].name);
		add_partitions(&saved, cases[i].saved, 0x1110);
		add_partitions(&local, cases[i].local, 0x2220);
		local.nodes[1].simd_count += 4;
		local.nodes[2].simd_count += 4;
		assert_refused(&saved, &local);
		assert_int_equal(map_with(&saved, &local, &force, ids),
				 cases[i].forced ? 0 : -ENODEV);
		if (!cases[i].forced)
			continue;
		assert_int_equal(ids[0], 0x2220);
		assert_int_equal(ids[1], 0x2221);
	}
}

UNIT_TEST(an_image_with_more_gpus_is_refused_with_both_numbers)
{
	_cleanup_(topology_done) struct topology saved = { 0 }, local = { 0 };

	read_machine("eight", &saved);
	read_machine("one", &local);
	assert_refused(&saved, &local);
	assert_logged("Error (amdgpu_plugin): ", "8", "1", "GPUs", "also unused ones");
	topology_done(&saved);
	unit_forget_lines();
	/* The only GPU is not an unused one. */
	saved = (struct topology){ 0 };
	local.nodes[local.num_nodes - 1].unreachable = true;
	read_machine("one", &saved);
	assert_refused(&saved, &local);
	assert_logged("Error (amdgpu_plugin): ", "1", "0", "GPUs", "cannot open");
	assert_int_equal(unit_count_lines("unused"), 0);
}

UNIT_TEST(unused_gpus_come_before_those_with_lower_nodes)
{
	_cleanup_(topology_done) struct topology saved = { 0 }, local = { 0 };

	make_pair(&saved, &local);
	add_gpu(&local, 2, 0x3333, 0);
	add_gpu(&local, 3, 0x4444, 0);
	assert_map(&saved, &local, (const uint32_t[]){ 0x2222 });
	local.nodes[1].in_use = true;
	assert_map(&saved, &local, (const uint32_t[]){ 0x3333 });
	/* Only one of two GPUs can have an unused one. */
	add_gpu(&saved, 2, 0x1112, 0);
	local.nodes[2].in_use = true;
	local.nodes[1].device_id = saved.nodes[1].device_id = 0x740c;
	assert_map(&saved, &local, (const uint32_t[]){ 0x2222, 0x4444 });
	/* All are in use. */
	local.nodes[3].in_use = true;
	assert_map(&saved, &local, (const uint32_t[]){ 0x2222, 0x3333 });
}

UNIT_TEST(the_same_card_comes_before_unused_gpus)
{
	_cleanup_(topology_done) struct topology saved = { 0 }, local = { 0 };

	make_pair(&saved, &local);
	add_gpu(&local, 2, 0x3333, 0);
	local.nodes[1].in_use = true;
	saved.nodes[1].unique_id = local.nodes[1].unique_id = 7;
	local.nodes[2].unique_id = 8;
	assert_map(&saved, &local, (const uint32_t[]){ 0x2222 });
}

/* Four GPUs with gpu_ids from @first_id: two at CPU node 0, two at CPU node 1. */
static void make_four(struct topology *topology, uint32_t first_id)
{
	*topology = (struct topology){ 0 };
	add_cpu(topology, 0);
	add_cpu(topology, 1);
	for (uint32_t i = 0; i < 4; i++)
		add_gpu(topology, 2 + i, first_id + i, i / 2);
}

UNIT_TEST(gpus_lose_their_link_only_with_the_check_off)
{
	struct map_options relaxed = all_checks;
	_cleanup_(topology_done) struct topology saved = { 0 }, local = { 0 };
	uint32_t ids[4];

	relaxed.check_xgmi = false;
	make_four(&saved, 0x10);
	make_four(&local, 0x20);
	join(&saved, 2, 3);
	assert_refused(&saved, &local);
	assert_logged("Error (amdgpu_plugin): ", "KFD_XGMI_CHECK=0");
	assert_int_equal(map_with(&saved, &local, &relaxed, ids), 0);
	assert_memory_equal(ids, ((const uint32_t[]){ 0x20, 0x21, 0x22, 0x23 }), sizeof(ids));
	assert_logged("Warn  (amdgpu_plugin): ", "0x0010", "0x0011", "KFD_XGMI_CHECK=0");
	unit_forget_lines();
	/* A mapping that keeps the link is better, and needs no warning. */
	join(&local, 4, 5);
	assert_int_equal(map_with(&saved, &local, &relaxed, ids), 0);
	assert_memory_equal(ids, ((const uint32_t[]){ 0x22, 0x23, 0x20, 0x21 }), sizeof(ids));
	assert_int_equal(unit_count_lines("Warn  (amdgpu_plugin): "), 0);
}
