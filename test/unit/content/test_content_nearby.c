// SPDX-License-Identifier: GPL-2.0-only
/* Tests loads from the page cache, which are read in two ways: each range at once to its slot, or
 * in parts to memory of the thread and from there past the caches. */
#include "drm_calls.h"

#include "content_set.h"

#include <sys/syscall.h>

#include "storage/uncached_copy.h"

/* The most bytes of a part, with those before it. Slots are larger in these tests. */
#define PART ((64u << 10) + HEADER)
/* The bytes of a range with a staging memory of 1 MiB. */
#define RANGE (248 << 10)
/* Ranges that a trial reads in one way altogether. */
#define TRIED 64
/* So slow that the other way wins. */
#define SLOW_US 100000

static struct {
	ino_t image;
	/* The range at this offset was read in parts. */
	off_t observed;
	bool observed_in_parts;
	/* Ranges that were read at once, and those that were read in parts. */
	atomic_uint whole;
	atomic_uint in_parts;
	bool whole_is_slow;
	bool parts_are_slow;
} reads;

ssize_t pread(int fd, void *bytes, size_t size, off_t offset)
{
	if (is_inode(fd, reads.image)) {
		/* The first part of a range. */
		bool begins = offset % RANGE == 0;

		reads.whole += size > PART;
		reads.in_parts += size <= PART && begins;
		if (offset == reads.observed)
			reads.observed_in_parts = size <= PART;
		if (size > PART ? reads.whole_is_slow : begins && reads.parts_are_slow)
			(void)usleep(SLOW_US);
	}
	return system_call(SYS_pread64, fd, bytes, size, offset);
}

static int begin(void **state)
{
	memset(&reads, 0, sizeof(reads));
	return drm_calls_begin(state);
}

/* 265 ranges of a staging memory of 1 MiB, of small and large BOs. */
static const uint64_t many_ranges[] = {
	5 * MIB, PAGE, 12 * MIB + PAGE, 3 * PAGE, 46 * MIB + PAGE, MIB, PAGE, 0
};

/* Saves a set, and forgets the contents of its BOs. */
static struct set *save_set(void)
{
	struct set *set = make_set(many_ranges);
	struct stat stat;

	fill(set);
	assert_int_equal(content_save(&set->job, 1, &settings), 0);
	assert_true(image_is_filled(set));
	for (size_t i = 0; i < set->num_bos; i++) {
		void *memory = map_bo(&set->bos[i]);

		memset(memory, 0xa5, set->bos[i].size);
		(void)munmap(memory, set->bos[i].size);
	}
	assert_int_equal(fstat(set->job.image_fd, &stat), 0);
	reads.image = stat.st_ino;
	reads.whole = reads.in_parts = 0;
	return set;
}

/* Some processors have no stores past the caches. */
static struct set *save_set_for_both_ways(void)
{
	if (!uncached_copy_exists())
		skip();
	return save_set();
}

#define TEST(name) TEST_WITH(name, begin, drm_calls_end)

TEST(both_ways_are_tried_and_read_the_same_bytes)
{
	_cleanup_set_ struct set *set = save_set_for_both_ways();

	assert_int_equal(content_load(&set->job, 1, &settings), 0);
	assert_true(bos_are_filled(set));
	assert_in_range(reads.whole, TRIED, 265 - TRIED);
	assert_in_range(reads.in_parts, TRIED, 265 - TRIED);
}

TEST(the_faster_way_reads_the_rest)
{
	_cleanup_set_ struct set *set = save_set_for_both_ways();

	reads.whole_is_slow = true;
	assert_int_equal(content_load(&set->job, 1, &settings), 0);
	assert_true(reads.in_parts > reads.whole);
	assert_true(bos_are_filled(set));

	reads.whole_is_slow = false;
	reads.parts_are_slow = true;
	reads.whole = reads.in_parts = 0;
	assert_int_equal(content_load(&set->job, 1, &settings), 0);
	assert_true(reads.whole > reads.in_parts);
	assert_true(bos_are_filled(set));
}

/* Byte @at of range @range, whose contents are HEADER bytes after its offset in the file. */
static void detect_change(struct set *set, unsigned int range, uint64_t at, bool in_parts)
{
	uint64_t offset = HEADER + (uint64_t)range * RANGE + at;

	print_message("case range %u, byte %llu\n", range, (unsigned long long)at);
	reads.observed = (off_t)range * RANGE;
	change_byte(set, offset);
	assert_int_equal(content_load(&set->job, 1, &settings), -EBADMSG);
	assert_int_equal(reads.observed_in_parts, in_parts);
	change_byte(set, offset);
}

/* In each part of a range of the first turn, and of one of the second turn. */
TEST(a_changed_byte_is_detected_in_each_way)
{
	_cleanup_set_ struct set *set = save_set_for_both_ways();

	for (uint64_t part = 0; part < 4; part++) {
		detect_change(set, 16, part * (64 << 10) + 97 * part, false);
		detect_change(set, 48, part * (64 << 10) + 97 * part, true);
	}
	assert_int_equal(content_load(&set->job, 1, &settings), 0);
}
