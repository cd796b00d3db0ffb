// SPDX-License-Identifier: GPL-2.0-only
#include "xcp.h"

#include <asic_reg/gc/gc_9_4_3_sh_mask.h>
#include <asic_reg/nbio/nbio_7_9_0_sh_mask.h>

#include "gpu.h"

static uint32_t control_of(const struct gpu *gpu, unsigned int xcc)
{
	return gpu->regs[gpu_register_of(xcc, gpu->asic->xcp_control)];
}

/* Firmware has made one partition, and one of the memory (NPS1). */
void xcp_init(struct gpu *gpu)
{
	const struct asic *asic = gpu->asic;
	unsigned int xcc;

	if (!asic->xcp_control)
		return;
	gpu->regs[asic->memory_modes] = BIF_BX_PF0_PARTITION_MEM_CAP__NPS1_SUPPORT_MASK;
	gpu->regs[asic->memory_mode] = 1 << BIF_BX_PF0_PARTITION_MEM_STATUS__NPS_MODE__SHIFT;
	for (xcc = 0; xcc < asic->xccs; xcc++)
		gpu->regs[gpu_register_of(xcc, asic->xcp_control)] =
			asic->xccs << CP_HYP_XCP_CTL__NUM_XCC_IN_XCP__SHIFT |
			xcc << CP_HYP_XCP_CTL__VIRTUAL_XCC_ID__SHIFT;
}

struct xcp xcp_of(const struct gpu *gpu, unsigned int xcc)
{
	uint32_t control = gpu->asic->xcp_control ? control_of(gpu, xcc) : 0;
	unsigned int id = FIELD(control, CP_HYP_XCP_CTL, VIRTUAL_XCC_ID);
	unsigned int count = FIELD(control, CP_HYP_XCP_CTL, NUM_XCC_IN_XCP);

	if (id >= count || id > xcc || xcc - id + count > gpu->asic->xccs)
		return (struct xcp){ xcc, 1 };
	return (struct xcp){ xcc - id, count };
}

uint32_t xcp_status(const struct gpu *gpu)
{
	enum { SPX, DPX, TPX, QPX, CPX } mode = SPX;

	switch (gpu->asic->xccs / xcp_of(gpu, 0).count) {
	case 2:
		mode = DPX;
		break;
	case 4:
		mode = QPX;
		break;
	case 8:
		mode = CPX;
		break;
	}
	return mode << BIF_BX_PF0_PARTITION_COMPUTE_STATUS__PARTITION_MODE__SHIFT;
}

static unsigned int engines_per_xcc(const struct gpu *gpu)
{
	return gpu->asic->sdma_engines / gpu->asic->xccs;
}

int xcp_sdma_engine(const struct gpu *gpu, const struct xcp *xcp, unsigned int engine)
{
	unsigned int per_xcc = engines_per_xcc(gpu);

	return engine < xcp->count * per_xcc ? (int)(xcp->first * per_xcc + engine) : -1;
}

unsigned int xcp_xcc_of(const struct gpu *gpu, const struct queue *queue)
{
	return queue->kind == QUEUE_SDMA ? queue->engine / engines_per_xcc(gpu)
					 : queue->space.instance;
}
