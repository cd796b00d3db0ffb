// SPDX-License-Identifier: GPL-2.0-only
#include "dump/behind.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "amdgpu_plugin_topology.h"
#include "amdgpu_plugin_util.h"
#include "content/keep.h"
#include "criu/after.h"
#include "criu/host.h"
#include "criu/log.h"
#include "dump/background.h"
#include "dump/dump_image.h"
#include "dump/gpu_watch.h"
#include "image/image.h"
#include "kernel/cgroup_room.h"
#include "kernel/free_memory.h"
#include "kernel/kfd.h"

static int choose_size(uint64_t option, uint64_t *ret_bytes)
{
	uint64_t bytes = option, free_bytes = 0, most;
	int ret;

	ret = free_memory_find(&free_bytes);
	if (ret < 0)
		return log_error(ret, "option dump-memory: cannot find out how much is free");
	most = free_bytes / 100 * OPTION_SHARE_MAX;
	if (option & OPTION_SHARE)
		bytes = free_bytes / 100 * (option & ~OPTION_SHARE);
	if (bytes > most)
		log_warn("option dump-memory: of %" PRIu64 " MiB only %u%% of the free memory are"
			 " taken, %" PRIu64 " MiB",
			 bytes >> 20, OPTION_SHARE_MAX, most >> 20);
	*ret_bytes = bytes < most ? bytes : most;
	return 0;
}

static int take_memory(struct dump_session *session, uint64_t bytes)
{
	_cleanup_(topology_done) struct topology topology = { 0 };
	_cleanup_free_ uint32_t *minors = NULL;
	size_t count = 0;
	int ret = topology_read(TOPOLOGY_SYSFS, &topology);

	if (ret < 0)
		return ret;
	minors = calloc(topology.num_nodes + 1, sizeof(*minors));
	if (!minors)
		return -ENOMEM;
	for (size_t i = 0; i < topology.num_nodes; i++) {
		if (topology.nodes[i].gpu_id)
			minors[count++] = topology.nodes[i].drm_render_minor;
	}
	return keep_new(bytes, minors, count, &session->keep);
}

/* Why the option has no use in this dump, or NULL. */
static const char *find_obstacle(void)
{
	if (host_ends_tasks())
		return "CRIU ends the job, which --leave-running would let run on";
	if (image_is_streamed())
		return "images are streamed";
	if (!after_is_possible())
		return "this CRIU does not let the plugin work on while the job runs";
	if (!cgroup_room_has_threads())
		return "a limit of processes (pids.max) leaves little room for those of the job";
	return NULL;
}

int behind_prepare(struct dump_session *session)
{
	const uint64_t option = session->options->dump_memory;
	const char *obstacle;
	uint64_t bytes = 0;
	double begin;
	int ret = option ? choose_size(option, &bytes) : 0;

	if (ret < 0 || !bytes)
		return ret;
	obstacle = find_obstacle();
	if (obstacle) {
		log_warn("option dump-memory: of no use in this dump: %s", obstacle);
		return 0;
	}
	begin = now_seconds();
	ret = take_memory(session, bytes);
	if (!ret)
		log_info("option dump-memory: took %" PRIu64 " MiB in %.3f s",
			 keep_size(session->keep) >> 20, now_seconds() - begin);
	if (ret < 0)
		log_warn("option dump-memory: the job stands still until its contents are written,"
			 " because the memory is not to be had: %s",
			 strerror(-ret));
	else if (keep_is_short(session->keep))
		log_warn("option dump-memory: only %" PRIu64 " of %" PRIu64
			 " MiB are to be had for all GPUs",
			 keep_size(session->keep) >> 20, bytes >> 20);
	return 0;
}

int behind_await_copies(struct dump_session *session)
{
	int ret = background_await_copies(session);

	for (size_t i = 0; !ret && i < session->num_processes; i++)
		ret = gpu_watch_check(session, &session->processes[i]);
	return ret;
}

bool behind_begin(struct dump_session *session)
{
	if (!session->background)
		return false;
	for (size_t i = 0; i < session->num_processes; i++)
		kfd_state_close(&session->processes[i].state);
	host_keep_image_dir();
	return true;
}

int behind_finish(struct dump_session *session)
{
	int ret;

	keep_close_gpus(session->keep);
	ret = background_finish(session);
	if (!ret)
		content_totals_log(&session->totals, true, session->options->content.checksum);
	else
		dump_image_remove_all(session);
	host_drop_image_dir();
	return ret;
}
