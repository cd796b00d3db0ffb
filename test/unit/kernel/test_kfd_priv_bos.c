// SPDX-License-Identifier: GPL-2.0-only
/* Records of BOs in KFD's private data: what they say, and data without some of them. */
#include "host.h"

#include "kernel/kfd_priv.h"
#include "priv_builder.h"

/* Sizes of a BO record: Linux 6.1, Linux 6.18, AMD's out-of-tree driver with room for 64 and for 16
 * GPUs. */
static const size_t bo_sizes[] = { 80, 272, 296, 104 };

static struct kfd_priv parse(const struct builder *b)
{
	struct kfd_priv priv = b->priv;

	priv.layout = kfd_priv_parse(&priv);
	return priv;
}

static int read_bo(const struct builder *b, uint32_t index, struct kfd_priv_bo_record *ret_record)
{
	const struct kfd_priv priv = parse(b);

	return kfd_priv_read_bo(&priv, index, ret_record);
}

static int cut_bos(const struct builder *b, const bool *cut, uint8_t *bytes, size_t *ret_size)
{
	const struct kfd_priv priv = parse(b);

	return kfd_priv_cut_bos(&priv, cut, bytes, ret_size);
}

static void write_share_handle(struct builder *b, uint32_t index, const uint32_t *handle)
{
	const struct kfd_priv priv = parse(b);

	kfd_priv_write_share_handle(&priv, index, handle, b->bytes);
}

static void set_record(struct builder *b, size_t bo_size, uint32_t index, uint32_t handle,
		       const uint32_t *gpu_ids, size_t num_gpus)
{
	uint8_t *record = b->bytes + 8 + 8 * DEVICES + bo_size * index;

	memset(record, 0, bo_size);
	set(record, 8, handle);
	for (size_t i = 0; i < num_gpus; i++)
		set(record, 12 + 4 * i, gpu_ids[i]);
}

UNIT_TEST(a_bo_record_says_its_handle_and_the_gpus_that_map_it)
{
	static const uint32_t gpu_ids[] = { 0xdfd4, 0xa7ac };
	struct kfd_priv_bo_record record;
	struct builder b;

	for (size_t i = 0; i < ARRAY_SIZE(bo_sizes); i++) {
		struct kfd_priv priv;

		begin(&b, bo_sizes[i]);
		set_record(&b, bo_sizes[i], 2, 17, gpu_ids, 2);
		add_event(&b);
		priv = parse(&b);
		assert_true(priv.layout.is_known);
		assert_int_equal(priv.layout.bo_size, bo_sizes[i]);
		assert_int_equal(kfd_priv_read_bo(&priv, 2, &record), 0);
		assert_int_equal(record.handle, 17);
		assert_int_equal(record.num_gpus, 2);
		assert_memory_equal(record.gpu_ids, gpu_ids, sizeof(gpu_ids));
		assert_int_equal(kfd_priv_read_bo(&priv, BOS, &record), -EINVAL);
		priv.size = 8 + 8 * DEVICES + bo_sizes[i] * 3 - 1;
		assert_int_equal(kfd_priv_read_bo(&priv, 2, &record), -EINVAL);
	}
	/* The ids fill a record. */
	begin(&b, 80);
	assert_int_equal(read_bo(&b, 0, &record), 0);
	assert_int_equal(record.num_gpus, 16);
	/* no known driver writes such records */
	begin(&b, 304);
	assert_int_equal(read_bo(&b, 0, &record), -EINVAL);
}

UNIT_TEST(records_of_bos_are_cut_out)
{
	static const bool cut[BOS] = { true, false, true, false };
	static const bool none[BOS] = { false };
	uint8_t data[sizeof(((struct builder *)NULL)->bytes)];
	struct builder b;
	size_t size;

	for (size_t i = 0; i < ARRAY_SIZE(bo_sizes); i++) {
		size_t bos = 8 + 8 * DEVICES, bo_size = bo_sizes[i];

		begin(&b, bo_size);
		add_event(&b);
		memcpy(data, b.bytes, b.priv.size);
		assert_int_equal(cut_bos(&b, none, data, &size), 0);
		assert_int_equal(size, b.priv.size);
		assert_memory_equal(data, b.bytes, size);
		b.priv.bytes = data;
		assert_int_equal(cut_bos(&b, cut, data, &size), 0);
		assert_int_equal(size, b.priv.size - 2 * bo_size);
		assert_memory_equal(data, b.bytes, bos);
		assert_memory_equal(data + bos, b.bytes + bos + bo_size, bo_size);
		assert_memory_equal(data + bos + bo_size, b.bytes + bos + 3 * bo_size, bo_size);
		assert_memory_equal(data + bos + 2 * bo_size, b.bytes + bos + 4 * bo_size, 64);
	}
	begin(&b, 80);
	b.priv.size--;
	assert_int_equal(cut_bos(&b, none, b.bytes, &size), -EINVAL);
}

UNIT_TEST(a_mark_changes_the_version_and_nothing_else)
{
	uint8_t data[] = { 1, 0, 0, 0, 7 };
	_cleanup_free_ struct kfd_priv_queue *queues = NULL;
	struct kfd_priv priv;
	struct builder b;
	size_t num_queues;

	begin(&b, 80);
	add_queue(&b, 512, 0);
	kfd_priv_mark(b.bytes, b.priv.size);
	priv = parse(&b);
	assert_int_equal(kfd_priv_list_queues(&priv, &queues, &num_queues), 0);
	assert_int_equal(num_queues, 1);
	kfd_priv_mark(data, sizeof(data));
	assert_memory_equal(data, ((uint8_t[]){ 1, 0, 0, 0x80, 7 }), sizeof(data));
	kfd_priv_unmark(data, sizeof(data));
	assert_memory_equal(data, ((uint8_t[]){ 1, 0, 0, 0, 7 }), sizeof(data));
	kfd_priv_unmark(data, sizeof(data));
	assert_memory_equal(data, ((uint8_t[]){ 1, 0, 0, 0, 7 }), sizeof(data));
	kfd_priv_mark(data, 3);
	assert_memory_equal(data, ((uint8_t[]){ 1, 0, 0, 0, 7 }), sizeof(data));
}

UNIT_TEST(the_fields_of_legacy_ipc_are_behind_the_gpus)
{
	static const uint32_t handle[] = { 0x1111, 0, 0x3333, 0x4444 }, other[] = { 0, 0, 0, 1 };
	static const struct {
		size_t size, at;
	} cases[] = { { 80, 0 }, { 272, 0 }, { 296, 268 }, { 104, 76 } };
	struct kfd_priv_bo_record record;
	struct builder b;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint8_t *bytes;

		begin(&b, cases[i].size);
		bytes = b.bytes + 8 + 8 * DEVICES + cases[i].size;
		set_record(&b, cases[i].size, 1, 3, NULL, 0);
		assert_int_equal(read_bo(&b, 1, &record), 0);
		assert_int_equal(record.ipc.is_known, cases[i].at != 0);
		assert_false(record.ipc.is_imported);
		assert_false(kfd_priv_has_share_handle(&record.ipc));
		if (!cases[i].at)
			continue;
		/* is_imported, the flags of the export, the handle */
		set(bytes, cases[i].at, 1);
		set(bytes, cases[i].at + 4, 0xffffffff);
		write_share_handle(&b, 1, handle);
		assert_memory_equal(bytes + cases[i].at + 8, handle, sizeof(handle));
		assert_int_equal(read_bo(&b, 1, &record), 0);
		assert_true(record.ipc.is_imported);
		assert_true(kfd_priv_has_share_handle(&record.ipc));
		assert_memory_equal(record.ipc.handle, handle, sizeof(handle));
		write_share_handle(&b, 1, other);
		assert_int_equal(read_bo(&b, 1, &record), 0);
		assert_true(kfd_priv_has_share_handle(&record.ipc));
		assert_int_equal(record.num_gpus, 0);
		assert_int_equal(record.handle, 3);
	}
}
