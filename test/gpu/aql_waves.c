// SPDX-License-Identifier: GPL-2.0-only
/* Kernels that AQL queues dispatch: they run in the interpreter of GPU code, and their waves leave
 * the hardware and come back (CWSR). */
#include <v9_structs.h>

#include "aql.h"
#include "gpu.h"

#define STEPS        20000u /* instructions of a turn */
#define FAST_TURNS   50u    /* then the kernel is taken for one that a test keeps in its loop */
#define SLOW_STEPS   200u
#define ENTRY_OFFSET 4u    /* dwords of the descriptor: where the code begins, from there */
#define QUEUE_READ   128u  /* of amd_queue_t (amd_hsa_queue.h), where its read index lies */
#define MQD_BYTES    4096u /* the control stack follows the MQD at the next page */
#define MAGIC        0x5245564153564157ull
#define PARTS        (SIM_GCN_MAX_WAVES + 1u) /* the waves and their LDS */

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
				     .compute = sim_gcn_float,
				     .now = env_now,
				     .complain = env_complain };
}

static void drop_kernel(struct aql *aql)
{
	free(aql->group.waves);
	free(aql->group.lds);
	memset(&aql->group, 0, sizeof(aql->group));
	aql->has_kernel = false;
}

void aql_drop(struct queue *queue)
{
	if (!queue->aql)
		return;
	drop_kernel(queue->aql);
	free(queue->aql);
	queue->aql = NULL;
}

static int allocate(struct aql *aql, const struct sim_gcn_dispatch *gcn)
{
	aql->gcn = *gcn;
	aql->turns = 0;
	aql->group.waves = calloc(gcn->num_waves, sizeof(*aql->group.waves));
	aql->group.lds = calloc(1, SIM_GCN_LDS_BYTES);
	aql->has_kernel = true;
	if (aql->group.waves && aql->group.lds)
		return 0;
	drop_kernel(aql);
	return -ENOMEM;
}

static int begin(struct gpu *gpu, struct queue *queue, const struct aql_kernel *kernel)
{
	struct environment e = { gpu, queue };
	struct sim_gcn_env env = env_of(&e);
	struct sim_gcn_dispatch gcn = { .kernarg = kernel->kernarg,
					.packet = kernel->packet,
					.queue = queue->rptr_address - QUEUE_READ,
					.lds_bytes = kernel->lds_bytes };
	int ret = memory_read(gpu, &queue->space, kernel->object, gcn.descriptor,
			      sizeof(gcn.descriptor));

	if (ret < 0)
		return ret;
	gcn.entry = kernel->object +
		    (gcn.descriptor[ENTRY_OFFSET] | (u64)gcn.descriptor[ENTRY_OFFSET + 1] << 32);
	memcpy(gcn.grid, kernel->grid, sizeof(gcn.grid));
	memcpy(gcn.workgroup, kernel->workgroup, sizeof(gcn.workgroup));
	ret = sim_gcn_begin(&gcn, &env);
	if (ret < 0)
		return ret;
	gpu->counters.dispatches++;
	return allocate(queue->aql, &gcn);
}

int aql_run_kernel(struct gpu *gpu, struct queue *queue, const struct aql_kernel *kernel)
{
	struct environment e = { gpu, queue };
	struct sim_gcn_env env = env_of(&e);
	struct aql *aql = queue->aql;
	bool is_slow;
	int ret;

	if (!aql->has_kernel) {
		ret = begin(gpu, queue, kernel);
		if (ret < 0)
			return ret;
	}
	is_slow = aql->turns == FAST_TURNS;
	if (!is_slow)
		aql->turns++;
	ret = sim_gcn_run(&aql->gcn, &aql->group, &env, is_slow ? SLOW_STEPS : STEPS);
	if (ret)
		drop_kernel(aql);
	return ret == 0 && is_slow ? -EAGAIN : ret;
}

/* The control stack. */
struct saved {
	u64 magic;
	u64 rptr, began; /* of the packet */
	u64 area;        /* address of the first part */
	u64 checksum[PARTS];
	struct sim_gcn_dispatch gcn;
};

static u64 checksum_of(const void *data, u64 size_bytes)
{
	const u32 *words = data;
	u64 hash = 0xcbf29ce484222325ull, i;

	for (i = 0; i < size_bytes / 4; i++)
		hash = (hash ^ words[i]) * 0x100000001b3ull;
	return hash;
}

/* A part of the save area in the model's memory; the LDS follows the waves. */
struct part {
	void *data;
	u64 address, size_bytes;
};

static u64 area_of(const struct queue *queue)
{
	return queue->save_area + queue->stack_bytes;
}

static struct part part_at(const struct queue *queue, u32 i)
{
	const struct aql *aql = queue->aql;
	struct part part = { .size_bytes = sizeof(struct sim_gcn_wave) };

	part.address = area_of(queue) + i * part.size_bytes;
	if (i < aql->gcn.num_waves) {
		part.data = &aql->group.waves[i];
		return part;
	}
	part.data = aql->group.lds;
	part.size_bytes = SIM_GCN_LDS_BYTES;
	return part;
}

static u64 area_bytes(const struct sim_gcn_dispatch *gcn)
{
	return (u64)gcn->num_waves * sizeof(struct sim_gcn_wave) + SIM_GCN_LDS_BYTES;
}

static int lose(struct gpu *gpu, const struct queue *queue, const char *why)
{
	report_violation(&gpu->report, "the waves of doorbell %#x are lost: %s", queue->doorbell,
			 why);
	return -EINVAL;
}

int aql_save(struct gpu *gpu, struct queue *queue, struct v9_mqd *mqd)
{
	struct saved saved = { .magic = MAGIC, .rptr = queue->rptr, .area = area_of(queue) };
	struct part part;
	int ret = 0;
	u32 i;

	if (!queue->aql || !queue->aql->has_kernel)
		return 0;
	saved.began = queue->aql->began;
	saved.gcn = queue->aql->gcn;
	if (queue->stack_bytes < sizeof(saved) ||
	    queue->save_bytes < queue->stack_bytes + area_bytes(&saved.gcn))
		return lose(gpu, queue, "their save area is too small");
	for (i = 0; ret == 0 && i <= saved.gcn.num_waves; i++) {
		part = part_at(queue, i);
		saved.checksum[i] = checksum_of(part.data, part.size_bytes);
		ret = memory_write(gpu, &queue->space, part.address, part.data, part.size_bytes);
	}
	if (ret < 0)
		return lose(gpu, queue, "their save area is not mapped");
	mqd->cp_hqd_cntl_stack_offset = queue->stack_bytes - sizeof(saved);
	mqd->cp_hqd_wg_state_offset = queue->stack_bytes + area_bytes(&saved.gcn);
	report_log(&gpu->report, REPORT_QUEUES, "doorbell %#x: %u waves are saved", queue->doorbell,
		   saved.gcn.num_waves);
	return memory_write(gpu, &kernel_space,
			    queue->mqd + MQD_BYTES + mqd->cp_hqd_cntl_stack_offset, &saved,
			    sizeof(saved));
}

static int load_parts(struct gpu *gpu, struct queue *queue, const struct saved *saved)
{
	struct part part;
	u32 i;
	int ret;

	for (i = 0; i <= saved->gcn.num_waves; i++) {
		part = part_at(queue, i);
		ret = memory_read(gpu, &queue->space, part.address, part.data, part.size_bytes);
		if (ret < 0)
			return lose(gpu, queue, "their save area is not mapped");
		if (checksum_of(part.data, part.size_bytes) != saved->checksum[i])
			return lose(gpu, queue, "their save area has another content");
	}
	return 0;
}

static int check_saved(struct gpu *gpu, const struct queue *queue, const struct saved *saved)
{
	if (saved->magic != MAGIC || saved->gcn.num_waves > SIM_GCN_MAX_WAVES)
		return lose(gpu, queue, "the control stack has another content");
	if (saved->rptr % queue->size_bytes != queue->rptr % queue->size_bytes)
		return lose(gpu, queue, "the queue is at another packet");
	return saved->area != area_of(queue) ? lose(gpu, queue, "the save area is another") : 0;
}

int aql_load(struct gpu *gpu, struct queue *queue, const struct v9_mqd *mqd)
{
	uint32_t used = mqd->cp_hqd_cntl_stack_size - mqd->cp_hqd_cntl_stack_offset;
	struct saved saved;
	int ret;

	if (!used)
		return 0;
	if (used != sizeof(saved))
		return lose(gpu, queue, "the control stack has another size");
	ret = memory_read(gpu, &kernel_space,
			  queue->mqd + MQD_BYTES + mqd->cp_hqd_cntl_stack_offset, &saved,
			  sizeof(saved));
	if (ret == 0)
		ret = check_saved(gpu, queue, &saved);
	if (ret < 0)
		return ret;
	queue->aql = calloc(1, sizeof(*queue->aql));
	if (!queue->aql)
		return -ENOMEM;
	queue->aql->began = saved.began;
	ret = allocate(queue->aql, &saved.gcn);
	if (ret == 0)
		ret = load_parts(gpu, queue, &saved);
	if (ret < 0)
		aql_drop(queue);
	report_log(&gpu->report, REPORT_QUEUES, "doorbell %#x: %u waves are loaded%s",
		   queue->doorbell, saved.gcn.num_waves, ret < 0 ? ", in vain" : "");
	return ret;
}
