// SPDX-License-Identifier: GPL-2.0-only
/* Private data of KFD in the layouts of known drivers, of unknown drivers, and damaged: its queues,
 * its SVM ranges, and the records that the plugin adds if more GPUs are visible. */
#include "host.h"

#include "kernel/kfd_priv.h"
#include "priv_builder.h"

/* Sizes of a BO record: Linux 6.1, Linux 6.18, AMD's out-of-tree driver with room for 64 and for 16
 * GPUs. */
static const size_t bo_sizes[] = { 80, 272, 296, 104 };

static int list_queues(const struct kfd_priv *priv, struct kfd_priv_queue **ret_queues,
		       size_t *ret_num_queues)
{
	struct kfd_priv parsed = *priv;

	parsed.layout = kfd_priv_parse(priv);
	return kfd_priv_list_queues(&parsed, ret_queues, ret_num_queues);
}

static void add_svm(struct builder *b)
{
	set(add(b, 24 + 8 * (4 + DEVICES)), 0, 2);
	b->priv.num_objects++;
}

static void assert_svm(const struct builder *b, bool expected)
{
	const struct kfd_layout layout = kfd_priv_parse(&b->priv);

	assert_true(layout.is_known);
	assert_int_equal(layout.num_svm_ranges > 0, expected);
}

static void assert_num_queues(const struct builder *b, size_t expected)
{
	_cleanup_free_ struct kfd_priv_queue *queues = NULL;
	size_t num_queues;

	assert_int_equal(list_queues(&b->priv, &queues, &num_queues), 0);
	assert_int_equal(num_queues, expected);
}

static void assert_no_queue_list(const struct builder *b, int error)
{
	struct kfd_priv_queue *queues;
	size_t num_queues;

	assert_int_equal(list_queues(&b->priv, &queues, &num_queues), error);
}

static void assert_unknown(const struct builder *b)
{
	const struct kfd_layout layout = kfd_priv_parse(&b->priv);

	assert_false(layout.is_known || layout.is_ambiguous || layout.bo_size);
	assert_no_queue_list(b, -EINVAL);
}

UNIT_TEST(queues_are_listed_in_all_known_layouts)
{
	for (size_t i = 0; i < ARRAY_SIZE(bo_sizes); i++) {
		struct kfd_priv_queue *queues;
		size_t num_queues;
		struct builder b;
		uint8_t *second;

		begin(&b, bo_sizes[i]);
		add_event(&b);
		add_queue(&b, 2048, 4096);
		second = b.bytes + b.priv.size;
		add_queue(&b, 512, 0);
		set(second, 64, 0xbeef);
		set(second, 68, KFD_PRIV_QUEUE_SDMA_XGMI);
		set(second, 76, 17);
		set(second, 104, 0x123000);
		add_svm(&b);
		assert_int_equal(list_queues(&b.priv, &queues, &num_queues), 0);
		assert_int_equal(num_queues, 2);
		assert_int_equal(queues[0].mqd_size, 2048);
		assert_int_equal(queues[1].gpu_id, 0xbeef);
		assert_int_equal(queues[1].type, KFD_PRIV_QUEUE_SDMA_XGMI);
		assert_int_equal(queues[1].id, 17);
		assert_int_equal(queues[1].cwsr_size, 0x123000);
		assert_int_equal(queues[1].mqd_size, 512);
		free(queues);
		/* Cut data is refused, and nothing beyond its end is read. */
		for (size_t size = 0; size < b.priv.size; size++) {
			struct kfd_priv cut = b.priv;

			cut.bytes = memcpy(malloc(size + 1), b.bytes, size);
			cut.size = size;
			assert_int_equal(list_queues(&cut, &queues, &num_queues), -EINVAL);
			free((void *)(uintptr_t)cut.bytes);
		}
		set(b.bytes, 0, 2);
		assert_int_equal(list_queues(&b.priv, &queues, &num_queues), -EINVAL);
	}
}

/* The counts, sizes and bytes of a dump with AMD's out-of-tree driver, from
 * https://github.com/checkpoint-restore/criu/issues/2663. */
UNIT_TEST(a_reported_dump_of_amds_driver_is_parsed)
{
	struct builder b = { .priv = { .num_devices = 1, .num_bos = 159 } };

	b.priv.bytes = b.bytes;
	set(add(&b, 8), 0, 1);
	(void)add(&b, 8);
	for (uint32_t i = 0; i < b.priv.num_bos; i++)
		set(add(&b, 296), 8, i + 1);
	for (int i = 0; i < 2; i++) {
		add_queue(&b, 2048, 12288);
		add_queue(&b, 512, 0);
	}
	for (int i = 0; i < 82; i++)
		add_event(&b);
	assert_int_equal(b.priv.num_objects, 86);
	assert_int_equal(b.priv.size, 82504);
	assert_num_queues(&b, 4);
	assert_svm(&b, false);
}

UNIT_TEST(without_bos_the_size_of_their_records_does_not_matter)
{
	struct builder b;

	begin(&b, 0);
	b.priv.num_bos = 0;
	add_queue(&b, 512, 4096);
	add_event(&b);
	assert_num_queues(&b, 1);
	assert_svm(&b, false);
	add_svm(&b);
	assert_num_queues(&b, 1);
	assert_svm(&b, true);
	b.priv.size += 8;
	assert_unknown(&b);
}

UNIT_TEST(bo_records_of_other_sizes_are_unknown)
{
	static const size_t sizes[] = { 0, 8, 12, 76, 84, 264, 276, 292, 304, 4096 };

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct builder b;

		begin(&b, sizes[i]);
		add_queue(&b, 512, 4096);
		add_event(&b);
		assert_unknown(&b);
	}
}

/* BO records are full of zeros, and a queue has a GPU. With records of 272 bytes, the objects would
 * begin inside the last record, and fill the data. */
UNIT_TEST(zeros_are_no_queue)
{
	const size_t bos = 8 + 8 * DEVICES, last = (size_t)BOS * (296 - 272);
	struct builder b;

	begin(&b, 296);
	memset(b.bytes + bos, 0, (size_t)BOS * 296);
	add_queue(&b, 64, 0);
	set(b.bytes + bos + (size_t)BOS * 272, 112, (uint32_t)last + 64);
	assert_num_queues(&b, 1);
	set(b.bytes + bos + (size_t)BOS * 272, 64, 0xdfd4);
	assert_no_queue_list(&b, -ENOTUNIQ);
}

/* With records of @bo_size, the object is a queue. With records of @other_size, the object has
 * @type and lies inside that queue. */
static void begin_ambiguous(struct builder *b, size_t bo_size, size_t other_size, uint32_t type)
{
	size_t at = BOS * (other_size - bo_size),
	       other_bytes = type == 2 ? 24 + 8 * (4 + DEVICES) : 64;
	uint8_t *queue;

	begin(b, bo_size);
	queue = b->bytes + b->priv.size;
	add_queue(b, (uint32_t)(at + other_bytes - 120), 0);
	set(queue, at, type);
}

UNIT_TEST(data_that_fits_two_layouts_is_not_read)
{
	struct builder b;

	for (uint32_t type = 1; type <= 2; type++) {
		begin_ambiguous(&b, 272, 296, type);
		assert_no_queue_list(&b, -ENOTUNIQ);
		assert_true(kfd_priv_parse(&b.priv).is_ambiguous);
	}
}

static void add_event_of(struct builder *b, uint32_t id, uint32_t type)
{
	uint8_t *record = b->bytes + b->priv.size;

	add_event(b);
	set(record, 16, id);
	set(record, 24, type);
}

UNIT_TEST(the_first_event_that_restore_does_not_make_is_found)
{
	for (size_t i = 0; i < ARRAY_SIZE(bo_sizes); i++) {
		struct kfd_priv_event event = { 0 };
		struct builder b;

		begin(&b, bo_sizes[i]);
		add_queue(&b, 512, 4096);
		add_event_of(&b, 1, 8);
		assert_false(kfd_priv_parse(&b.priv).has_unsupported_event);
		add_event_of(&b, 77, 6);
		add_event_of(&b, 78, 7);
		add_svm(&b);
		event = kfd_priv_parse(&b.priv).unsupported_event;
		assert_int_equal(event.id, 77);
		assert_int_equal(event.type, 6);
		b.priv.size--;
		assert_false(kfd_priv_parse(&b.priv).has_unsupported_event);
	}
}

UNIT_TEST(counts_and_sizes_beyond_the_data_are_refused)
{
	struct builder b;

	begin(&b, 80);
	add_queue(&b, 512, 0);
	b.priv.num_objects = UINT32_MAX;
	assert_unknown(&b);
	b.priv.num_objects = 1;
	b.priv.num_bos = UINT32_MAX;
	assert_unknown(&b);
	b.priv.num_bos = BOS;
	b.priv.num_devices = UINT32_MAX;
	assert_unknown(&b);
	b.priv.num_devices = DEVICES;
	assert_svm(&b, false);
	set(b.bytes + b.priv.size - 512 - 120, 112, UINT32_MAX);
	set(b.bytes + b.priv.size - 512 - 120, 108, UINT32_MAX);
	assert_unknown(&b);
	set(b.bytes + b.priv.size - 512 - 120, 0, 3);
	assert_unknown(&b);
}

static uint32_t roll(unsigned short state[static 3], uint32_t sides)
{
	return (uint32_t)nrand48(state) % sides;
}

/* The data has memory of its exact size, so that a sanitizer detects a read beyond its end. */
UNIT_TEST(random_bytes_are_never_read_beyond_their_end)
{
	for (uint32_t seed = 0; seed < 20000; seed++) {
		unsigned short dice[3] = { (unsigned short)seed, 0, 0x330e };
		struct kfd_priv priv = {
			.size = roll(dice, 700),
			.num_devices = roll(dice, 4),
			.num_bos = roll(dice, 3),
			.num_objects = roll(dice, 6),
		};
		_cleanup_free_ uint8_t *bytes = malloc(priv.size + !priv.size);
		struct kfd_priv_queue *queues;
		size_t num_queues;

		assert_non_null(bytes);
		for (size_t i = 0; i < priv.size; i++)
			bytes[i] = i % 4 ? 0 : (uint8_t)roll(dice, 4);
		priv.bytes = bytes;
		if (!list_queues(&priv, &queues, &num_queues))
			free(queues);
	}
}

UNIT_TEST(devices_are_added_after_the_others)
{
	static uint8_t to[sizeof(((struct builder *)NULL)->bytes)];
	struct builder b;

	for (size_t size = 0; size < ARRAY_SIZE(bo_sizes); size++) {
		begin(&b, bo_sizes[size]);
		memset(b.bytes + 8, 0x55, 8 * DEVICES);
		add_event(&b);
		memset(to, 0xee, sizeof(to));
		assert_int_equal(kfd_priv_size_with(&b.priv, 2), b.priv.size + 16);
		kfd_priv_copy_with(&b.priv, 2, to);
		assert_memory_equal(to, b.bytes, 8 + 8 * DEVICES);
		for (size_t i = 0; i < 16; i++)
			assert_int_equal(to[8 + 8 * DEVICES + i], 0);
		/* The records of BOs, with the fields that drivers append, and the objects. */
		assert_memory_equal(to + 8 + 8 * (DEVICES + 2), b.bytes + 8 + 8 * DEVICES,
				    b.priv.size - 8 - 8 * DEVICES);
		assert_int_equal(to[b.priv.size + 16], 0xee);
	}
	/* Without devices to add, the copy equals any data. */
	b.priv.size = 3;
	assert_int_equal(kfd_priv_size_with(&b.priv, 0), 3);
	kfd_priv_copy_with(&b.priv, 0, to);
	assert_memory_equal(to, b.bytes, 3);
}
