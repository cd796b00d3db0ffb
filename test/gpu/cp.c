// SPDX-License-Identifier: GPL-2.0-only
#include "cp.h"

#include <ivsrcid/gfx/irqsrcs_gfx_9_0.h>
#include <soc15_ih_clientid.h>

#include "gpu.h"
#include "ih.h"
#include "mqd.h"

struct place {
	unsigned int xcc, me, pipe, index;
};

static struct place selected(const struct gpu *gpu, unsigned int xcc)
{
	uint32_t select = gpu->regs[gpu_register_of(xcc, REG(GC, mmGRBM_GFX_CNTL))];

	return (struct place){ .xcc = xcc,
			       .me = FIELD(select, GRBM_GFX_CNTL, MEID),
			       .pipe = FIELD(select, GRBM_GFX_CNTL, PIPEID),
			       .index = FIELD(select, GRBM_GFX_CNTL, QUEUEID) };
}

/* The driver's queue at the selected place. Those of processes are not visible to registers. */
static const struct queue *find_selected(const struct gpu *gpu, unsigned int xcc)
{
	struct place place = selected(gpu, xcc);
	unsigned int i;

	for (i = 0; i < QUEUE_MAX; i++) {
		const struct queue *queue = &gpu->queues[i];

		if (queue->active && queue->kind != QUEUE_SDMA && !queue->is_user &&
		    queue->space.instance == place.xcc && queue->me == place.me &&
		    queue->pipe == place.pipe && queue->index == place.index)
			return queue;
	}
	return NULL;
}

bool cp_selected_is_active(const struct gpu *gpu, unsigned int xcc)
{
	return find_selected(gpu, xcc) != NULL;
}

static void start_selected(struct gpu *gpu, unsigned int xcc)
{
	struct queue *queue = queue_new(gpu);
	struct place place = selected(gpu, xcc);

	if (!queue)
		return;
	mqd_from_registers(gpu, xcc, queue);
	queue->active = true;
	queue->me = place.me;
	queue->pipe = place.pipe;
	queue->index = place.index;
	report_log(&gpu->report, REPORT_QUEUES,
		   "CP: queue %u.%u.%u.%u by registers: ring %#llx, %#llx bytes, doorbell %#x", xcc,
		   place.me, place.pipe, place.index, (unsigned long long)queue->base,
		   (unsigned long long)queue->size_bytes, queue->doorbell);
}

static void stop_selected(struct gpu *gpu, unsigned int xcc)
{
	const struct queue *queue = find_selected(gpu, xcc);

	if (queue)
		queue_remove(&gpu->queues[queue - gpu->queues]);
}

void cp_register_written(struct gpu *gpu, uint32_t reg, uint32_t value)
{
	unsigned int xcc;

	switch (gpu_local_register(gpu, reg, &xcc)) {
	case REG(GC, mmCP_HQD_ACTIVE):
		if (!FIELD(value, CP_HQD_ACTIVE, ACTIVE))
			stop_selected(gpu, xcc);
		else if (!find_selected(gpu, xcc))
			start_selected(gpu, xcc);
		return;
	case REG(GC, mmCP_HQD_DEQUEUE_REQUEST):
		if (value)
			stop_selected(gpu, xcc);
		return;
	}
}

void cp_interrupt(struct gpu *gpu, const struct queue *queue, uint32_t context)
{
	struct ih_entry entry = {
		.client = SOC15_IH_CLIENTID_GRBM_CP,
		.source = GFX_9_0__SRCID__CP_EOP_INTERRUPT,
		.ring = queue->me << 2 | queue->pipe | queue->index << 4,
		.space = queue->space,
		.data = { context },
	};

	ih_post(gpu, &entry);
}
