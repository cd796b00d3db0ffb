// SPDX-License-Identifier: GPL-2.0-only
/* What CHECKPOINT saves of a queue: a record, and the state of the queue on the hardware. */
#include "process.h"

/* Older drivers know only the first. */
u32 sim_queue_saved_xccs(const struct sim_gpu *gpu)
{
	return SIM_KNOB(gpu->sim, one_xcc) ? 1 : max(gpu->num_xcc, 1u);
}

/* get_queue_checkpoint_info() in kfd_device_queue_manager.c multiplies for all types of queues. */
u32 sim_queue_mqd_bytes(const struct sim_gpu *gpu, u32 type)
{
	u32 bytes = type == SIM_QUEUE_COMPUTE ? SIM_MQD_COMPUTE_BYTES : SIM_MQD_SDMA_BYTES;

	return bytes * sim_queue_saved_xccs(gpu);
}

static u32 mqd_bytes(const struct sim_queue *queue)
{
	return sim_queue_mqd_bytes(queue->pdd->gpu, queue->type);
}

/* Only gfx9 has the control stack in the kernel, behind the MQD (kfd_mqd_manager_v9.c). */
static u32 ctl_stack_bytes(const struct sim_queue *queue)
{
	const struct sim_gpu *gpu = queue->pdd->gpu;

	if (queue->type != SIM_QUEUE_COMPUTE || gpu->gfx_target_version < SIM_GFX9 ||
	    gpu->gfx_target_version >= SIM_GFX10 || SIM_KNOB(gpu->sim, no_ctl_stack))
		return 0;
	return queue->ctl_stack_size * sim_queue_saved_xccs(gpu);
}

u32 sim_queue_state_bytes(const struct sim_queue *queue)
{
	return mqd_bytes(queue) + ctl_stack_bytes(queue);
}

static void set_word(u8 *at, u32 value)
{
	memcpy(at, &value, sizeof(value));
}

/* A wave in the last XCC: its entry in the control stack, which grows down, and its state, which
 * grows up. */
static void add_wave(u8 *mqd, u32 ctl_stack_size)
{
	set_word(mqd + SIM_MQD_STACK_TOP, ctl_stack_size - 8);
	set_word(mqd + SIM_MQD_WAVES_END, ctl_stack_size + 4096);
}

static bool has_waves(const struct sim_queue *queue)
{
	const struct sim_process *process = queue->pdd->process;

	return process->unpauses < SIM_KNOB(process->sim, running_kernels) +
					   process->number * SIM_KNOB(process->sim, later_kernels);
}

/* As init_mqd() and update_mqd() in kfd_mqd_manager_v9.c set them: RPTR_BLOCK_SIZE and
 * UNORD_DISPATCH of the first. */
static void fill_registers(const struct sim_queue *queue, const struct sim_mqd *mqd, u8 *at)
{
	u32 xcc;

	for (xcc = 0; xcc < sim_queue_saved_xccs(queue->pdd->gpu); xcc++) {
		memcpy(at, mqd, sizeof(*mqd));
		set_word(at + SIM_MQD_CONTROL, 5u << 8 | 1u << 28);
		set_word(at + SIM_MQD_CTL_STACK, queue->mqd_ctl_stack_size);
		set_word(at + SIM_MQD_STACK_TOP, queue->mqd_ctl_stack_size);
		set_word(at + SIM_MQD_WAVES_END, queue->mqd_ctl_stack_size);
		at += SIM_MQD_COMPUTE_BYTES;
	}
	if (has_waves(queue))
		add_wave(at - SIM_MQD_COMPUTE_BYTES, queue->mqd_ctl_stack_size);
}

static void fill_mqd(const struct sim_queue *queue, void *at)
{
	struct sim_mqd mqd = {
		.magic = SIM_MQD_MAGIC,
		.rptr = queue->rptr,
		.wptr = queue->wptr,
		.ring_addr = queue->ring_addr,
		.ring_size = queue->ring_size,
	};

	memcpy(at, &mqd, sizeof(mqd));
	if (queue->type == SIM_QUEUE_COMPUTE)
		fill_registers(queue, &mqd, at);
}

static void fill_queue(const struct sim_queue *queue, struct sim_priv_queue *record)
{
	record->object_type = SIM_PRIV_QUEUE;
	record->q_address = queue->ring_addr;
	record->q_size = queue->ring_size;
	record->read_ptr_addr = queue->rptr_addr;
	record->write_ptr_addr = queue->wptr_addr;
	record->eop_addr = queue->eop_addr;
	record->cwsr_addr = queue->cwsr_addr;
	record->gpu_id = queue->pdd->user_gpu_id;
	record->type = queue->type;
	record->format = queue->format;
	record->q_id = queue->id;
	record->priority = queue->priority;
	record->q_percent = queue->percent;
	record->doorbell_id = queue->doorbell_id;
	record->sdma_id = queue->sdma_id;
	record->eop_size = queue->eop_size;
	record->cwsr_size = queue->cwsr_size;
	record->ctl_stack_size = ctl_stack_bytes(queue);
	record->mqd_size = mqd_bytes(queue);
}

void sim_queue_save(const struct sim_queue *queue, struct sim_priv_queue *record)
{
	u8 *mqd = (u8 *)(record + 1);

	fill_queue(queue, record);
	fill_mqd(queue, mqd);
	if (queue->ctl_stack)
		memcpy(mqd + record->mqd_size, queue->ctl_stack,
		       min(record->ctl_stack_size, queue->ctl_stack_size));
}
