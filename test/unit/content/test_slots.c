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

/* The sizes in KiB. 0 for an expected value: not looked at. */
static const struct {
	const char *name;
	unsigned int processors;
	bool pairs;
	size_t staging, contents, gpus, unit;
	unsigned int count, threads;
	size_t memory, size;
} choices[] = {
	{ "much memory: large slots", 16, false, 48 << 10, 1 << 20, 1, 0, 12, 12, 4096, 0 },
	{ "more memory: no larger ones", 16, false, 64 << 10, 1 << 20, 1, 0, 0, 0, 4096, 0 },
	{ "a GiB", 16, false, 1 << 20, 8 << 20, 1, 0, 12, 0, 4096, 0 },
	{ "at least a slot of a page", 16, false, 0, 1 << 20, 1, 0, 1, 0, 0, 4 },
	{ "little memory", 16, false, 8192, 1 << 20, 1, 0, 12, 0, 0, 0 },
	{ "less memory: fewer slots", 16, false, 4096, 1 << 20, 1, 0, 8, 0, 512, 0 },
	{ "2 MiB", 16, false, 2048, 1 << 20, 1, 0, 4, 0, 0, 0 },
	{ "1 MiB: smaller slots", 16, false, 1024, 1 << 20, 1, 0, 4, 0, 256, 0 },
	{ "a page of contents", 16, false, 8192, 4, 1, 0, 1, 0, 0, 4 },
	{ "eight GPUs, much memory", 16, false, 48 << 10, 1 << 20, 8, 0, 0, 0, 4096, 0 },
	{ "GPUs share the processors: 2", 16, false, 8192, 1 << 20, 2, 0, 12, 0, 0, 0 },
	{ "GPUs share the processors: 4", 16, false, 8192, 1 << 20, 4, 0, 8, 0, 0, 0 },
	{ "GPUs share the processors: 8", 16, false, 8192, 1 << 20, 8, 0, 4, 0, 0, 0 },
	{ "GPUs share the processors: 64", 16, false, 8192, 1 << 20, 64, 0, 4, 0, 0, 0 },
	{ "many processors", 128, false, 8192, 1 << 20, 8, 0, 12, 0, 0, 0 },
	{ "two processors", 2, false, 8192, 1 << 20, 1, 0, 8, 0, 1024, 0 },
	{ "two processors, two GPUs", 2, false, 8192, 1 << 20, 2, 0, 4, 0, 0, 0 },
	{ "unknown processors are many", 0, false, 8192, 1 << 20, 8, 0, 12, 0, 0, 0 },
	{ "pairs, unknown processors", 0, true, 8192, 1 << 20, 8, 0, 0, 8, 0, 0 },
	{ "pairs, the same, much memory", 0, true, 48 << 10, 1 << 20, 8, 0, 0, 12, 0, 0 },
	{ "pairs share the memory", 16, true, 48 << 10, 1 << 20, 1, 0, 24, 12, 2048, 0 },
	{ "a thread has a processor", 16, true, 48 << 10, 1 << 20, 8, 0, 0, 2, 2048, 0 },
	{ "more GPUs than processors", 16, true, 48 << 10, 1 << 20, 64, 0, 0, 1, 0, 0 },
	{ "pairs, two processors", 2, true, 48 << 10, 1 << 20, 1, 0, 0, 2, 4096, 0 },
	{ "a page of contents, one pair", 16, true, 8192, 4, 1, 0, 2, 1, 0, 4 },
	{ "units of huge pages", 16, false, 48 << 10, 1 << 20, 1, 2048, 12, 0, 0, 2048 },
	{ "smaller units", 16, false, 48 << 10, 1 << 20, 1, 256, 11, 0, 0, 4096 },
};

UNIT_TEST(slots_fit_the_memory_the_contents_and_the_processors)
{
	for (size_t i = 0; i < ARRAY_SIZE(choices); i++) {
		const uint64_t staging = choices[i].staging * KIB,
			       contents = choices[i].contents * KIB;
		const uint64_t unit = choices[i].unit ? choices[i].unit * KIB : 1;
		struct slots slots;

		print_message("case %s\n", choices[i].name);
		processors = choices[i].processors;
		slots = choices[i].pairs ? slots_choose_pairs(staging, contents, choices[i].gpus)
					 : slots_choose(staging, contents, choices[i].gpus, unit);
		if (choices[i].count)
			assert_int_equal(slots.count, choices[i].count);
		if (choices[i].threads)
			assert_int_equal(slots.threads, choices[i].threads);
		if (choices[i].memory)
			assert_int_equal(slots.memory, choices[i].memory * KIB);
		if (choices[i].size)
			assert_int_equal(slots.size, choices[i].size * KIB);
	}
}

TEST_WITH(few_contents_have_no_more_memory, begin, NULL)
{
	struct slots slots = slots_choose(8 * MIB, MIB, 1, 1);

	assert_in_range(slots.count * slots.memory, MIB, MIB + 8 * SLOT_MARGIN);
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
