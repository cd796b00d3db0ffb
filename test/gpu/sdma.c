// SPDX-License-Identifier: GPL-2.0-only
/* Registers and time of the copy engines. Their packets are in sdma_packets.c. */
#include "sdma.h"

#include "gpu.h"

#define NS_PER_MS 1000000ull
#define NS_PER_S  1000000000ull

static uint32_t base_of(const struct gpu *gpu, unsigned int engine)
{
	return gpu->asic->sdma[engine].base;
}

/* The MI210 has one MMHUB for all. */
struct space sdma_space(const struct gpu *gpu, unsigned int engine)
{
	bool has_aids = gpu->asic->hubs[HUB_MM]->instances > 1;

	return (struct space){ HUB_MM, 0, has_aids ? engine / SDMA_ENGINES_OF_AID : 0 };
}

/* The driver's ring on an engine. */
static struct queue *find_ring(struct gpu *gpu, unsigned int engine)
{
	unsigned int i;

	for (i = 0; i < QUEUE_MAX; i++) {
		struct queue *queue = &gpu->queues[i];

		if (queue->active && queue->kind == QUEUE_SDMA && !queue->is_user &&
		    queue->engine == engine)
			return queue;
	}
	return NULL;
}

static uint64_t read_pair(const uint32_t *regs, uint32_t low, uint32_t high)
{
	return regs[low] | (uint64_t)regs[high] << 32;
}

static void start_ring(struct gpu *gpu, unsigned int engine, uint32_t control)
{
	const uint32_t *regs = gpu->regs + base_of(gpu, engine);
	struct queue *queue = queue_new(gpu);

	if (!queue)
		return;
	queue->active = true;
	queue->kind = QUEUE_SDMA;
	queue->engine = engine;
	queue->space = sdma_space(gpu, engine);
	queue->base = read_pair(regs, regSDMA0_GFX_RB_BASE, regSDMA0_GFX_RB_BASE_HI) << 8;
	queue->size_bytes = 4ull << FIELD(control, SDMA0_GFX_RB_CNTL, RB_SIZE);
	queue->rptr = read_pair(regs, regSDMA0_GFX_RB_RPTR, regSDMA0_GFX_RB_RPTR_HI);
	queue->wptr = read_pair(regs, regSDMA0_GFX_RB_WPTR, regSDMA0_GFX_RB_WPTR_HI);
	queue->rptr_address =
		read_pair(regs, regSDMA0_GFX_RB_RPTR_ADDR_LO, regSDMA0_GFX_RB_RPTR_ADDR_HI);
	queue->has_doorbell = FIELD(regs[regSDMA0_GFX_DOORBELL], SDMA0_GFX_DOORBELL, ENABLE);
	queue->doorbell =
		FIELD(regs[regSDMA0_GFX_DOORBELL_OFFSET], SDMA0_GFX_DOORBELL_OFFSET, OFFSET);
	report_log(&gpu->report, REPORT_QUEUES,
		   "SDMA %u: the driver's ring at %#llx, %#llx bytes, doorbell %#x", engine,
		   (unsigned long long)queue->base, (unsigned long long)queue->size_bytes,
		   queue->doorbell);
}

static void control_written(struct gpu *gpu, unsigned int engine, uint32_t value)
{
	struct queue *queue = find_ring(gpu, engine);
	bool enable = FIELD(value, SDMA0_GFX_RB_CNTL, RB_ENABLE);

	if (queue && !enable)
		queue_remove(queue);
	else if (!queue && enable)
		start_ring(gpu, engine, value);
}

void sdma_register_written(struct gpu *gpu, uint32_t reg, uint32_t value)
{
	struct queue *queue;
	unsigned int i;

	for (i = 0; i < gpu->asic->sdma_engines; i++) {
		switch (reg - base_of(gpu, i)) {
		case regSDMA0_GFX_RB_CNTL:
			control_written(gpu, i, value);
			return;
		case regSDMA0_GFX_RB_WPTR:
			queue = find_ring(gpu, i);
			if (queue)
				queue->wptr =
					read_pair(gpu->regs + base_of(gpu, i), regSDMA0_GFX_RB_WPTR,
						  regSDMA0_GFX_RB_WPTR_HI);
			return;
		}
	}
}

int sdma_report(struct gpu *gpu, const struct queue *queue)
{
	uint32_t *regs = gpu->regs + base_of(gpu, queue->engine);

	if (!queue->is_user) {
		regs[regSDMA0_GFX_RB_RPTR] = (uint32_t)queue->rptr;
		regs[regSDMA0_GFX_RB_RPTR_HI] = (uint32_t)(queue->rptr >> 32);
	}
	if (!queue->rptr_address)
		return 0;
	return memory_write64(gpu, &queue->space, queue->rptr_address, queue->rptr);
}

int sdma_wait_ms(struct gpu *gpu, const struct queue *queue)
{
	const struct sdma_engine *engine = &gpu->sdma[queue->engine];
	uint32_t control = gpu->regs[base_of(gpu, queue->engine) + gpu->asic->sdma_f32_control];
	uint64_t now;

	if (gpu->hangs || FIELD(control, SDMA0_F32_CNTL, HALT))
		return -1;
	if (!engine->busy_until_ns)
		return 0;
	now = gpu_now_ns();
	if (now >= engine->busy_until_ns)
		return 0;
	return (int)((engine->busy_until_ns - now + NS_PER_MS - 1) / NS_PER_MS);
}

/* The bytes are there at once. What takes time is the next packet, the fence for example. */
void sdma_count_copy(struct gpu *gpu, unsigned int engine, uint64_t size_bytes)
{
	struct sdma_engine *copier = &gpu->sdma[engine];
	uint64_t now;

	copier->copies++;
	copier->copied_bytes += size_bytes;
	if (!gpu->copy_bytes_per_s)
		return;
	now = gpu_now_ns();
	if (copier->busy_until_ns < now)
		copier->busy_until_ns = now;
	copier->busy_until_ns +=
		(uint64_t)((double)size_bytes * (double)NS_PER_S / (double)gpu->copy_bytes_per_s);
}
