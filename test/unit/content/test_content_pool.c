// SPDX-License-Identifier: GPL-2.0-only
/* Tests contents that wait in memory to be written: when they are written. */
#include "drm_calls.h"

#include "content/pool.h"
#include "content_set.h"
#include "processors.h"

static struct {
	ino_t image;
	/* The first write of the image: how many ranges had been copied. */
	atomic_bool has_written;
	unsigned int copied;
} writes;

ssize_t pwrite(int fd, const void *bytes, size_t size, off_t offset)
{
	if (is_inode(fd, writes.image) && !atomic_exchange(&writes.has_written, true))
		writes.copied = gpu.submissions;
	return system_call(SYS_pwrite64, fd, bytes, size, offset);
}

static int begin(void **state)
{
	int ret = drm_calls_begin(state);

	memset(&writes, 0, sizeof(writes));
	/* Slow enough that threads that write could begin before the end. */
	sim_write("engine_latency_us", "5000");
	/* Also on a tmpfs, pwrite() writes. */
	processors = 1;
	return ret;
}

#define TEST(name) TEST_WITH(name, begin, drm_calls_end)

static const uint64_t sizes[] = { 5 * MIB, PAGE, 3 * MIB, 0 };

/* Saves the BOs with so many bytes of memory. */
static void save_behind(uint64_t bytes)
{
	const struct pool_share share = { FIRST_MINOR, bytes };
	_cleanup_set_ struct set *set = make_set_in_file(sizes, &writes.image);
	struct content_run *run;

	fill(set);
	assert_int_equal(pool_new(&share, 1, 0, &set->job.pool), 0);
	assert_int_equal(pool_start(set->job.pool), 0);
	gpu.submissions = 0;
	assert_int_equal(content_start_save(&set->job, 1, &settings, NULL, &run), 0);
	assert_int_equal(content_await_copies(run), 0);
	pool_close_gpus(set->job.pool);
	assert_int_equal(content_finish(run), 0);
	pool_free(set->job.pool);
	assert_true(image_is_filled(set));
	assert_true(writes.has_written);
}

/* The copy is what the job stands still for. */
TEST(contents_are_written_after_the_copy)
{
	save_behind(10 * MIB);
	assert_in_range(gpu.submissions, 6, UINT32_MAX);
	assert_int_equal(writes.copied, gpu.submissions);
}

TEST(contents_are_written_earlier_where_the_memory_is_too_small)
{
	save_behind(2 * MIB);
	assert_in_range(writes.copied, 1, gpu.submissions - 1);
}
