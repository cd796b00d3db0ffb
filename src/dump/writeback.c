// SPDX-License-Identifier: GPL-2.0-only
/* The steps of a dump with the option dump-memory, each called by the hook that the header's
 * diagram shows. writeback_gpus.c divides the memory among GPUs, and pool.c holds the contents. */
#include "dump/writeback.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "amdgpu_plugin_topology.h"
#include "amdgpu_plugin_util.h"
#include "content/pool.h"
#include "criu/after_tasks.h"
#include "criu/host.h"
#include "criu/log.h"
#include "dump/background.h"
#include "dump/dump_image.h"
#include "dump/gpu_watch.h"
#include "dump/writeback_gpus.h"
#include "image/image.h"
#include "image/image_dir.h"
#include "kernel/cgroup_room.h"
#include "kernel/free_memory.h"
#include "kernel/kfd.h"

/* How long a dump waits for another one that takes memory. */
#define LOCK_STEP_MS 10
#define LOCK_STEPS   (60 * 1000 / LOCK_STEP_MS)

/* How much the option asks for. *@ret_floor: how much of the system's memory stays free. */
static int choose_size(uint64_t option, uint64_t *ret_bytes, uint64_t *ret_floor)
{
	uint64_t bytes = option, free_bytes = 0, most;
	int ret = free_memory_find(&free_bytes);

	if (ret < 0)
		return ret;
	most = free_bytes / 100 * OPTION_SHARE_MAX;
	if (option & OPTION_SHARE)
		bytes = free_bytes / 100 * (option & ~OPTION_SHARE);
	if (bytes > most)
		log_warn("option dump-memory: of %" PRIu64
			 " MiB only %u%% of the free memory are taken, %" PRIu64 " MiB",
			 bytes >> 20, OPTION_SHARE_MAX, most >> 20);
	*ret_bytes = bytes < most ? bytes : most;
	*ret_floor = free_bytes - most;
	return 0;
}

/* Why the option has no use in this dump, or NULL. */
static const char *find_obstacle(void)
{
	if (host_ends_tasks())
		return "CRIU ends the job, which --leave-running would let run on";
	if (image_is_streamed())
		return "images are streamed";
	if (image_dir_is_in_memory())
		return "the images are in memory (tmpfs), so the contents would take it twice";
	if (!after_tasks_is_possible())
		return "this CRIU does not let the plugin work on while the job runs";
	if (!cgroup_room_has_threads())
		return "a limit of processes (pids.max) leaves little room for those of the job";
	return NULL;
}

static uint64_t sum_of(const struct pool_share *shares, size_t count)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < count; i++)
		bytes += shares[i].bytes;
	return bytes;
}

static int take_shares(struct dump_session *session, const struct pool_share *shares, size_t count,
		       uint64_t floor)
{
	const double begin = now_seconds();
	int ret = pool_new(shares, count, floor, &session->pool);

	if (ret < 0)
		return ret;
	log_info("option dump-memory: took %" PRIu64 " MiB for %zu GPUs in %.3f s",
		 pool_size(session->pool) >> 20, count, now_seconds() - begin);
	if (pool_is_short(session->pool))
		log_warn("option dump-memory: only %" PRIu64 " of %" PRIu64
			 " MiB are to be had for all GPUs",
			 pool_size(session->pool) >> 20, sum_of(shares, count) >> 20);
	return 0;
}

static int take_memory(struct dump_session *session, pid_t top)
{
	_cleanup_free_ struct pool_share *shares = NULL;
	uint64_t bytes = 0, floor = 0;
	size_t count = 0;
	int ret = choose_size(session->options->dump_memory, &bytes, &floor);

	if (!ret)
		ret = writeback_gpus_choose(top, bytes, &shares, &count);
	return ret < 0 || !count ? ret : take_shares(session, shares, count, floor);
}

/* Every user may lock this directory, and need not let go of it. */
static void wait_for_lock(int fd)
{
	const struct timespec step = { .tv_nsec = LOCK_STEP_MS * 1000000L };

	for (unsigned int i = 0; i < LOCK_STEPS; i++) {
		if (!flock(fd, LOCK_EX | LOCK_NB) || errno != EWOULDBLOCK)
			return;
		(void)nanosleep(&step, NULL);
	}
	log_warn(
		"option dump-memory: does not wait any longer for a process that has locked " TOPOLOGY_SYSFS);
}

/* Two dumps must not both count on the same free memory. Without the lock, each part of the memory
 * still is taken only if the system has it. */
static int take_in_turn(struct dump_session *session, pid_t top)
{
	_cleanup_close_ int lock = open(TOPOLOGY_SYSFS, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (lock >= 0)
		wait_for_lock(lock);
	return take_memory(session, top);
}

void writeback_prepare(struct dump_session *session, pid_t top)
{
	const char *obstacle;
	unsigned int alarm_s;
	int ret;

	if (!session->options->dump_memory || session->memory_is_taken)
		return;
	session->memory_is_taken = true;
	obstacle = find_obstacle();
	if (obstacle) {
		log_warn("option dump-memory: of no use in this dump: %s", obstacle);
		return;
	}
	/* CRIU limits the time in which it stops the tasks (--timeout), and has stopped none. */
	alarm_s = alarm(0);
	ret = take_in_turn(session, top);
	(void)alarm(alarm_s);
	if (ret < 0)
		log_warn(
			"option dump-memory: the job stands still until its contents are written, because the memory is not to be had: %s",
			strerror(-ret));
}

int writeback_await_copies(struct dump_session *session)
{
	int ret = background_await_copies(session);

	for (size_t i = 0; !ret && i < session->num_processes; i++)
		ret = gpu_watch_check(session, &session->processes[i]);
	return ret;
}

bool writeback_begin(struct dump_session *session)
{
	if (!session->background)
		return false;
	for (size_t i = 0; i < session->num_processes; i++)
		kfd_state_close(&session->processes[i].state);
	host_keep_image_dir();
	return true;
}

int writeback_finish(struct dump_session *session)
{
	int ret;

	pool_close_gpus(session->pool);
	ret = background_finish(session);
	if (!ret)
		content_totals_log(&session->totals, true, session->options->content.checksum);
	else
		dump_image_remove_all(session);
	host_drop_image_dir();
	return ret;
}
