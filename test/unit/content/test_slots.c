// SPDX-License-Identifier: GPL-2.0-only
/* Tests the number and size of slots: by the staging memory, the contents, the processors and the
 * GPUs. Tests the default of the staging memory. */
#include <errno.h>

#include "host.h"
#include "processors.h"

#include "content/sdma.h"
#include "content/slots.h"
#include "kernel/cgroup.h"

#define PAGE CONTENT_ALIGNMENT
#define KIB  1024ull
#define MIB  (1024 * KIB)
#define GIB  (1024 * MIB)

static uint64_t free_bytes;

/* The plugin's call comes here. */
int __wrap_cgroup_find_memory(uint64_t *ret_bytes);
int __wrap_cgroup_find_memory(uint64_t *ret_bytes)
{
	if (!free_bytes)
		return -EIO;
	*ret_bytes = free_bytes;
	return 0;
}

static int begin(void **state)
{
	(void)state;
	processors = 16;
	return 0;
}

/* What the slots have together with their last huge page. */
static uint64_t memory_of(const struct slots *slots)
{
	uint64_t bytes = slots->count * slots->memory;

	if (bytes < SDMA_HUGE_PAGE)
		return bytes;
	return (bytes + SDMA_HUGE_PAGE - 1) / SDMA_HUGE_PAGE * SDMA_HUGE_PAGE;
}

TEST_WITH(slots_fit_in_the_staging_memory, begin, NULL)
{
	for (uint64_t bytes = 3 * PAGE; bytes < 80 * MIB; bytes += 257 * PAGE) {
		struct slots slots = slots_choose(bytes, GIB, 1, 1);

		assert_in_range(memory_of(&slots), 1, bytes);
		assert_int_equal(slots.memory % PAGE, 0);
		assert_int_equal(slots.size, slots.memory - 2 * SLOT_MARGIN);
		assert_in_range(slots.count, 1, 12);
	}
}

TEST_WITH(much_memory_has_large_slots, begin, NULL)
{
	assert_int_equal(slots_choose(48 * MIB, GIB, 1, 1).memory, 4 * MIB);
	assert_int_equal(slots_choose(48 * MIB, GIB, 1, 1).count, 12);
	assert_int_equal(slots_choose(64 * MIB, GIB, 1, 1).memory, 4 * MIB);
	assert_int_equal(slots_choose(GIB, 8 * GIB, 1, 1).memory, 4 * MIB);
	assert_int_equal(slots_choose(GIB, 8 * GIB, 1, 1).count, 12);
}

TEST_WITH(one_slot_of_one_page_is_the_least, begin, NULL)
{
	struct slots slots = slots_choose(0, GIB, 1, 1);

	assert_int_equal(slots.count, 1);
	assert_int_equal(slots.size, PAGE);
}

TEST_WITH(little_memory_has_fewer_slots_before_they_become_small, begin, NULL)
{
	assert_int_equal(slots_choose(8 * MIB, GIB, 1, 1).count, 12);
	assert_int_equal(slots_choose(4 * MIB, GIB, 1, 1).count, 8);
	assert_int_equal(slots_choose(4 * MIB, GIB, 1, 1).memory, 512 * KIB);
	assert_int_equal(slots_choose(2 * MIB, GIB, 1, 1).count, 4);
	assert_int_equal(slots_choose(1 * MIB, GIB, 1, 1).count, 4);
	assert_int_equal(slots_choose(1 * MIB, GIB, 1, 1).memory, 256 * KIB);
}

TEST_WITH(few_contents_have_few_slots, begin, NULL)
{
	struct slots slots = slots_choose(8 * MIB, PAGE, 1, 1);

	assert_int_equal(slots.count, 1);
	assert_int_equal(slots.size, PAGE);
	slots = slots_choose(8 * MIB, MIB, 1, 1);
	assert_in_range(slots.count * slots.memory, MIB, MIB + 8 * SLOT_MARGIN);
}

TEST_WITH(gpus_share_the_processors, begin, NULL)
{
	assert_int_equal(slots_choose(48 * MIB, GIB, 8, 1).memory, 4 * MIB);
	assert_int_equal(slots_choose(8 * MIB, GIB, 2, 1).count, 12);
	assert_int_equal(slots_choose(8 * MIB, GIB, 4, 1).count, 8);
	assert_int_equal(slots_choose(8 * MIB, GIB, 8, 1).count, 4);
	assert_int_equal(slots_choose(8 * MIB, GIB, 64, 1).count, 4);
	processors = 128;
	assert_int_equal(slots_choose(8 * MIB, GIB, 8, 1).count, 12);
	processors = 2;
	assert_int_equal(slots_choose(8 * MIB, GIB, 1, 1).count, 8);
	assert_int_equal(slots_choose(8 * MIB, GIB, 1, 1).memory, MIB);
	assert_int_equal(slots_choose(8 * MIB, GIB, 2, 1).count, 4);
}

TEST_WITH(unknown_processors_are_many, begin, NULL)
{
	processors = 0;
	assert_int_equal(slots_choose(8 * MIB, GIB, 8, 1).count, 12);
	assert_int_equal(slots_choose_pairs(8 * MIB, GIB, 8).threads, 8);
	assert_int_equal(slots_choose_pairs(48 * MIB, GIB, 8).threads, 12);
}

TEST_WITH(slots_of_pairs_are_even, begin, NULL)
{
	for (uint64_t bytes = 6 * PAGE; bytes < 80 * MIB; bytes += 257 * PAGE) {
		struct slots slots = slots_choose_pairs(bytes, GIB, 1);

		assert_in_range(memory_of(&slots), 1, bytes);
		assert_int_equal(slots.count, 2 * slots.threads);
		assert_in_range(slots.threads, 1, 12);
	}
}

TEST_WITH(pairs_share_the_memory_of_other_slots, begin, NULL)
{
	struct slots slots = slots_choose_pairs(48 * MIB, GIB, 1);

	assert_int_equal(slots.threads, 12);
	assert_int_equal(slots.count, 24);
	assert_int_equal(slots.memory, 2 * MIB);
}

TEST_WITH(a_thread_with_a_pair_has_a_processor, begin, NULL)
{
	assert_int_equal(slots_choose_pairs(48 * MIB, GIB, 8).threads, 2);
	assert_int_equal(slots_choose_pairs(48 * MIB, GIB, 8).memory, 2 * MIB);
	assert_int_equal(slots_choose_pairs(48 * MIB, GIB, 64).threads, 1);
	processors = 2;
	assert_int_equal(slots_choose_pairs(48 * MIB, GIB, 1).threads, 2);
	assert_int_equal(slots_choose_pairs(48 * MIB, GIB, 1).memory, 4 * MIB);
}

TEST_WITH(one_page_has_one_pair, begin, NULL)
{
	struct slots slots = slots_choose_pairs(8 * MIB, PAGE, 1);

	assert_int_equal(slots.count, 2);
	assert_int_equal(slots.threads, 1);
	assert_int_equal(slots.size, PAGE);
}

TEST_WITH(aligned_contents_fit_in_the_same_memory, begin, NULL)
{
	for (uint64_t bytes = 3 * PAGE; bytes < 80 * MIB; bytes += 257 * PAGE) {
		struct slots before = slots_choose(bytes, GIB, 1, 1);
		struct slots slots = slots_choose(bytes, GIB, 1, 2 * MIB);

		assert_in_range(memory_of(&slots), 1, memory_of(&before));
		assert_int_equal(slots.threads, slots.count);
		assert_int_equal(slots.size, slots.memory - 2 * SLOT_MARGIN);
		/* Four slots of 2 MiB with their margins. */
		if (before.count * before.memory >= 8 * MIB + 8 * SLOT_MARGIN)
			assert_int_equal(slots.size % (2 * MIB), 0);
		else
			assert_int_equal(slots.memory, before.memory);
	}
}

TEST_WITH(a_slot_of_huge_pages_has_one, begin, NULL)
{
	struct slots slots = slots_choose(48 * MIB, GIB, 1, 2 * MIB);

	assert_int_equal(slots.size, 2 * MIB);
	assert_int_equal(slots.count, 12);
}

TEST_WITH(a_slot_of_smaller_units_has_several, begin, NULL)
{
	struct slots slots = slots_choose(48 * MIB, GIB, 1, 256 * KIB);

	assert_int_equal(slots.size, 4 * MIB);
	assert_int_equal(slots.count, 11);
}

UNIT_TEST(staging_memory_grows_and_shrinks_with_the_free_memory)
{
	static const struct {
		uint64_t free, staging;
	} rows[] = {
		{ 256 * GIB, 48 * MIB }, { 20 * GIB, 20 * MIB }, { 8 * GIB, 8 * MIB },
		{ GIB, 8 * MIB },        { 512 * MIB, 8 * MIB }, { 64 * MIB, MIB },
		{ 0, 8 * MIB },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		free_bytes = rows[i].free;
		assert_int_equal(slots_choose_bytes(), rows[i].staging);
	}
}
