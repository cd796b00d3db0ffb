// SPDX-License-Identifier: GPL-2.0-only
/* When memory for contents that are written later is taken, and when not. test_writeback_gpus.c
 * tests how much of it. */
#include "dump_task.h"

#include <amdgpu_drm.h>
#include <linux/magic.h>
#include <sys/file.h>
#include <sys/vfs.h>

#include "content/pool.h"
#include "dump/writeback.h"
#include "session/dump_session.h"

#define EIGHT MACHINES "/eight"

static struct {
	unsigned int taken;
	uint64_t bytes, floor;
	/* The type of the file system of the image directory. */
	long type;
} keeps;

int fstatfs(int fd, struct statfs *stat)
{
	(void)fd;
	*stat = (struct statfs){ .f_type = keeps.type };
	return 0;
}

bool __wrap_after_tasks_is_possible(void);
bool __wrap_after_tasks_is_possible(void)
{
	return true;
}

/* Whether the steps of a wait take no time. */
static bool is_hurried;

int __real_nanosleep(const struct timespec *step, struct timespec *left);
int __wrap_nanosleep(const struct timespec *step, struct timespec *left);
int __wrap_nanosleep(const struct timespec *step, struct timespec *left)
{
	return is_hurried ? 0 : __real_nanosleep(step, left);
}

/* As for a GPU that registers nothing. */
int __wrap_pool_new(const struct pool_share *shares, size_t count, uint64_t floor,
		    struct pool **ret_pool);
int __wrap_pool_new(const struct pool_share *shares, size_t count, uint64_t floor,
		    struct pool **ret_pool)
{
	(void)ret_pool;
	keeps.taken++;
	keeps.floor = floor;
	for (size_t i = 0; i < count; i++)
		keeps.bytes += shares[i].bytes;
	return -ENOMEM;
}

static int report(unsigned long request, void *argument)
{
	const struct drm_amdgpu_info *info = argument;
	struct drm_amdgpu_memory_info *memory = (void *)(uintptr_t)info->return_pointer;

	(void)request;
	memory->vram.heap_usage = 1 << 20;
	memory->gtt.usable_heap_size = 1ULL << 40;
	return 0;
}

static const struct options options = { .dump_memory = 16 << 20 };
static struct dump_session session;

/* A job on two GPUs, and a dump with the option. */
static int begin_session(void **state)
{
	int ret = begin(state);

	memset(&keeps, 0, sizeof(keeps));
	kernel.machine = "eight";
	kernel.other_render = report;
	kernel.num_open_renders = 2;
	(void)make_process();
	session = (struct dump_session){ .options = &options };
	return ret;
}

#define SESSION(name) TEST_WITH(name, begin_session, end)

/* Some versions of CRIU name a task several times. */
SESSION(memory_is_taken_once)
{
	writeback_prepare(&session, tracee);
	writeback_prepare(&session, tracee);
	assert_int_equal(keeps.taken, 1);
	assert_in_range(keeps.bytes, (16 << 20) - 2, 16 << 20);
	assert_true(keeps.floor > 0);
}

SESSION(images_in_memory_get_none)
{
	static const long types[] = { TMPFS_MAGIC, RAMFS_MAGIC };

	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		session = (struct dump_session){ .options = &options };
		keeps.type = types[i];
		writeback_prepare(&session, tracee);
		assert_int_equal(keeps.taken, 0);
		assert_int_equal(unit_count_lines("the images are in memory"), i + 1);
	}
}

SESSION(a_job_without_gpus_gets_none)
{
	kernel.num_open_renders = 0;
	writeback_prepare(&session, tracee);
	assert_int_equal(keeps.taken, 0);
}

/* While the memory is taken, CRIU's timer for tasks that do not stop stands still. */
SESSION(a_timer_of_criu_goes_on_afterwards)
{
	(void)alarm(1000);
	writeback_prepare(&session, tracee);
	assert_in_range(alarm(0), 990, 1000);
}

/* Has the lock of another dump for a time. */
static pid_t start_other_dump(useconds_t microseconds)
{
	int ready[2];
	pid_t pid;
	char byte;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (!pid) {
		int fd = open(EIGHT, O_RDONLY | O_DIRECTORY);

		if (fd < 0 || flock(fd, LOCK_EX) < 0 || write(ready[1], "r", 1) != 1)
			_exit(1);
		(void)usleep(microseconds);
		_exit(0);
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	(void)close(ready[0]);
	(void)close(ready[1]);
	return pid;
}

SESSION(two_dumps_take_memory_one_after_the_other)
{
	pid_t other = start_other_dump(300000);
	double begin = now_seconds();

	writeback_prepare(&session, tracee);
	assert_int_equal(keeps.taken, 1);
	assert_true(now_seconds() - begin > 0.2);
	assert_int_equal(unit_wait(other), 0);
}

SESSION(a_lock_that_stays_is_no_obstacle)
{
	pid_t other = start_other_dump(1000000000);

	is_hurried = true;
	writeback_prepare(&session, tracee);
	is_hurried = false;
	assert_int_equal(kill(other, SIGKILL), 0);
	assert_int_equal(waitpid(other, NULL, 0), other);
	assert_int_equal(keeps.taken, 1);
	assert_logged("Warn  (amdgpu_plugin): ", "does not wait any longer", "topology");
}
