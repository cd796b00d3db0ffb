// SPDX-License-Identifier: GPL-2.0-only
/* Private data as the driver lays it out, and as damage or other drivers might: whether it has SVM
 * ranges, and what becomes of it when more GPUs are visible. */
#include "host.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "amdgpu_plugin_priv.h"
#include "made_up.h"

#define DEVICES 3
#define BOS     4

struct builder {
	uint8_t bytes[65536];
	struct priv_data priv;
};

static uint8_t *add(struct builder *b, size_t size)
{
	uint8_t *record = b->bytes + b->priv.size;

	memset(record, 0, size);
	b->priv.size += size;
	return record;
}

static void set(uint8_t *record, size_t offset, uint32_t value)
{
	memcpy(record + offset, &value, sizeof(value));
}

static void begin(struct builder *b, size_t bo_size)
{
	*b = (struct builder){ .priv = { .num_devices = DEVICES, .num_bos = BOS } };
	b->priv.bytes = b->bytes;
	set(add(b, 8), 0, 1);
	(void)add(b, 8 * DEVICES);
	for (uint32_t i = 0; i < BOS; i++)
		memset(add(b, bo_size), (int)(0x10 + i), bo_size);
}

static void add_queue(struct builder *b, uint32_t mqd_size, uint32_t ctl_stack_size)
{
	uint8_t *record = add(b, 120 + mqd_size + ctl_stack_size);

	set(record, 108, ctl_stack_size);
	set(record, 112, mqd_size);
	memset(record + 120, 0x77, mqd_size + ctl_stack_size);
	b->priv.num_objects++;
}

static void add_event(struct builder *b)
{
	set(add(b, 64), 0, 1);
	b->priv.num_objects++;
}

static void add_svm(struct builder *b)
{
	set(add(b, 24 + 8 * (4 + DEVICES)), 0, 2);
	b->priv.num_objects++;
}

static void assert_svm(const struct builder *b, bool expected)
{
	bool has_svm = !expected;

	assert_int_equal(priv_has_svm(&b->priv, &has_svm), 0);
	assert_int_equal(has_svm, expected);
}

static void queues_are_listed_from_both_layouts(void **state)
{
	static const size_t bo_sizes[] = { 80, 272 };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct priv_queue *queues;
		size_t num_queues;
		struct builder b;
		uint8_t *second;

		begin(&b, bo_sizes[i]);
		add_event(&b);
		add_queue(&b, 2048, 4096);
		second = b.bytes + b.priv.size;
		add_queue(&b, 512, 0);
		set(second, 64, 0xbeef);
		set(second, 68, PRIV_QUEUE_SDMA_XGMI);
		set(second, 76, 17);
		set(second, 104, 0x123000);
		add_svm(&b);
		assert_int_equal(priv_list_queues(&b.priv, &queues, &num_queues), 0);
		assert_int_equal(num_queues, 2);
		assert_int_equal(queues[0].mqd_size, 2048);
		assert_int_equal(queues[1].gpu_id, 0xbeef);
		assert_int_equal(queues[1].type, PRIV_QUEUE_SDMA_XGMI);
		assert_int_equal(queues[1].id, 17);
		assert_int_equal(queues[1].cwsr_size, 0x123000);
		assert_int_equal(queues[1].mqd_size, 512);
		free(queues);
		/* Whatever is cut off is missed, and nothing beyond the end is read. */
		for (size_t size = 0; size < b.priv.size; size++) {
			struct priv_data cut = b.priv;

			cut.bytes = memcpy(malloc(size + 1), b.bytes, size);
			cut.size = size;
			assert_int_equal(priv_list_queues(&cut, &queues, &num_queues), -EINVAL);
			free((void *)(uintptr_t)cut.bytes);
		}
		set(b.bytes, 0, 2);
		assert_int_equal(priv_list_queues(&b.priv, &queues, &num_queues), -EINVAL);
	}
}

static void svm_ranges_are_found_among_objects_of_both_layouts(void **state)
{
	static const size_t bo_sizes[] = { 80, 272 };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct builder b;

		begin(&b, bo_sizes[i]);
		assert_svm(&b, false);
		add_queue(&b, 512, 4096);
		add_event(&b);
		add_queue(&b, 2048, 0);
		add_event(&b);
		assert_svm(&b, false);
		add_svm(&b);
		assert_svm(&b, true);
		add_event(&b);
		assert_svm(&b, true);
	}
}

static void data_of_another_length_is_of_no_known_layout(void **state)
{
	struct builder b;
	bool has_svm;
	size_t size;

	(void)state;
	begin(&b, 272);
	add_queue(&b, 512, 4096);
	add_event(&b);
	size = b.priv.size;
	for (size_t cut = 1; cut < size; cut += cut < 600 ? 1 : 97) {
		b.priv.size = size - cut;
		assert_int_equal(priv_has_svm(&b.priv, &has_svm), -EINVAL);
	}
	b.priv.size = 0;
	assert_int_equal(priv_has_svm(&b.priv, &has_svm), -EINVAL);
	b.priv.size = size + 1;
	assert_int_equal(priv_has_svm(&b.priv, &has_svm), -EINVAL);
	b.priv.size = size;
	assert_svm(&b, false);
}

static void counts_and_sizes_beyond_the_data_are_refused(void **state)
{
	struct builder b;
	bool has_svm;

	(void)state;
	begin(&b, 80);
	add_queue(&b, 512, 0);
	b.priv.num_objects = UINT32_MAX;
	assert_int_equal(priv_has_svm(&b.priv, &has_svm), -EINVAL);
	b.priv.num_objects = 1;
	b.priv.num_bos = UINT32_MAX;
	assert_int_equal(priv_has_svm(&b.priv, &has_svm), -EINVAL);
	b.priv.num_bos = BOS;
	b.priv.num_devices = UINT32_MAX;
	assert_int_equal(priv_has_svm(&b.priv, &has_svm), -EINVAL);
	b.priv.num_devices = DEVICES;
	assert_svm(&b, false);
	set(b.bytes + b.priv.size - 512 - 120, 112, UINT32_MAX);
	set(b.bytes + b.priv.size - 512 - 120, 108, UINT32_MAX);
	assert_int_equal(priv_has_svm(&b.priv, &has_svm), -EINVAL);
	set(b.bytes + b.priv.size - 512 - 120, 0, 3);
	assert_int_equal(priv_has_svm(&b.priv, &has_svm), -EINVAL);
}

/* In memory of just that size, so that a sanitizer sees a byte too far. */
static void random_bytes_are_never_read_beyond_their_end(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 20000; seed++) {
		struct dice dice = { seed };
		struct priv_data priv = {
			.size = dice_roll(&dice, 700),
			.num_devices = dice_roll(&dice, 4),
			.num_bos = dice_roll(&dice, 3),
			.num_objects = dice_roll(&dice, 6),
		};
		uint8_t *bytes = malloc(priv.size + !priv.size);
		bool has_svm;

		assert_non_null(bytes);
		for (size_t i = 0; i < priv.size; i++)
			bytes[i] = i % 4 ? 0 : (uint8_t)dice_roll(&dice, 4);
		priv.bytes = bytes;
		(void)priv_has_svm(&priv, &has_svm);
		free(bytes);
	}
}

static void devices_are_added_behind_the_others(void **state)
{
	uint8_t to[65536];
	struct builder b;

	(void)state;
	begin(&b, 80);
	memset(b.bytes + 8, 0x55, 8 * DEVICES);
	add_event(&b);
	memset(to, 0xee, sizeof(to));
	assert_int_equal(priv_size_with(&b.priv, 2), b.priv.size + 16);
	priv_copy_with(&b.priv, 2, to);
	assert_memory_equal(to, b.bytes, 8 + 8 * DEVICES);
	for (size_t i = 0; i < 16; i++)
		assert_int_equal(to[8 + 8 * DEVICES + i], 0);
	assert_memory_equal(to + 8 + 8 * (DEVICES + 2), b.bytes + 8 + 8 * DEVICES,
			    b.priv.size - 8 - 8 * DEVICES);
	assert_int_equal(to[b.priv.size + 16], 0xee);
	/* None added: as it was, whatever it is. */
	b.priv.size = 3;
	assert_int_equal(priv_size_with(&b.priv, 0), 3);
	priv_copy_with(&b.priv, 0, to);
	assert_memory_equal(to, b.bytes, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNIT_TEST(queues_are_listed_from_both_layouts),
		UNIT_TEST(svm_ranges_are_found_among_objects_of_both_layouts),
		UNIT_TEST(data_of_another_length_is_of_no_known_layout),
		UNIT_TEST(counts_and_sizes_beyond_the_data_are_refused),
		UNIT_TEST(random_bytes_are_never_read_beyond_their_end),
		UNIT_TEST(devices_are_added_behind_the_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
