// SPDX-License-Identifier: GPL-2.0-only
/* Mapping the saved GPUs of several processes together, and GPUs that share BOs. */
#include "machines.h"
#include "map/explain.h"

/* GPUs with gpu_ids from @first_id at one CPU node, @per_device partitions on each PCI device. */
static void make_cards(struct topology *topology, uint32_t first_id, uint32_t count,
		       uint32_t per_device)
{
	*topology = (struct topology){ 0 };
	add_cpu(topology, 0);
	for (uint32_t i = 0; i < count; i++) {
		add_gpu(topology, 1 + i, first_id + i, 0);
		topology->nodes[1 + i].location_id = (first_id + i / per_device) << 8;
	}
}

/* @saved with the CPU and GPU number @gpu only, as a process sees it in its device cgroup. */
static struct topology only(const struct topology *saved, size_t gpu)
{
	struct topology one = { 0 };

	add_cpu(&one, 0);
	*topology_add(&one) = saved->nodes[1 + gpu];
	one.nodes[1].links = NULL;
	one.nodes[1].num_links = 0;
	add_link(&one, one.nodes[1].node_id, 0, LINK_PCIE, 20);
	return one;
}

/* Returns the gpu_id of the present GPU, or 0 if there is no mapping. */
static uint32_t map_one(const struct map_tree *tree, const struct topology *saved,
			const struct topology *local, const char *device_map)
{
	struct map_options options = all_checks;
	_cleanup_(map_done) struct gpu_map map = { 0 };
	uint32_t id = 0;

	options.device_map = (char *)device_map;
	assert_int_equal(map_decide_in_tree(tree, saved, local, &options, &map), 0);
	if (explain_map(&map) == 0)
		id = map.local[1]->gpu_id;
	return id;
}

/* Two processes that see one GPU each. */
static struct two {
	struct topology saved, local, first, second;
	struct map_tree tree;
} make_two(uint32_t num_local)
{
	struct two two = { 0 };

	make_cards(&two.saved, 0x10, 2, 1);
	make_cards(&two.local, 0x20, num_local, 1);
	two.first = only(&two.saved, 0);
	two.second = only(&two.saved, 1);
	assert_int_equal(map_tree_add(&two.tree, &two.first), 0);
	assert_int_equal(map_tree_add(&two.tree, &two.second), 0);
	return two;
}

static void two_done(struct two *two)
{
	topology_done(&two->saved);
	topology_done(&two->local);
	topology_done(&two->first);
	topology_done(&two->second);
	map_tree_done(&two->tree);
}

UNIT_TEST(two_processes_with_a_gpu_each_get_two_gpus)
{
	struct two two = make_two(2);

	assert_int_equal(map_one(&two.tree, &two.first, &two.local, NULL), 0x20);
	assert_int_equal(map_one(&two.tree, &two.second, &two.local, NULL), 0x21);
	two_done(&two);
}

UNIT_TEST(a_device_map_names_the_gpus_of_all_processes)
{
	static const char pairs[] = "0x10=0x21,0x11=0x20";
	struct two two = make_two(2);

	assert_int_equal(map_one(&two.tree, &two.first, &two.local, pairs), 0x21);
	assert_int_equal(map_one(&two.tree, &two.second, &two.local, pairs), 0x20);
	assert_logged("by device-map");
	unit_forget_lines();
	assert_int_equal(map_one(&two.tree, &two.first, &two.local, "0x12=0x20"), 0);
	assert_logged("Error (amdgpu_plugin): ", "no saved GPU \"0x12\"");
	two_done(&two);
}

/* The pair of the other process names a GPU that this task does not see. */
UNIT_TEST(a_pair_of_another_process_may_name_a_hidden_gpu)
{
	static const char pairs[] = "0x10=0x21,0x11=0x20";
	struct two two = make_two(2);
	_cleanup_(topology_done) struct topology visible = only(&two.local, 1);

	assert_int_equal(map_one(&two.tree, &two.first, &visible, pairs), 0x21);
	two_done(&two);
}

UNIT_TEST(with_too_few_gpus_each_process_is_mapped_alone)
{
	struct two two = make_two(1);

	assert_int_equal(map_one(&two.tree, &two.first, &two.local, NULL), 0x20);
	assert_int_equal(map_one(&two.tree, &two.second, &two.local, NULL), 0x20);
	assert_logged("amdgpu_plugin: map: ", "is mapped alone");
	two_done(&two);
}

/* Of a stream, a task knows its own image only. */
UNIT_TEST(a_process_of_a_stream_takes_no_gpu_of_another)
{
	struct two two = make_two(2);
	_cleanup_free_ uint32_t *claims = calloc(MAP_CLAIMS, sizeof(*claims));
	_cleanup_(map_tree_done) struct map_tree tree = { .partial = true, .claims = claims };

	assert_non_null(claims);
	assert_int_equal(map_tree_add(&tree, &two.second), 0);
	assert_int_equal(map_one(&tree, &two.second, &two.local, "0x10=0x21"), 0x20);
	claims[0x20] = 0x10;
	assert_int_equal(map_one(&tree, &two.second, &two.local, NULL), 0x21);
	assert_int_equal(map_one(&tree, &two.second, &two.local, "0x11=0x20"), 0x20);
	/* Another process has the same saved GPU. */
	claims[0x20] = 0;
	claims[0x21] = 0x11;
	assert_int_equal(map_one(&tree, &two.second, &two.local, NULL), 0x21);
	claims[0x20] = 0x10;
	claims[0x21] = 0x12;
	assert_int_equal(map_one(&tree, &two.second, &two.local, NULL), 0x20);
	two_done(&two);
}

/* One of them has moved, so both know their GPU by the same id. */
UNIT_TEST(processes_may_know_two_gpus_by_one_id)
{
	struct two two = make_two(2);
	_cleanup_(map_tree_done) struct map_tree tree = { 0 };

	two.second.nodes[1].gpu_id = two.first.nodes[1].gpu_id;
	assert_int_equal(map_tree_add(&tree, &two.first), 0);
	assert_int_equal(map_tree_add(&tree, &two.second), 0);
	assert_int_equal(map_one(&tree, &two.first, &two.local, NULL), 0x20);
	assert_int_equal(map_one(&tree, &two.second, &two.local, NULL), 0x21);
	two_done(&two);
}

UNIT_TEST(images_of_two_machines_are_mapped_one_by_one)
{
	struct two two = make_two(2);
	_cleanup_(map_tree_done) struct map_tree tree = { 0 };

	two.second.nodes[1].node_id = two.first.nodes[1].node_id;
	assert_int_equal(map_tree_add(&tree, &two.first), 0);
	assert_int_equal(map_tree_add(&tree, &two.second), 0);
	assert_int_equal(map_one(&tree, &two.second, &two.local, NULL), 0x20);
	two_done(&two);
}

/* Links that no single image has still count. */
UNIT_TEST(the_links_of_all_images_count)
{
	_cleanup_(topology_done) struct topology saved = { 0 }, local = { 0 }, both = { 0 },
						 first = { 0 }, second = { 0 };
	_cleanup_(map_tree_done) struct map_tree tree = { 0 };

	make_cards(&saved, 0x10, 3, 1);
	make_cards(&local, 0x20, 4, 1);
	make_cards(&both, 0x10, 2, 1);
	join(&both, 1, 2);
	join(&local, 2, 4);
	first = only(&saved, 0);
	second = only(&saved, 2);
	assert_int_equal(map_tree_add(&tree, &first), 0);
	assert_int_equal(map_tree_add(&tree, &both), 0);
	assert_int_equal(map_tree_add(&tree, &second), 0);
	assert_int_equal(map_one(&tree, &first, &local, NULL), 0x21);
	assert_int_equal(map_one(&tree, &second, &local, NULL), 0x20);
}

/* The image shows one partition of the first card, and two of another. */
static void make_partitions(struct topology *saved, struct topology *local)
{
	make_cards(saved, 0x10, 2, 2);
	make_cards(local, 0x20, 3, 1);
	local->nodes[3].location_id = local->nodes[2].location_id;
}

UNIT_TEST(of_equal_mappings_one_keeps_partitions_of_a_card_together)
{
	_cleanup_(topology_done) struct topology saved = { 0 }, local = { 0 };

	make_partitions(&saved, &local);
	assert_map(&saved, &local, (const uint32_t[]){ 0x21, 0x22 });
	/* Keeping a GPU counts for more. */
	saved.nodes[1].unique_id = local.nodes[1].unique_id = 7;
	assert_map(&saved, &local, (const uint32_t[]){ 0x20, 0x21 });
}

UNIT_TEST(partitions_without_a_card_of_their_own_may_part)
{
	_cleanup_(topology_done) struct topology saved = { 0 }, local = { 0 };

	make_cards(&saved, 0x10, 2, 2);
	make_cards(&local, 0x20, 2, 1);
	assert_map(&saved, &local, (const uint32_t[]){ 0x20, 0x21 });
}

/* Maps two GPUs that share a BO. */
static int map_sharing(const struct topology *saved, const struct topology *local, uint32_t *ids)
{
	struct map_sharing sharing[] = { { 1, true, 1 }, { 1, false, 2 } };
	struct map_tree tree = { .sharing = sharing, .num_sharing = ARRAY_SIZE(sharing) };
	_cleanup_(map_done) struct gpu_map map = { 0 };
	int ret;

	assert_int_equal(map_tree_add(&tree, saved), 0);
	assert_int_equal(map_decide_in_tree(&tree, saved, local, &all_checks, &map), 0);
	ret = explain_map(&map);
	for (size_t i = 0; !ret && i < 2; i++)
		ids[i] = map.local[1 + i]->gpu_id;
	topology_done(&tree.saved);
	return ret;
}

UNIT_TEST(gpus_that_share_a_bo_keep_their_relation)
{
	_cleanup_(topology_done) struct topology saved = { 0 }, local = { 0 };
	uint32_t ids[2];

	make_partitions(&saved, &local);
	saved.nodes[1].unique_id = local.nodes[1].unique_id = 7;
	assert_int_equal(map_sharing(&saved, &local, ids), 0);
	assert_int_equal(ids[0], 0x21);
	assert_int_equal(ids[1], 0x22);
	/* Now the two are on different cards. */
	saved.nodes[2].location_id = 0x4200;
	saved.nodes[1].unique_id = 0;
	local.nodes[1].unique_id = 0;
	local.nodes[2].location_id = local.nodes[1].location_id;
	assert_int_equal(map_sharing(&saved, &local, ids), 0);
	assert_int_equal(ids[0], 0x20);
	assert_int_equal(ids[1], 0x22);
	local.nodes[3].location_id = local.nodes[1].location_id;
	unit_forget_lines();
	assert_int_equal(map_sharing(&saved, &local, ids), -ENODEV);
	assert_logged("Error (amdgpu_plugin): ", "share", "0x0010 0x0011", "PCI device");
}

/* Two GPUs that may be partitions, with numbers @first and @second. */
static void make_numbered(struct topology *topology, uint32_t first_id, uint32_t first,
			  uint32_t second)
{
	make_cards(topology, first_id, 2, 1);
	for (size_t i = 1; i <= 2; i++)
		topology->nodes[i].gfx_target_version = TOPOLOGY_GFX940 + 2;
	topology->nodes[1].location_id += first;
	topology->nodes[2].location_id += second;
}

UNIT_TEST(a_copy_queue_keeps_the_number_of_its_partition)
{
	static const struct {
		uint32_t saved, first, second;
		bool has_queue, is_same_card, location_unknown;
		uint32_t expected;
	} cases[] = {
		{ 1, 0, 1, true, false, false, 0x21 },
		/* The first present GPU is the same card. */
		{ 1, 0, 1, true, true, false, 0x21 },
		{ 1, 0, 1, false, true, false, 0x20 },
		/* Without a queue, the number still decides between equal GPUs. */
		{ 1, 0, 1, false, false, false, 0x21 },
		{ 1, 1, 1, true, false, false, 0x20 },
		/* No present GPU has the number: queue_check_task() names the queue. */
		{ 1, 0, 2, true, false, false, 0x20 },
		{ 1, 0, 1, true, false, true, 0x20 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct topology both, local, saved;
		struct map_tree tree = { 0 };

		print_message("case %zu\n", i);
		make_numbered(&both, 0x10, cases[i].saved, 0);
		make_numbered(&local, 0x20, cases[i].first, cases[i].second);
		saved = only(&both, 0);
		saved.nodes[1].location_unknown = cases[i].location_unknown;
		saved.nodes[1].unique_id = 7;
		local.nodes[1].unique_id = cases[i].is_same_card ? 7 : 8;
		assert_int_equal(map_tree_add(&tree, &saved), 0);
		if (cases[i].has_queue)
			assert_int_equal(map_tree_add_copy_node(&tree, saved.nodes[1].node_id), 0);
		assert_int_equal(map_one(&tree, &saved, &local, NULL), cases[i].expected);
		map_tree_done(&tree);
		topology_done(&both);
		topology_done(&local);
		topology_done(&saved);
	}
}
