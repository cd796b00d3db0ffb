// SPDX-License-Identifier: GPL-2.0-only
#include "mqd.h"

#include <v9_structs.h>

#include "aql.h"
#include "gpu.h"

static const struct space kernel_space = { .hub = HUB_GFX };

static uint64_t join(uint32_t low, uint32_t high)
{
	return low | (uint64_t)high << 32;
}

static void from_compute(const struct v9_mqd *mqd, unsigned int xcc, struct queue *queue)
{
	uint32_t doorbell = mqd->cp_hqd_pq_doorbell_control;

	queue->kind = mqd->cp_hqd_aql_control & 1 ? QUEUE_AQL : QUEUE_PM4;
	queue->space = (struct space){ .hub = HUB_GFX,
				       .vmid = FIELD(mqd->cp_hqd_vmid, CP_HQD_VMID, VMID),
				       .instance = xcc };
	queue->xcc_turn = mqd->compute_current_logic_xcc_id;
	queue->target_xcc = mqd->pm4_target_xcc_in_xcp;
	queue->base = join(mqd->cp_hqd_pq_base_lo, mqd->cp_hqd_pq_base_hi) << 8;
	queue->size_bytes = 8ull << FIELD(mqd->cp_hqd_pq_control, CP_HQD_PQ_CONTROL, QUEUE_SIZE);
	queue->rptr = 4ull * mqd->cp_hqd_pq_rptr;
	queue->wptr = 4ull * mqd->cp_hqd_pq_wptr_lo;
	/* AQL queues of the MI210 have the bit, too, and report all the same. */
	if (queue->kind == QUEUE_AQL ||
	    !FIELD(mqd->cp_hqd_pq_control, CP_HQD_PQ_CONTROL, NO_UPDATE_RPTR))
		queue->rptr_address = join(mqd->cp_hqd_pq_rptr_report_addr_lo,
					   mqd->cp_hqd_pq_rptr_report_addr_hi);
	queue->has_doorbell = FIELD(doorbell, CP_HQD_PQ_DOORBELL_CONTROL, DOORBELL_EN);
	queue->doorbell = FIELD(doorbell, CP_HQD_PQ_DOORBELL_CONTROL, DOORBELL_OFFSET);
	queue->save_area =
		join(mqd->cp_hqd_ctx_save_base_addr_lo, mqd->cp_hqd_ctx_save_base_addr_hi);
	queue->save_bytes = mqd->cp_hqd_ctx_save_size;
	queue->stack_bytes = mqd->cp_hqd_cntl_stack_size;
}

void mqd_from_registers(struct gpu *gpu, unsigned int xcc, struct queue *queue)
{
	const uint32_t *regs = gpu->regs + (xcc << ASIC_INSTANCE_SHIFT);
	const struct v9_mqd mqd = {
		.cp_hqd_vmid = regs[REG(GC, mmCP_HQD_VMID)],
		.cp_hqd_pq_base_lo = regs[REG(GC, mmCP_HQD_PQ_BASE)],
		.cp_hqd_pq_base_hi = regs[REG(GC, mmCP_HQD_PQ_BASE_HI)],
		.cp_hqd_pq_control = regs[REG(GC, mmCP_HQD_PQ_CONTROL)],
		.cp_hqd_pq_rptr_report_addr_lo = regs[REG(GC, mmCP_HQD_PQ_RPTR_REPORT_ADDR)],
		.cp_hqd_pq_rptr_report_addr_hi = regs[REG(GC, mmCP_HQD_PQ_RPTR_REPORT_ADDR_HI)],
		.cp_hqd_pq_doorbell_control = regs[REG(GC, mmCP_HQD_PQ_DOORBELL_CONTROL)],
		.cp_hqd_pq_rptr = regs[REG(GC, mmCP_HQD_PQ_RPTR)],
		.cp_hqd_pq_wptr_lo = regs[REG(GC, mmCP_HQD_PQ_WPTR_LO)],
	};

	from_compute(&mqd, xcc, queue);
}

int mqd_load_compute(struct gpu *gpu, uint64_t mqd, unsigned int xcc, struct queue *queue)
{
	struct v9_mqd descriptor;
	int ret = memory_read(gpu, &kernel_space, mqd, &descriptor, sizeof(descriptor));

	if (ret < 0)
		return ret;
	from_compute(&descriptor, xcc, queue);
	queue->mqd = mqd;
	return 0;
}

int mqd_load_sdma(struct gpu *gpu, uint64_t mqd, unsigned int engine, struct queue *queue)
{
	struct v9_sdma_mqd m;
	int ret = memory_read(gpu, &kernel_space, mqd, &m, sizeof(m));

	if (ret < 0)
		return ret;
	queue->kind = QUEUE_SDMA;
	queue->mqd = mqd;
	queue->engine = engine;
	queue->space = sdma_space(gpu, engine);
	queue->base = join(m.sdmax_rlcx_rb_base, m.sdmax_rlcx_rb_base_hi) << 8;
	queue->size_bytes = 4ull << FIELD(m.sdmax_rlcx_rb_cntl, SDMA0_RLC0_RB_CNTL, RB_SIZE);
	queue->rptr = join(m.sdmax_rlcx_rb_rptr, m.sdmax_rlcx_rb_rptr_hi);
	queue->wptr = join(m.sdmax_rlcx_rb_wptr, m.sdmax_rlcx_rb_wptr_hi);
	queue->rptr_address = join(m.sdmax_rlcx_rb_rptr_addr_lo, m.sdmax_rlcx_rb_rptr_addr_hi);
	return 0;
}

int mqd_read_stride(struct gpu *gpu, uint64_t mqd, uint32_t *ret_stride)
{
	return memory_read(gpu, &kernel_space, mqd + offsetof(struct v9_mqd, cp_mqd_stride_size),
			   ret_stride, sizeof(*ret_stride));
}

static int save_sdma(struct gpu *gpu, const struct queue *queue)
{
	struct v9_sdma_mqd mqd;
	int ret = memory_read(gpu, &kernel_space, queue->mqd, &mqd, sizeof(mqd));

	if (ret < 0)
		return ret;
	mqd.sdmax_rlcx_rb_rptr = (uint32_t)queue->rptr;
	mqd.sdmax_rlcx_rb_rptr_hi = (uint32_t)(queue->rptr >> 32);
	mqd.sdmax_rlcx_rb_wptr = (uint32_t)queue->wptr;
	mqd.sdmax_rlcx_rb_wptr_hi = (uint32_t)(queue->wptr >> 32);
	return memory_write(gpu, &kernel_space, queue->mqd, &mqd, sizeof(mqd));
}

static int save_compute(struct gpu *gpu, struct queue *queue, bool with_waves)
{
	struct v9_mqd mqd;
	int ret = memory_read(gpu, &kernel_space, queue->mqd, &mqd, sizeof(mqd)), saved = 0;

	if (ret < 0)
		return ret;
	mqd.cp_hqd_pq_rptr = (uint32_t)(queue->rptr / 4);
	mqd.cp_hqd_pq_wptr_lo = (uint32_t)(queue->wptr / 4);
	/* empty: a stack grows down */
	mqd.cp_hqd_cntl_stack_offset = queue->stack_bytes;
	mqd.cp_hqd_wg_state_offset = queue->stack_bytes;
	if (with_waves)
		saved = aql_save(gpu, queue, &mqd);
	ret = memory_write(gpu, &kernel_space, queue->mqd, &mqd, sizeof(mqd));
	return saved < 0 ? saved : ret;
}

int mqd_save(struct gpu *gpu, struct queue *queue, bool with_waves)
{
	return queue->kind == QUEUE_SDMA ? save_sdma(gpu, queue)
					 : save_compute(gpu, queue, with_waves);
}

int mqd_load_waves(struct gpu *gpu, struct queue *queue)
{
	struct v9_mqd mqd;
	int ret = memory_read(gpu, &kernel_space, queue->mqd, &mqd, sizeof(mqd));

	return ret < 0 ? ret : aql_load(gpu, queue, &mqd);
}
