// SPDX-License-Identifier: GPL-2.0-only
/* Reads the queues of paused processes, finds those with waves, and lets all queues run in between.
 * pause.c stops and starts them, and kfd_queue.c reads their hardware state. */
#include "dump/drain.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>

#include "amdgpu_plugin_util.h"
#include "criu/log.h"
#include "kernel/kfd_priv.h"
#include "kernel/kfd_queue.h"
#include "pause/pause.h"
#include "preflight/preflight.h"
#include "preflight/queue_probe.h"
#include "session/dump_session.h"

#define FIRST_STEP_S 0.01

/* A queue with waves that the driver would not restore. */
struct busy_queue {
	const struct dumped_process *process;
	uint32_t id;
	uint32_t gpu_id;
};

/* Some drivers save the waves of several XCCs and do not take them back. A rule refuses queues of
 * which XCCs are missing, with which no driver is tried. */
static bool is_busy(const struct dumped_process *process, const struct kfd_queue *queue)
{
	if (!queue->gpu || kfd_queue_lacks_xccs(queue))
		return false;
	if (kfd_queue_loses_waves(queue))
		return true;
	return queue->gpu->num_xcc > 1 && kfd_queue_has_waves(queue) &&
	       queue_probe_can_ask(queue) && queue_probe_ask(process, queue) == -EOPNOTSUPP;
}

static bool find_busy(const struct dumped_process *process, const struct kfd_priv_queue *queues,
		      size_t count, struct busy_queue *ret_busy)
{
	for (size_t i = 0; i < count; i++) {
		const struct kfd_queue queue = preflight_queue(process, &process->priv, &queues[i]);

		if (!is_busy(process, &queue))
			continue;
		ret_busy->id = queues[i].id;
		ret_busy->gpu_id = queues[i].gpu_id;
		return true;
	}
	return false;
}

/* @process with its private data. 1: *@ret_busy is one of its queues; 0, or -ENOMEM, logged.
 * The rules report what cannot be read. */
static int read_queues(const struct dumped_process *process, struct busy_queue *ret_busy)
{
	_cleanup_free_ struct kfd_priv_queue *queues = NULL;
	size_t count = 0;
	int ret = kfd_priv_list_queues(&process->priv, &queues, &count);

	if (ret == -ENOMEM)
		return log_error(ret, "%s: cannot look at its queues", process->name);
	if (ret < 0)
		return 0;
	return find_busy(process, queues, count, ret_busy);
}

/* The same for a process that has no private data yet. */
static int look_at(const struct dumped_process *process, struct busy_queue *ret_busy)
{
	_cleanup_(kfd_state_done) struct kfd_state state = { 0 };
	struct dumped_process looked = *process;
	int ret = pause_look(process, &state);

	/* As a CHECKPOINT that is asked again. */
	if (ret == -EINVAL)
		return 0;
	if (ret < 0)
		return pause_report_refusal(process, KFD_CHECKPOINT, ret, "look at its queues");
	looked.state = state;
	looked.priv = kfd_priv_of_state(&state);
	return read_queues(&looked, ret_busy);
}

static int find_any(const struct dump_session *session,
		    int (*look)(const struct dumped_process *process, struct busy_queue *ret_busy),
		    struct busy_queue *ret_busy)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < session->num_processes; i++) {
		ret_busy->process = &session->processes[i];
		ret = look(&session->processes[i], ret_busy);
	}
	return ret;
}

int drain_is_due(const struct dump_session *session)
{
	struct busy_queue busy;
	int ret = session->options->drain_s ? find_any(session, read_queues, &busy) : 0;

	if (ret > 0)
		log_info(
			"%s: queue %u on GPU 0x%04x has waves that this kernel would not restore; the queues of the dump run on for up to %" PRIu64
			" s, until they end",
			busy.process->name, busy.id, busy.gpu_id, session->options->drain_s);
	return ret;
}

int drain_queues(struct dump_session *session)
{
	const double begin = now_seconds(), limit = (double)session->options->drain_s;
	double step = FIRST_STEP_S, waited = 0;
	struct busy_queue busy;
	int ret = 1;

	while (ret > 0 && waited < limit) {
		ret = pause_let_run(session, step < limit - waited ? step : limit - waited);
		if (!ret)
			ret = find_any(session, look_at, &busy);
		waited = now_seconds() - begin;
		step *= 2;
	}
	session->totals.drained_s = waited;
	return ret < 0 ? ret : 0;
}
