// SPDX-License-Identifier: GPL-2.0-only
/* Registers and time of the copy engines. Their packets are in sdma_packets.c. */
#include "sdma.h"

#include <soc15_ih_clientid.h>

#include "gpu.h"

#define NS_PER_MS 1000000ull
#define NS_PER_S  1000000000ull

/* Engines 2 to 4 have no base in the header: aldebaran_reg_base_init() reads it from a table that
 * the driver builds. */
static const struct {
	uint32_t base;
	uint8_t client;
} engines[SDMA_ENGINES] = {
	{ SDMA0_BASE__INST0_SEG0, SOC15_IH_CLIENTID_SDMA0 },
	{ SDMA1_BASE__INST0_SEG0, SOC15_IH_CLIENTID_SDMA1 },
	{ 0x1e000, SOC15_IH_CLIENTID_SDMA2 },
	{ 0x1e400, SOC15_IH_CLIENTID_SDMA3 },
	{ 0x1e800, SOC15_IH_CLIENTID_SDMA4 },
};

uint32_t sdma_base(unsigned int engine)
{
	return engines[engine].base;
}

uint8_t sdma_client(unsigned int engine)
{
	return engines[engine].client;
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
	const uint32_t *regs = gpu->regs + engines[engine].base;
	struct queue *queue = queue_new(gpu);

	if (!queue)
		return;
	queue->active = true;
	queue->kind = QUEUE_SDMA;
	queue->engine = engine;
	queue->space.hub = HUB_MM;
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

	for (i = 0; i < SDMA_ENGINES; i++) {
		switch (reg - engines[i].base) {
		case regSDMA0_GFX_RB_CNTL:
			control_written(gpu, i, value);
			return;
		case regSDMA0_GFX_RB_WPTR:
			queue = find_ring(gpu, i);
			if (queue)
				queue->wptr =
					read_pair(gpu->regs + engines[i].base, regSDMA0_GFX_RB_WPTR,
						  regSDMA0_GFX_RB_WPTR_HI);
			return;
		}
	}
}

int sdma_report(struct gpu *gpu, const struct queue *queue)
{
	uint32_t *regs = gpu->regs + engines[queue->engine].base;

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
	uint32_t control = gpu->regs[engines[queue->engine].base + regSDMA0_F32_CNTL];
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
