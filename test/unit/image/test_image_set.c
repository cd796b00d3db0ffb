// SPDX-License-Identifier: GPL-2.0-only
/* Tests how tasks find images by what these say. */
#include <errno.h>

#include "host.h"

#include "criu-amdgpu.pb-c.h"
#include "image/image_set.h"

static void add_kfd(struct image_set *set, int id, uint32_t pid, uint32_t num_gpus)
{
	CriuKfd kfd = CRIU_KFD__INIT;

	kfd.pid = pid;
	kfd.num_of_gpus = num_gpus;
	assert_int_equal(image_set_add_kfd(set, id, &kfd), 0);
}

UNIT_TEST(a_process_finds_its_own_state_by_pid)
{
	_cleanup_(image_set_done) struct image_set set = { 0 };
	int id = -1;

	add_kfd(&set, 3, 103, 1);
	add_kfd(&set, 11, 111, 2);
	assert_int_equal(image_set_find_kfd(&set, 111, &id), 0);
	assert_int_equal(id, 11);
	assert_int_equal(image_set_find_kfd(&set, 103, &id), 0);
	assert_int_equal(id, 3);
	assert_int_equal(image_set_find_kfd(&set, 107, &id), -ENOENT);
	assert_int_equal(unit_count_lines("amdgpu_plugin"), 0);
}

UNIT_TEST(the_image_of_a_second_open_is_not_the_state)
{
	_cleanup_(image_set_done) struct image_set set = { 0 };
	int id;

	add_kfd(&set, 1, 50, 0);
	assert_int_equal(image_set_find_kfd(&set, 50, &id), -ENOENT);
	add_kfd(&set, 2, 50, 1);
	add_kfd(&set, 3, 50, 0);
	assert_int_equal(image_set_find_kfd(&set, 50, &id), 0);
	assert_int_equal(id, 2);
}

UNIT_TEST(two_states_of_one_process_are_refused)
{
	_cleanup_(image_set_done) struct image_set set = { 0 };
	int id;

	add_kfd(&set, 3, 103, 1);
	add_kfd(&set, 4, 103, 1);
	assert_int_equal(image_set_find_kfd(&set, 103, &id), -EINVAL);
	assert_logged("Error (amdgpu_plugin): ", "kfd 3", "kfd 4", "103");
}

UNIT_TEST(the_render_node_of_a_compute_vm_is_found_by_pid_and_minor)
{
	_cleanup_(image_set_done) struct image_set set = { 0 };
	CriuRenderNode node = CRIU_RENDER_NODE__INIT;

	assert_false(image_set_may_have_compute_file(&set, 50, 130));
	node.has_drm_render_minor = true;
	node.drm_render_minor = 130;
	assert_int_equal(image_set_add_render(&set, &node), 0);
	assert_false(image_set_has_compute_file(&set, 50, 130));
	assert_true(image_set_may_have_compute_file(&set, 50, 130));
	assert_false(image_set_may_have_compute_file(&set, 50, 131));
	node.has_compute_pid = true;
	node.compute_pid = 50;
	assert_int_equal(image_set_add_render(&set, &node), 0);
	assert_true(image_set_has_compute_file(&set, 50, 130));
	assert_false(image_set_has_compute_file(&set, 50, 131));
	assert_false(image_set_has_compute_file(&set, 51, 130));
	assert_false(image_set_may_have_compute_file(&set, 51, 131));
}
