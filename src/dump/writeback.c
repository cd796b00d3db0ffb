// SPDX-License-Identifier: GPL-2.0-only
/* The steps of a dump with the option dump-memory, each called by the hook that the header's
 * diagram shows. pool.c takes and holds the memory, which this file divides among the GPUs. */
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
#include "image/image.h"
#include "image/image_dir.h"
#include "kernel/cgroup.h"
#include "kernel/kfd.h"
#include "kernel/proc.h"
#include "kernel/render_node.h"
#include "pause/kfd_files.h"

/* How long a dump waits for another one that takes memory. */
#define LOCK_STEP_MS 10
#define LOCK_STEPS   (60 * 1000 / LOCK_STEP_MS)

/* For the unused ends of parts, and for what the job allocates until its queues stop. */
#define ROOM_TO_GROW(bytes) ((bytes) / 32 + (32u << 20))

/* The part of a GTT that stays free for jobs that run meanwhile. */
#define GTT_MARGIN(bytes) ((bytes) / 8)

/* How much the option asks for. *@ret_floor: how much of the system's memory stays free. */
static int choose_size(uint64_t option, uint64_t *ret_bytes, uint64_t *ret_floor)
{
	uint64_t bytes = option, free_bytes = 0, most;
	int ret = cgroup_find_memory(&free_bytes);

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

/* Marks the GPUs of the topology that the job has open. */
static int mark_gpus(pid_t top, const struct topology *topology, bool *marks)
{
	_cleanup_(pid_list_done) struct pid_list tasks = { 0 };
	int ret = top ? proc_list_tree(top, &tasks) : 0;

	if (ret < 0)
		return ret;
	for (size_t i = 0; !top && i < topology->num_nodes; i++)
		marks[i] = topology->nodes[i].gpu_id;
	return top ? kfd_files_find_gpus(&tasks, topology, marks) : 0;
}

/* The marked partitions of the card of @gpu. They share its memory. */
static unsigned int count_partitions(const struct topology *topology, const bool *marks,
				     const struct topology_node *gpu)
{
	unsigned int count = 0;

	for (size_t i = 0; i < topology->num_nodes; i++)
		count += marks[i] &&
			 topology_pci_device(&topology->nodes[i]) == topology_pci_device(gpu);
	return count;
}

/* Memory for no contents would only delay the dump. */
static uint64_t limit(uint32_t minor, const struct render_memory *memory)
{
	const uint64_t contents = memory->vram_used + memory->gtt_used;
	const uint64_t wanted = contents + ROOM_TO_GROW(contents);
	const uint64_t taken = memory->gtt_used + GTT_MARGIN(memory->gtt_size);
	const uint64_t room = taken < memory->gtt_size ? memory->gtt_size - taken : 0;

	if (room < contents)
		log_warn("option dump-memory: renderD%u: %" PRIu64 " MiB for contents of %" PRIu64
			 " MiB, because more would evict buffers of jobs that run from its GTT",
			 minor, room >> 20, contents >> 20);
	return wanted < room ? wanted : room;
}

/* Without the GPUs whose driver does not tell their memory. */
static size_t limit_all(const struct topology *topology, const bool *marks,
			struct pool_share *shares)
{
	struct render_memory memory;
	size_t count = 0;

	for (size_t i = 0; i < topology->num_nodes; i++) {
		const struct topology_node *gpu = &topology->nodes[i];

		if (!marks[i] || render_node_find_memory(gpu->drm_render_minor, &memory) < 0)
			continue;
		shares[count++] = (struct pool_share){
			.minor = gpu->drm_render_minor,
			.bytes = limit(gpu->drm_render_minor, &memory) /
				 count_partitions(topology, marks, gpu),
		};
	}
	return count;
}

static uint64_t sum_of(const struct pool_share *shares, size_t count)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < count; i++)
		bytes += shares[i].bytes;
	return bytes;
}

/* Each share becomes smaller by the same factor, so that all have @bytes together. */
static void scale(struct pool_share *shares, size_t count, uint64_t bytes)
{
	const uint64_t sum = sum_of(shares, count);

	for (size_t i = 0; sum > bytes && i < count; i++)
		shares[i].bytes = (uint64_t)((long double)shares[i].bytes / sum * bytes);
}

int writeback_choose_shares(pid_t top, uint64_t bytes, struct pool_share **ret_shares,
			    size_t *ret_count)
{
	_cleanup_(topology_done) struct topology topology = { 0 };
	_cleanup_free_ struct pool_share *shares = NULL;
	_cleanup_free_ bool *marks = NULL;
	int ret = topology_read(TOPOLOGY_SYSFS, &topology);

	if (ret < 0)
		return ret;
	marks = calloc(topology.num_nodes + 1, sizeof(*marks));
	shares = calloc(topology.num_nodes + 1, sizeof(*shares));
	ret = marks && shares ? mark_gpus(top, &topology, marks) : -ENOMEM;
	if (ret < 0)
		return ret;
	*ret_count = limit_all(&topology, marks, shares);
	scale(shares, *ret_count, bytes);
	*ret_shares = take_ptr(&shares);
	return 0;
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
		ret = writeback_choose_shares(top, bytes, &shares, &count);
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
