// SPDX-License-Identifier: GPL-2.0-only
/* The rules between GPUs: XGMI links, CPU nodes, and the choice among several mappings. */
#include "machines.h"

/* Four GPUs with gpu_ids from @first_id: two at CPU node 0, two at CPU node 1. */
static void make_four(struct topology *topology, uint32_t first_id)
{
	*topology = (struct topology){ 0 };
	add_cpu(topology, 0);
	add_cpu(topology, 1);
	for (uint32_t i = 0; i < 4; i++)
		add_gpu(topology, 2 + i, first_id + i, i / 2);
}

static void linked_gpus_stay_linked(void **state)
{
	struct topology saved, local;

	(void)state;
	make_four(&saved, 0x10);
	make_four(&local, 0x20);
	join(&saved, 2, 3);
	assert_refused(&saved, &local);
	/* The local pair is at the other CPU node. */
	join(&local, 4, 5);
	assert_map(&saved, &local, (const uint32_t[]){ 0x22, 0x23, 0x20, 0x21 });
	topology_done(&saved);
	topology_done(&local);
}

static void gpus_lose_their_link_only_with_the_check_off(void **state)
{
	struct map_options relaxed = all_checks;
	struct topology saved, local;
	uint32_t ids[4];

	(void)state;
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
	topology_done(&saved);
	topology_done(&local);
}

static void a_link_in_one_direction_counts(void **state)
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

static void unlinked_gpus_may_map_to_linked_gpus(void **state)
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

static void gpus_of_one_cpu_node_stay_on_one(void **state)
{
	struct topology saved, local = { 0 };

	(void)state;
	make_four(&saved, 0x10);
	add_cpu(&local, 0);
	add_cpu(&local, 1);
	/* Alternating, so that the first two GPUs have different CPU nodes. */
	for (uint32_t i = 0; i < 4; i++)
		add_gpu(&local, 2 + i, 0x20 + i, i % 2);
	assert_map(&saved, &local, (const uint32_t[]){ 0x20, 0x22, 0x21, 0x23 });
	topology_done(&saved);
	topology_done(&local);
}

static void gpus_of_one_cpu_node_separate_only_with_the_check_off(void **state)
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

static void gpus_of_different_cpu_nodes_share_one_only_with_a_warning(void **state)
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
	/* With a third GPU at the other CPU node they can stay apart. */
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
	/* This link makes CPU node 0 the nearest of the second local GPU. */
	add_link(&local, 3, 0, LINK_PCIE, 13);
	assert_map(&saved, &local, (const uint32_t[]){ 0x20, 0x21 });
	topology_done(&saved);
	topology_done(&local);
}

static void an_xgmi_link_to_the_cpu_needs_an_xgmi_link(void **state)
{
	struct topology saved, local;

	(void)state;
	make_pair(&saved, &local);
	saved.nodes[1].links[0].type = LINK_XGMI;
	assert_refused(&saved, &local);
	local.nodes[1].links[0].type = LINK_XGMI;
	assert_map(&saved, &local, (const uint32_t[]){ 0x2222 });
	/* A PCIe link accepts either type. */
	saved.nodes[1].links[0].type = LINK_PCIE;
	assert_map(&saved, &local, (const uint32_t[]){ 0x2222 });
	topology_done(&saved);
	topology_done(&local);
}

static void a_gpu_with_a_cpu_link_needs_a_cpu_link(void **state)
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

/* One saved GPU, and two equal local GPUs. Tests make the higher one the same device. */
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

static void of_equal_gpus_the_lowest_node_is_chosen(void **state)
{
	struct topology saved, local;

	(void)state;
	make_choice(&saved, &local);
	assert_map(&saved, &local, (const uint32_t[]){ 0x2222 });
	topology_done(&saved);
	topology_done(&local);
}

static void the_same_card_is_preferred_by_unique_id(void **state)
{
	struct topology saved, local;

	(void)state;
	make_choice(&saved, &local);
	saved.nodes[1].unique_id = local.nodes[2].unique_id = 0xabcdef;
	assert_map(&saved, &local, (const uint32_t[]){ 0x3333 });
	topology_done(&saved);
	topology_done(&local);
}

static void the_same_slot_is_preferred_by_address_and_gpu_id(void **state)
{
	struct topology saved, local;

	(void)state;
	make_choice(&saved, &local);
	saved.nodes[1].location_id = local.nodes[2].location_id;
	saved.nodes[1].actual_gpu_id = local.nodes[2].actual_gpu_id;
	assert_map(&saved, &local, (const uint32_t[]){ 0x3333 });
	/* The address must match, including the domain. */
	saved.nodes[1].domain = 1;
	assert_map(&saved, &local, (const uint32_t[]){ 0x2222 });
	topology_done(&saved);
	topology_done(&local);
}

static void a_moved_gpu_is_recognised_by_the_gpu_id_of_its_machine(void **state)
{
	struct topology saved, local;

	(void)state;
	make_choice(&saved, &local);
	/* The process knows the GPU by an id that another GPU has on this machine. */
	saved.nodes[1].gpu_id = 0x2222;
	saved.nodes[1].actual_gpu_id = 0x3333;
	saved.nodes[1].location_id = local.nodes[2].location_id;
	assert_map(&saved, &local, (const uint32_t[]){ 0x3333 });
	topology_done(&saved);
	topology_done(&local);
}

static void gpus_keep_their_ids_before_they_take_the_lowest_nodes(void **state)
{
	struct topology saved, local;

	(void)state;
	make_four(&saved, 0x10);
	make_four(&local, 0x20);
	/* The process knows its GPUs by ids of an earlier machine, and other GPUs have them here.
	 */
	saved.nodes[2].gpu_id = 0x23;
	saved.nodes[5].gpu_id = 0x21;
	assert_map(&saved, &local, (const uint32_t[]){ 0x23, 0x22, 0x20, 0x21 });
	/* The card itself counts more than two ids. */
	saved.nodes[2].unique_id = local.nodes[2].unique_id = 0x5555;
	assert_map(&saved, &local, (const uint32_t[]){ 0x20, 0x21, 0x22, 0x23 });
	topology_done(&saved);
	topology_done(&local);
}

static void links_go_before_staying_on_the_same_device(void **state)
{
	struct topology saved, local;

	(void)state;
	make_four(&saved, 0x10);
	make_four(&local, 0x10);
	join(&saved, 2, 3);
	/* The linked pair has other slots now. */
	join(&local, 4, 5);
	assert_map(&saved, &local, (const uint32_t[]){ 0x12, 0x13, 0x10, 0x11 });
	topology_done(&saved);
	topology_done(&local);
}

/* Reverses the links of each node, as another listing of the directory would. */
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

static void the_mapping_does_not_depend_on_the_order_of_links(void **state)
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

static void extra_gpus_do_not_prevent_a_mapping(void **state)
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

/* Each saved GPU has a candidate, but both have the same one. */
static void two_saved_gpus_never_share_a_gpu(void **state)
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
		UNIT_TEST(linked_gpus_stay_linked),
		UNIT_TEST(gpus_lose_their_link_only_with_the_check_off),
		UNIT_TEST(a_link_in_one_direction_counts),
		UNIT_TEST(unlinked_gpus_may_map_to_linked_gpus),
		UNIT_TEST(gpus_of_one_cpu_node_stay_on_one),
		UNIT_TEST(gpus_of_one_cpu_node_separate_only_with_the_check_off),
		UNIT_TEST(gpus_of_different_cpu_nodes_share_one_only_with_a_warning),
		UNIT_TEST(the_nearest_cpu_node_counts),
		UNIT_TEST(an_xgmi_link_to_the_cpu_needs_an_xgmi_link),
		UNIT_TEST(a_gpu_with_a_cpu_link_needs_a_cpu_link),
		UNIT_TEST(of_equal_gpus_the_lowest_node_is_chosen),
		UNIT_TEST(the_same_card_is_preferred_by_unique_id),
		UNIT_TEST(the_same_slot_is_preferred_by_address_and_gpu_id),
		UNIT_TEST(a_moved_gpu_is_recognised_by_the_gpu_id_of_its_machine),
		UNIT_TEST(gpus_keep_their_ids_before_they_take_the_lowest_nodes),
		UNIT_TEST(links_go_before_staying_on_the_same_device),
		UNIT_TEST(the_mapping_does_not_depend_on_the_order_of_links),
		UNIT_TEST(extra_gpus_do_not_prevent_a_mapping),
		UNIT_TEST(two_saved_gpus_never_share_a_gpu),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
