// SPDX-License-Identifier: GPL-2.0-only
/* Records of BOs in KFD's private data: what they say, and data without some of them. */
#include "host.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "amdgpu_plugin_util.h"
#include "kernel/kfd_priv.h"
#include "priv_builder.h"

/* Sizes of a BO record: Linux 6.1, Linux 6.18, AMD's out-of-tree driver, the smallest and the
 * largest size that the plugin tries. */
static const size_t bo_sizes[] = { 80, 272, 296, 16, 4096 };

static void set_record(struct builder *b, size_t bo_size, uint32_t index, uint32_t handle,
		       const uint32_t *gpu_ids, size_t num_gpus)
{
	uint8_t *record = b->bytes + 8 + 8 * DEVICES + bo_size * index;

	memset(record, 0, bo_size);
	set(record, 8, handle);
	for (size_t i = 0; i < num_gpus; i++)
		set(record, 12 + 4 * i, gpu_ids[i]);
}

static void a_bo_record_says_its_handle_and_the_gpus_that_map_it(void **state)
{
	static const uint32_t gpu_ids[] = { 0xdfd4, 0xa7ac };
	struct kfd_priv_bo_record record;
	struct builder b;

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		uint64_t bo_size;

		begin(&b, bo_sizes[i]);
		set_record(&b, bo_sizes[i], 2, 17, gpu_ids, 2);
		add_event(&b);
		assert_int_equal(kfd_priv_find_bo_size(&b.priv, &bo_size), 0);
		assert_int_equal(bo_size, bo_sizes[i]);
		assert_int_equal(kfd_priv_read_bo(&b.priv, bo_size, 2, &record), 0);
		assert_int_equal(record.handle, 17);
		assert_int_equal(record.num_gpus, 2);
		assert_memory_equal(record.gpu_ids, gpu_ids, sizeof(gpu_ids));
		assert_int_equal(kfd_priv_read_bo(&b.priv, bo_size, BOS, &record), -EINVAL);
		b.priv.size = 8 + 8 * DEVICES + bo_size * 3 - 1;
		assert_int_equal(kfd_priv_read_bo(&b.priv, bo_size, 2, &record), -EINVAL);
	}
	/* The ids fill a record. */
	begin(&b, 80);
	assert_int_equal(kfd_priv_read_bo(&b.priv, 80, 0, &record), 0);
	assert_int_equal(record.num_gpus, 17);
}

/* Fields of a driver in front of these would be read as handles and as ids of GPUs. */
static void handles_that_differ_show_that_the_fields_are_where_they_should_be(void **state)
{
	static const uint32_t gpus[BOS] = { 0xdfd4, 0xdfd4, 0xa7ac, 0xdfd4 };
	struct builder b;

	(void)state;
	begin(&b, KFD_PRIV_BO_SIZE_SHARED);
	for (uint32_t i = 0; i < BOS; i++)
		set_record(&b, KFD_PRIV_BO_SIZE_SHARED, i, i, gpus, i == 3);
	assert_true(kfd_priv_have_own_handles(&b.priv, KFD_PRIV_BO_SIZE_SHARED, gpus));
	/* each GPU has numbers of its own */
	set_record(&b, KFD_PRIV_BO_SIZE_SHARED, 2, 0, gpus, 0);
	assert_true(kfd_priv_have_own_handles(&b.priv, KFD_PRIV_BO_SIZE_SHARED, gpus));
	set_record(&b, KFD_PRIV_BO_SIZE_SHARED, 1, 0, gpus, 0);
	assert_false(kfd_priv_have_own_handles(&b.priv, KFD_PRIV_BO_SIZE_SHARED, gpus));
	/* and a GPU maps something */
	set_record(&b, KFD_PRIV_BO_SIZE_SHARED, 1, 1, gpus, 0);
	set_record(&b, KFD_PRIV_BO_SIZE_SHARED, 3, 3, gpus, 0);
	assert_false(kfd_priv_have_own_handles(&b.priv, KFD_PRIV_BO_SIZE_SHARED, gpus));
	b.priv.size -= 1;
	assert_false(kfd_priv_have_own_handles(&b.priv, KFD_PRIV_BO_SIZE_SHARED, gpus));
}

static void records_of_bos_are_cut_out(void **state)
{
	static const bool cut[BOS] = { true, false, true, false };
	static const bool none[BOS] = { false };
	uint8_t data[sizeof(((struct builder *)NULL)->bytes)];
	struct builder b;
	size_t size;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bo_sizes); i++) {
		size_t bos = 8 + 8 * DEVICES, bo_size = bo_sizes[i];

		begin(&b, bo_size);
		add_event(&b);
		memcpy(data, b.bytes, b.priv.size);
		assert_int_equal(kfd_priv_cut_bos(&b.priv, none, data, &size), 0);
		assert_int_equal(size, b.priv.size);
		assert_memory_equal(data, b.bytes, size);
		b.priv.bytes = data;
		assert_int_equal(kfd_priv_cut_bos(&b.priv, cut, data, &size), 0);
		assert_int_equal(size, b.priv.size - 2 * bo_size);
		assert_memory_equal(data, b.bytes, bos);
		assert_memory_equal(data + bos, b.bytes + bos + bo_size, bo_size);
		assert_memory_equal(data + bos + bo_size, b.bytes + bos + 3 * bo_size, bo_size);
		assert_memory_equal(data + bos + 2 * bo_size, b.bytes + bos + 4 * bo_size, 64);
	}
	begin(&b, 80);
	b.priv.size--;
	assert_int_equal(kfd_priv_cut_bos(&b.priv, none, b.bytes, &size), -EINVAL);
}

static void a_mark_changes_the_version_and_nothing_else(void **state)
{
	uint8_t data[] = { 1, 0, 0, 0, 7 };
	struct kfd_priv_queue *queues;
	struct builder b;
	size_t num_queues;

	(void)state;
	begin(&b, 80);
	add_queue(&b, 512, 0);
	kfd_priv_mark(b.bytes, b.priv.size);
	assert_int_equal(kfd_priv_list_queues(&b.priv, &queues, &num_queues), 0);
	assert_int_equal(num_queues, 1);
	free(queues);
	kfd_priv_mark(data, sizeof(data));
	assert_memory_equal(data, ((uint8_t[]){ 1, 0, 0, 0x80, 7 }), sizeof(data));
	kfd_priv_unmark(data, sizeof(data));
	assert_memory_equal(data, ((uint8_t[]){ 1, 0, 0, 0, 7 }), sizeof(data));
	kfd_priv_unmark(data, sizeof(data));
	assert_memory_equal(data, ((uint8_t[]){ 1, 0, 0, 0, 7 }), sizeof(data));
	kfd_priv_mark(data, 3);
	assert_memory_equal(data, ((uint8_t[]){ 1, 0, 0, 0, 7 }), sizeof(data));
}

/* The order of the fields is not published: flags, whether the BO is imported, the handle of four
 * words, and padding. */
static void a_share_handle_is_found_in_each_order_of_the_fields(void **state)
{
	static const char *const orders[] = { "fihhhhp", "ifhhhhp", "hhhhfip", "hhhhifp",
					      "fhhhhip", "ihhhhfp", "fiphhhh", "phhhhfi" };
	static const uint32_t handle[] = { 0x1111, 0x2222, 0x3333, 0x4444 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(orders); i++) {
		struct kfd_priv_shared own = { 0 }, import = { 0 }, other = { 0 };
		size_t word = 0;

		print_message("order %s\n", orders[i]);
		for (size_t at = 0; at < KFD_PRIV_SHARED_WORDS; at++) {
			if (orders[i][at] == 'f')
				own.words[at] = import.words[at] = other.words[at] = 7;
			else if (orders[i][at] == 'i')
				import.words[at] = 1;
			else if (orders[i][at] == 'h') {
				own.words[at] = import.words[at] = handle[word++];
				other.words[at] = own.words[at] + 1;
			}
		}
		assert_true(kfd_priv_have_one_handle(&own, &import));
		assert_true(kfd_priv_have_one_handle(&own, &own));
		assert_false(kfd_priv_have_one_handle(&own, &other));
		assert_false(kfd_priv_have_one_handle(&import, &other));
		assert_true(kfd_priv_may_be_shared(&own));
	}
}

static void a_bo_that_was_never_exported_has_no_share_handle(void **state)
{
	struct kfd_priv_shared shared;
	struct builder b;

	(void)state;
	begin(&b, KFD_PRIV_BO_SIZE_SHARED);
	assert_int_equal(kfd_priv_read_shared(&b.priv, KFD_PRIV_BO_SIZE_SHARED, 1, &shared), 0);
	assert_int_equal(shared.words[0], 0x11111111);
	assert_int_equal(shared.words[6], 0x11111111);
	set_record(&b, KFD_PRIV_BO_SIZE_SHARED, 1, 3, NULL, 0);
	assert_int_equal(kfd_priv_read_shared(&b.priv, KFD_PRIV_BO_SIZE_SHARED, 1, &shared), 0);
	assert_false(kfd_priv_may_be_shared(&shared));
	assert_false(kfd_priv_have_one_handle(&shared, &shared));
	assert_int_equal(kfd_priv_read_shared(&b.priv, KFD_PRIV_BO_SIZE_SHARED, BOS, &shared),
			 -EINVAL);
	/* the records of Linux have no such fields */
	begin(&b, KFD_PRIV_BO_SIZE_LINUX);
	assert_int_equal(kfd_priv_read_shared(&b.priv, KFD_PRIV_BO_SIZE_LINUX, 1, &shared), 0);
	assert_false(kfd_priv_may_be_shared(&shared));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNIT_TEST(a_bo_record_says_its_handle_and_the_gpus_that_map_it),
		UNIT_TEST(handles_that_differ_show_that_the_fields_are_where_they_should_be),
		UNIT_TEST(records_of_bos_are_cut_out),
		UNIT_TEST(a_share_handle_is_found_in_each_order_of_the_fields),
		UNIT_TEST(a_bo_that_was_never_exported_has_no_share_handle),
		UNIT_TEST(a_mark_changes_the_version_and_nothing_else),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
