// SPDX-License-Identifier: GPL-2.0-only
/* Kernels that AQL queues dispatch: they run in the interpreter of GPU code, and their waves leave
 * the hardware and come back (CWSR). */
#include <v9_structs.h>

#include "aql.h"
#include "gpu.h"

#define STEPS      20000u /* instructions of a turn */
#define FAST_TURNS 50u    /* then a test keeps the kernel in its loop */
#define SLOW_STEPS 200u
#define MQD_BYTES  4096u /* the control stack follows the MQD at the next page */

static const struct space kernel_space = { .hub = HUB_GFX };

/* What the interpreter's functions get. */
struct environment {
	struct gpu *gpu;
	const struct queue *queue;
};

static int env_read(void *arg, u64 va, void *data, u32 size_bytes)
{
	const struct environment *e = arg;

	return memory_read(e->gpu, &e->queue->space, va, data, size_bytes);
}

static int env_write(void *arg, u64 va, const void *data, u32 size_bytes)
{
	const struct environment *e = arg;

	return memory_write(e->gpu, &e->queue->space, va, data, size_bytes);
}

static int env_exchange(void *arg, u64 va, u32 size_bytes, u64 *expected, u64 desired)
{
	const struct environment *e = arg;
	uint64_t n = size_bytes;
	void *at = memory_at(e->gpu, &e->queue->space, va, ACCESS_WRITE, &n);
	u32 low = (u32)*expected;

	if (!at || n < size_bytes)
		return -EFAULT;
	if (size_bytes == 8) {
		(void)__atomic_compare_exchange_n((u64 *)at, expected, desired, false,
						  __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
		return 0;
	}
	(void)__atomic_compare_exchange_n((u32 *)at, &low, (u32)desired, false, __ATOMIC_SEQ_CST,
					  __ATOMIC_SEQ_CST);
	*expected = low;
	return 0;
}

static u64 env_now(void *arg)
{
	(void)arg;
	return gpu_clock();
}

static void env_complain(void *arg, const char *text)
{
	const struct environment *e = arg;

	report_violation(&e->gpu->report, "kernel of doorbell %#x: %s", e->queue->doorbell, text);
}

static struct sim_gcn_env env_of(struct environment *e)
{
	return (struct sim_gcn_env){ .arg = e,
				     .read = env_read,
				     .write = env_write,
				     .exchange = env_exchange,
				     .now = env_now,
				     .complain = env_complain };
}

void aql_drop(struct queue *queue)
{
	if (!queue->aql)
		return;
	sim_gcn_kernel_done(&queue->aql->kernel);
	free(queue->aql);
	queue->aql = NULL;
}

int aql_run_kernel(struct gpu *gpu, struct queue *queue, const struct aql_dispatch *packet,
		   uint64_t at)
{
	struct environment e = { gpu, queue };
	struct sim_gcn_env env = env_of(&e);
	struct aql *aql = queue->aql;
	bool is_slow;
	int ret;

	if (!aql->kernel.group.waves) {
		ret = sim_gcn_kernel_begin(&aql->kernel, &env, packet, at, queue->rptr_address);
		if (ret < 0)
			return ret;
		gpu->counters.dispatches++;
		aql->turns = 0;
	}
	is_slow = aql->turns == FAST_TURNS;
	if (!is_slow)
		aql->turns++;
	ret = sim_gcn_kernel_run(&aql->kernel, &env, is_slow ? SLOW_STEPS : STEPS);
	return ret == 0 && is_slow ? -EAGAIN : ret;
}

static uint64_t area_of(const struct queue *queue)
{
	return queue->save_area + queue->stack_bytes;
}

static int lose(struct gpu *gpu, const struct queue *queue, const char *why)
{
	report_violation(&gpu->report, "the waves of doorbell %#x are lost: %s", queue->doorbell,
			 why);
	return -EINVAL;
}

int aql_save(struct gpu *gpu, struct queue *queue, struct v9_mqd *mqd)
{
	struct environment e = { gpu, queue };
	struct sim_gcn_env env = env_of(&e);
	struct sim_gcn_saved saved = { .index = queue->rptr };
	uint64_t bytes;

	if (!queue->aql || !queue->aql->kernel.group.waves)
		return 0;
	saved.began = queue->aql->began;
	bytes = sim_gcn_kernel_bytes(&queue->aql->kernel);
	if (queue->stack_bytes < sizeof(saved) || queue->save_bytes < queue->stack_bytes + bytes)
		return lose(gpu, queue, "their save area is too small");
	if (sim_gcn_kernel_save(&queue->aql->kernel, &env, area_of(queue), &saved) < 0)
		return lose(gpu, queue, "their save area is not mapped");
	mqd->cp_hqd_cntl_stack_offset = queue->stack_bytes - sizeof(saved);
	mqd->cp_hqd_wg_state_offset = queue->stack_bytes + bytes;
	report_log(&gpu->report, REPORT_QUEUES, "doorbell %#x: %u waves are saved", queue->doorbell,
		   saved.gcn.num_waves);
	return memory_write(gpu, &kernel_space,
			    queue->mqd + MQD_BYTES + mqd->cp_hqd_cntl_stack_offset, &saved,
			    sizeof(saved));
}

static int load(struct gpu *gpu, struct queue *queue, const struct sim_gcn_saved *saved)
{
	struct environment e = { gpu, queue };
	struct sim_gcn_env env = env_of(&e);
	const char *why = NULL;
	int ret = -EINVAL;

	queue->aql = calloc(1, sizeof(*queue->aql));
	if (!queue->aql)
		return -ENOMEM;
	queue->aql->began = saved->began;
	if (saved->index % queue->size_bytes != queue->rptr % queue->size_bytes)
		why = "the packet";
	else
		ret = sim_gcn_kernel_load(&queue->aql->kernel, &env, area_of(queue), saved, &why);
	if (ret < 0)
		aql_drop(queue);
	if (why)
		report_violation(&gpu->report,
				 "the waves of doorbell %#x are not what was saved: %s",
				 queue->doorbell, why);
	else if (ret == -EFAULT)
		return lose(gpu, queue, "their save area is not mapped");
	return ret;
}

int aql_load(struct gpu *gpu, struct queue *queue, const struct v9_mqd *mqd)
{
	uint32_t used = mqd->cp_hqd_cntl_stack_size - mqd->cp_hqd_cntl_stack_offset;
	struct sim_gcn_saved saved;
	int ret;

	if (!used)
		return 0;
	if (used != sizeof(saved))
		return lose(gpu, queue, "the control stack has another size");
	ret = memory_read(gpu, &kernel_space,
			  queue->mqd + MQD_BYTES + mqd->cp_hqd_cntl_stack_offset, &saved,
			  sizeof(saved));
	if (ret == 0)
		ret = load(gpu, queue, &saved);
	report_log(&gpu->report, REPORT_QUEUES, "doorbell %#x: %u waves are loaded%s",
		   queue->doorbell, saved.gcn.num_waves, ret < 0 ? ", but the load failed" : "");
	return ret;
}
