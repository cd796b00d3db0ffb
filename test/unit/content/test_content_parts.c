// SPDX-License-Identifier: GPL-2.0-only
/* Tests loads from the page cache: a range is read in parts, and each part gets its checksums. The
 * engine copies one range while the thread reads the next. */
#include "drm_calls.h"

#include "content_set.h"
#include "processors.h"

#include <sys/syscall.h>

#define PART (256u << 10)
/* The bytes of a range: a slot of 1 MiB without its margins. */
#define RANGE (MIB - 2 * PAGE)

/* The most bytes that a call has read from the image, and the calls. Also how often a copy had been
 * polled when bytes were read after the first copy, and before the second. */
static struct {
	ino_t image;
	atomic_size_t most;
	atomic_uint calls;
	/* UINT_MAX: no bytes were read between the two. */
	atomic_uint polls;
} reads;

ssize_t pread(int fd, void *bytes, size_t size, off_t offset)
{
	if (is_inode(fd, reads.image)) {
		reads.calls++;
		if (size > reads.most)
			reads.most = size;
		if (gpu.submissions == 1)
			reads.polls = gpu.polls;
	}
	return system_call(SYS_pread64, fd, bytes, size, offset);
}

static int begin(void **state)
{
	memset(&reads, 0, sizeof(reads));
	processors = 4;
	return drm_calls_begin(state);
}

/* Small and large BOs. */
static const uint64_t sizes[] = { 5 * MIB, PAGE, 6 * MIB + PAGE, 3 * PAGE, MIB, PAGE, 0 };

static int load(struct set *set)
{
	struct content_settings large = settings;

	large.staging_bytes = 8 * MIB;
	reads.calls = reads.most = 0;
	reads.polls = UINT_MAX;
	gpu.submissions = gpu.polls = 0;
	return content_load(&set->job, 1, &large);
}

/* Saves a set, and forgets the contents of its BOs. */
static struct set *save_set(void)
{
	struct set *set = make_set(sizes);
	struct stat stat;

	fill(set);
	assert_int_equal(content_save(&set->job, 1, &settings), 0);
	for (size_t i = 0; i < set->num_bos; i++) {
		void *memory = map_bo(&set->bos[i]);

		memset(memory, 0xa5, set->bos[i].size);
		(void)munmap(memory, set->bos[i].size);
	}
	assert_int_equal(fstat(set->job.image_fd, &stat), 0);
	reads.image = stat.st_ino;
	return set;
}

#define TEST(name) TEST_WITH(name, begin, drm_calls_end)

TEST(ranges_are_read_in_parts)
{
	_cleanup_set_ struct set *set = save_set();

	assert_int_equal(load(set), 0);
	assert_true(bos_are_filled(set));
	assert_int_equal(reads.most, PART + HEADER);
	/* 12 ranges of four parts, and a last one. */
	assert_in_range(reads.calls, 48, 52);
}

TEST(a_changed_byte_of_each_part_is_detected)
{
	_cleanup_set_ struct set *set = save_set();

	for (uint64_t part = 0; part < 8; part++) {
		uint64_t at = part / 4 * RANGE + part % 4 * PART + 97 * part;

		print_message("case byte %llu\n", (unsigned long long)at);
		change_byte(set, HEADER + at);
		assert_int_equal(load(set), -EBADMSG);
		change_byte(set, HEADER + at);
	}
	assert_int_equal(load(set), 0);
}

TEST(a_range_is_read_while_the_engine_copies_the_one_before)
{
	_cleanup_set_ struct set *set = NULL;

	processors = 1;
	set = save_set();
	assert_int_equal(load(set), 0);
	assert_true(bos_are_filled(set));
	assert_int_equal(reads.polls, 0);
}
