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

UNIT_TEST(gpus_of_different_cpu_nodes_share_one_only_with_a_warning)
{
	_cleanup_(topology_done) struct topology saved = { 0 }, local = { 0 };

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

UNIT_TEST(a_moved_gpu_is_recognised_by_the_gpu_id_of_its_machine)
{
	_cleanup_(topology_done) struct topology saved = { 0 }, local = { 0 };

	make_choice(&saved, &local);
	/* The process knows the GPU by an id that another GPU has on this machine. */
	saved.nodes[1].gpu_id = 0x2222;
	saved.nodes[1].actual_gpu_id = 0x3333;
	saved.nodes[1].location_id = local.nodes[2].location_id;
	assert_map(&saved, &local, (const uint32_t[]){ 0x3333 });
}

UNIT_TEST(gpus_keep_their_ids_before_they_take_the_lowest_nodes)
{
	_cleanup_(topology_done) struct topology saved = { 0 }, local = { 0 };

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
}
