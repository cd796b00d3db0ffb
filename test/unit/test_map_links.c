// SPDX-License-Identifier: GPL-2.0-only
/* Which GPUs together may stand for which: XGMI links, CPU nodes, and the choice
 * among several that fit. */
#include "machines.h"

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
	struct map_options relaxed = all_checks;
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
	assert_logged("Error (amdgpu_plugin): ", "KFD_NUMA_CHECK");
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
	assert_logged("Warn  (amdgpu_plugin): ", "CPU node");
	/* A third one on the other CPU node keeps them apart. */
	add_gpu(&local, 4, 0x22, 1);
	unit_forget_lines();
	assert_map(&saved, &local, (const uint32_t[]){ 0x20, 0x22 });
	assert_int_equal(unit_count_lines("Warn  (amdgpu_plugin): "), 0);
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
	static const char *const pairs[][2] = { { "eight", "eight-other" },
						{ "eight-other", "eight" } };

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
