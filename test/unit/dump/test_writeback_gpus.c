// SPDX-License-Identifier: GPL-2.0-only
/* How much memory the GPUs of a job get for contents that are written later. */
#include "dump_task.h"

#include <amdgpu_drm.h>

#include "content/pool.h"
#include "dump/writeback.h"

#define MIB  (1ULL << 20)
#define MANY (1ULL << 50)
/* What a GPU gets beyond what it holds. */
#define GROWTH(mib) ((mib)*MIB / 32 + 32 * MIB)

/* What the drivers of the GPUs report, in the order of the questions. */
static struct drm_amdgpu_memory_info reports[8];
static size_t questions;
/* Of the last choice. */
static struct pool_share *shares;
static size_t count;

static int answer(unsigned long request, void *argument)
{
	const struct drm_amdgpu_info *info = argument;

	assert_true(request == DRM_IOCTL_AMDGPU_INFO);
	assert_int_equal(info->query, AMDGPU_INFO_MEMORY);
	assert_int_equal(info->return_size, sizeof(reports[0]));
	memcpy((void *)(uintptr_t)info->return_pointer, &reports[questions++], sizeof(reports[0]));
	return 0;
}

/* GPU @index holds so much, and its GTT has @gtt. All in MiB. */
static void report(size_t index, uint64_t vram, uint64_t gtt_used, uint64_t gtt)
{
	reports[index].vram.heap_usage = vram * MIB;
	reports[index].gtt.heap_usage = gtt_used * MIB;
	reports[index].gtt.usable_heap_size = gtt * MIB;
}

static void choose(pid_t top, uint64_t bytes)
{
	free(shares);
	shares = NULL;
	questions = count = 0;
	kernel.other_render = answer;
	assert_int_equal(writeback_choose_shares(top, bytes, &shares, &count), 0);
}

static int end_choices(void **state)
{
	free(shares);
	shares = NULL;
	memset(reports, 0, sizeof(reports));
	return end(state);
}

#define CHOICE(name) TEST_WITH(name, begin, end_choices)

/* The machine has eight GPUs. */
static void make_job(unsigned int num_gpus)
{
	kernel.machine = "eight";
	(void)make_process();
	kernel.num_open_renders = num_gpus;
	for (size_t i = 0; i < ARRAY_SIZE(reports); i++)
		report(i, 1000, 24, 65536);
}

CHOICE(the_gpus_that_the_job_has_open_get_what_they_hold)
{
	make_job(2);
	report(1, 64, 0, 65536);
	choose(tracee, MANY);
	assert_int_equal(count, 2);
	assert_int_equal(shares[0].minor, 128);
	assert_int_equal(shares[0].bytes, 1024 * MIB + GROWTH(1024));
	assert_int_equal(shares[1].minor, 129);
	assert_int_equal(shares[1].bytes, 64 * MIB + GROWTH(64));
}

CHOICE(a_job_without_gpus_gets_nothing)
{
	make_job(0);
	choose(tracee, MANY);
	assert_int_equal(count, 0);
	assert_int_equal(questions, 0);
}

/* CRIU before 4.0. */
CHOICE(all_gpus_get_memory_if_the_job_is_not_known)
{
	make_job(2);
	choose(0, MANY);
	assert_int_equal(count, 8);
}

CHOICE(memory_that_is_short_is_shared_out)
{
	make_job(2);
	report(0, 3000, 0, 65536);
	report(1, 1000, 0, 65536);
	choose(tracee, 400 * MIB);
	assert_int_equal(count, 2);
	assert_true(shares[0].bytes + shares[1].bytes <= 400 * MIB);
	assert_true(shares[0].bytes + shares[1].bytes > 399 * MIB);
	assert_true(shares[0].bytes > 2 * shares[1].bytes);
}

/* An eighth of a GTT stays free, too. */
CHOICE(more_than_the_gtt_has_room_for_is_not_taken)
{
	make_job(3);
	report(1, 1000, 100, 800);
	report(2, 1000, 790, 800);
	choose(tracee, MANY);
	assert_int_equal(count, 3);
	assert_int_equal(shares[1].bytes, 600 * MIB);
	assert_int_equal(shares[2].bytes, 0);
	assert_int_equal(unit_count_lines("renderD129: 600 MiB for contents of 1100 MiB"), 1);
	assert_int_equal(unit_count_lines("would evict buffers"), 2);
}
