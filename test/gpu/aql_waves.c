// SPDX-License-Identifier: GPL-2.0-only
/* Kernels that AQL queues dispatch: they run in the interpreter of GPU code, and their waves leave
 * the hardware and come back (CWSR). */
#include <v9_structs.h>

#include "aql.h"
#include "cp.h"
#include "gpu.h"

#define STEPS      20000u /* instructions of a turn */
#define FAST_TURNS 50u    /* then a test keeps the kernel in its loop */
#define SLOW_STEPS 200u
#define MQD_BYTES  4096u /* the control stack follows the MQD at the next page */

#define QUEUE_INACTIVE       192u /* of amd_queue_t: the handle of its signal */
#define INSUFFICIENT_SCRATCH 1    /* a code of that signal */

static const struct space kernel_space = { .hub = HUB_GFX };

#define PAGE_BYTES 4096u
#define NUM_PAGES  256u

/* What the interpreter's functions get. Pages that a turn has used are looked up once. The turn
 * ends before the device sees that the driver has changed page tables. */
struct environment {
	struct gpu *gpu;
	const struct queue *queue;
	struct page {
		u64 va;
		u8 *at;
	} read[NUM_PAGES], written[NUM_PAGES];
};

/* The place of an access within one page, or NULL: a fault. */
static u8 *at_page(struct environment *e, u64 va, enum access access)
{
	u64 offset = va % PAGE_BYTES;
	struct page *page =
		&(access == ACCESS_READ ? e->read : e->written)[va / PAGE_BYTES % NUM_PAGES];
	uint64_t one = 1;
	u8 *at;

	if (page->at && page->va == va - offset)
		return page->at + offset;
	at = memory_at(e->gpu, &e->queue->space, va, access, &one);
	if (!at)
		return NULL;
	*page = (struct page){ .va = va - offset, .at = at - offset };
	return at;
}

static int env_read(void *arg, u64 va, void *data, u32 size_bytes)
{
	const u8 *at;
	u32 part;

	for (; size_bytes; size_bytes -= part, va += part, data = (u8 *)data + part) {
		part = min(size_bytes, PAGE_BYTES - (u32)(va % PAGE_BYTES));
		at = at_page(arg, va, ACCESS_READ);
		if (!at)
			return -EFAULT;
		memcpy(data, at, part);
	}
	return 0;
}

static int env_write(void *arg, u64 va, const void *data, u32 size_bytes)
{
	u32 part;
	u8 *at;

	for (; size_bytes; size_bytes -= part, va += part, data = (const u8 *)data + part) {
		part = min(size_bytes, PAGE_BYTES - (u32)(va % PAGE_BYTES));
		at = at_page(arg, va, ACCESS_WRITE);
		if (!at)
			return -EFAULT;
		memcpy(at, data, part);
	}
	return 0;
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

/* Raises the queue's signal for its owner, as the firmware does: ROCr's handler gives the queue
 * more private memory, and sets the signal to 0. */
static int ask_for_scratch(struct gpu *gpu, struct queue *queue, uint64_t at,
			   const struct aql_signal *signal)
{
	const struct space *space = &queue->space;
	int64_t code = INSUFFICIENT_SCRATCH;
	int ret = memory_write(gpu, space, at + offsetof(struct aql_signal, value), &code,
			       sizeof(code));

	if (ret < 0)
		return ret;
	queue->aql->has_asked = true;
	report_log(&gpu->report, REPORT_QUEUES, "doorbell %#x wants more private memory",
		   queue->doorbell);
	if (!signal->mailbox)
		return 0;
	ret = memory_write64(gpu, space, signal->mailbox, signal->event_id);
	if (ret == 0)
		cp_interrupt(gpu, queue, signal->event_id);
	return ret;
}

/* 1: the queue has the private memory of the packet; -EAGAIN: it has asked for it. */
static int wait_for_scratch(struct gpu *gpu, struct queue *queue, const struct sim_gcn_env *env,
			    const struct aql_dispatch *packet)
{
	uint64_t amd_queue = queue->rptr_address - SIM_GCN_QUEUE_READ, at;
	struct aql_signal signal;
	int ret;

	ret = memory_read(gpu, &queue->space, amd_queue + QUEUE_INACTIVE, &at, sizeof(at));
	if (ret == 0)
		ret = memory_read(gpu, &queue->space, at, &signal, sizeof(signal));
	if (ret < 0)
		return ret;
	if (queue->aql->has_asked && signal.value)
		return -EAGAIN;
	queue->aql->has_asked = false;
	ret = sim_gcn_kernel_has_scratch(env, packet, queue->rptr_address);
	if (ret == 0)
		ret = ask_for_scratch(gpu, queue, at, &signal);
	return ret ? ret : -EAGAIN;
}

static int begin(struct gpu *gpu, struct queue *queue, const struct sim_gcn_env *env,
		 const struct aql_dispatch *packet, uint64_t at)
{
	struct aql *aql = queue->aql;
	int ret = packet->private_bytes ? wait_for_scratch(gpu, queue, env, packet) : 1;

	if (ret < 0)
		return ret;
	ret = sim_gcn_kernel_begin(&aql->kernel, env, packet, at, queue->rptr_address);
	if (ret < 0)
		return ret;
	gpu->counters.dispatches++;
	aql->turns = 0;
	return 0;
}

int aql_run_kernel(struct gpu *gpu, struct queue *queue, const struct aql_dispatch *packet,
		   uint64_t at)
{
	struct environment e = { .gpu = gpu, .queue = queue };
	struct sim_gcn_env env = env_of(&e);
	struct aql *aql = queue->aql;
	bool is_slow;
	int ret;

	if (!aql->kernel.group.waves) {
		ret = begin(gpu, queue, &env, packet, at);
		if (ret < 0)
			return ret;
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
	struct environment e = { .gpu = gpu, .queue = queue };
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
	struct environment e = { .gpu = gpu, .queue = queue };
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
