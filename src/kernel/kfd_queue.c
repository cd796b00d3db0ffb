// SPDX-License-Identifier: GPL-2.0-only
/* Reads the hardware state of queues. src/preflight/ and src/restore/ decide what to refuse. */
#include "kernel/kfd_queue.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "amdgpu_plugin_util.h"
#include "kernel/amdgpu_module.h"

/* sizeof(struct v9_mqd) in amdgpu's v9_structs.h. All GPUs with several XCCs are of that family.
 * The MQDs of gfx10 and gfx11 have the same size. */
#define MQD_OF_ONE_XCC 2048u
/* The same of struct v9_sdma_mqd. */
#define SDMA_MQD 512u

/* Offsets of cp_hqd_cntl_stack_offset, cp_hqd_cntl_stack_size and cp_hqd_wg_state_offset in struct
 * v9_mqd. */
#define MQD_STACK_OFFSET 696u
#define MQD_STACK_SIZE   700u
#define MQD_STATE_OFFSET 704u

/* Offset of cp_hqd_pq_control in the MQD of a compute queue, the same from struct vi_mqd to struct
 * v11_compute_mqd, and its bits PRIV_STATE and KMD_QUEUE (gc_9_0_sh_mask.h). */
#define MQD_PQ_CONTROL 580u
#define KERNEL_QUEUE   (3u << 30)

/* Offset of sdmax_rlcx_rb_cntl in the MQD of an SDMA queue, and its bit RB_PRIV. */
#define MQD_RB_CNTL 0u
#define KERNEL_RING (1u << 23)

/* The last KFD that saves and restores one XCC. Linux 6.18 has KFD 1.18, and all of them. From then
 * on the XCCs were counted wrong (set_queue_properties_from_criu() in kfd_process_queue_manager.c).
 */
#define KFD_MINOR_ONE_XCC 17

#define GPU_PAGE 4096u

/* Offset of ctl_stack_size in the queue's record (kfd_criu_queue_priv_data in kfd_priv.h). */
#define RECORD_STACK_SIZE 108u

/* More than the control stacks of any GPU: 40 waves of 8 bytes for each of 256 CUs, for 64 XCCs. */
#define MOST_STACK_BYTES (1u << 23)

static bool is_compute(const struct kfd_queue *queue)
{
	return queue->saved->type == KFD_PRIV_QUEUE_COMPUTE;
}

/* Returns 0 if the MQD is too short. */
static uint32_t mqd_word(const struct kfd_queue *queue, uint64_t offset)
{
	const struct kfd_priv_queue *saved = queue->saved;
	uint64_t mqd = saved->offset + saved->size - saved->ctl_stack_size - saved->mqd_size;
	uint32_t word;

	if (offset + sizeof(word) > saved->mqd_size)
		return 0;
	memcpy(&word, queue->priv->bytes + mqd + offset, sizeof(word));
	return word;
}

/* Without CWSR a pause waits until the waves end, or the driver resets the GPU. */
bool kfd_queue_driver_saves_waves(void)
{
	int enabled;

	/* A kernel without the parameter saves waves. */
	return !amdgpu_module_parameter("cwsr_enable", &enabled) || enabled;
}

bool kfd_queue_lacks_xccs(const struct kfd_queue *queue)
{
	return is_compute(queue) && queue->gpu->num_xcc > 1 &&
	       queue->saved->mqd_size < (uint64_t)MQD_OF_ONE_XCC * queue->gpu->num_xcc;
}

/* restore_mqd_v9_4_3() in kfd_mqd_manager_v9.c copies an MQD for each XCC of the GPU, whatever the
 * size in the record. */
bool kfd_queue_reads_beyond(const struct kfd_queue *queue)
{
	return kfd_queue_lacks_xccs(queue) && queue->kfd_minor > KFD_MINOR_ONE_XCC;
}

/* restore_mqd() in the same file fills one MQD, and the GPU takes those of the other XCCs for this
 * queue, too. */
bool kfd_queue_exceeds_xccs(const struct kfd_queue *queue)
{
	return is_compute(queue) && queue->gpu->num_xcc > 1 &&
	       queue->kfd_minor <= KFD_MINOR_ONE_XCC && queue->saved->mqd_size > MQD_OF_ONE_XCC;
}

/* Other generations have the control stack in the memory of the process (get_checkpoint_info() in
 * the kernel's kfd_mqd_manager_*.c). */
static bool has_stack(const struct kfd_queue *queue)
{
	uint32_t version = queue->gpu->gfx_target_version;

	return is_compute(queue) && version >= TOPOLOGY_GFX9 && version < TOPOLOGY_GFX10;
}

/* The largest that an MQD states, as an image may differ from what a driver has saved. */
static uint64_t stated_stack(const struct kfd_queue *queue)
{
	uint32_t most = 0;

	for (uint64_t mqd = 0; mqd < queue->saved->mqd_size; mqd += MQD_OF_ONE_XCC) {
		uint32_t bytes = mqd_word(queue, mqd + MQD_STACK_SIZE);

		most = bytes > most ? bytes : most;
	}
	return most;
}

uint64_t kfd_queue_stack_bytes(const struct kfd_queue *queue)
{
	uint64_t bytes = has_stack(queue) ? stated_stack(queue) : 0;

	/* A queue without an area for its waves has none. */
	if (!bytes && has_stack(queue) && queue->saved->cwsr_size)
		bytes = queue->gpu->ctl_stack_size;
	return bytes * (queue->saved->mqd_size / MQD_OF_ONE_XCC);
}

bool kfd_queue_lacks_stack(const struct kfd_queue *queue)
{
	return queue->saved->ctl_stack_size < kfd_queue_stack_bytes(queue);
}

/* The control stack grows down from its end, and the state of the waves grows up from there
 * (init_mqd() and get_wave_state() in the kernel's kfd_mqd_manager_v9.c). */
static bool has_no_waves(const struct kfd_queue *queue, uint64_t mqd)
{
	const uint32_t size = mqd_word(queue, mqd + MQD_STACK_SIZE);

	return size && mqd_word(queue, mqd + MQD_STACK_OFFSET) == size &&
	       mqd_word(queue, mqd + MQD_STATE_OFFSET) == size;
}

bool kfd_queue_loses_waves(const struct kfd_queue *queue)
{
	if (!kfd_queue_lacks_stack(queue))
		return false;
	for (uint64_t mqd = 0; mqd < queue->saved->mqd_size; mqd += MQD_OF_ONE_XCC) {
		if (!has_no_waves(queue, mqd))
			return true;
	}
	return false;
}

int kfd_queue_add_stack(const struct kfd_queue *queue, uint8_t **ret_bytes, size_t *ret_size)
{
	const struct kfd_priv_queue *saved = queue->saved;
	const uint64_t stack_bytes = kfd_queue_stack_bytes(queue);
	const uint64_t stack = saved->offset + saved->size - saved->ctl_stack_size;
	const uint64_t end = saved->offset + saved->size;
	const uint32_t stated = (uint32_t)stack_bytes;
	uint8_t *bytes;

	if (stack_bytes > MOST_STACK_BYTES)
		return -EINVAL;
	bytes = calloc(1, stack + stack_bytes + queue->priv->size - end);
	if (!bytes)
		return -ENOMEM;
	memcpy(bytes, queue->priv->bytes, stack);
	memcpy(bytes + saved->offset + RECORD_STACK_SIZE, &stated, sizeof(stated));
	memcpy(bytes + stack + stack_bytes, queue->priv->bytes + end, queue->priv->size - end);
	*ret_bytes = bytes;
	*ret_size = stack + stack_bytes + queue->priv->size - end;
	return 0;
}

bool kfd_queue_exceeds_stack(const struct kfd_queue *queue)
{
	uint64_t most = queue->gpu->ctl_stack_size;

	/* Older kernels do not state it. */
	if (!has_stack(queue) || !most)
		return false;
	most = (most + GPU_PAGE - 1) / GPU_PAGE * GPU_PAGE;
	return queue->saved->ctl_stack_size > most * (queue->saved->mqd_size / MQD_OF_ONE_XCC);
}

bool kfd_queue_gpu_may_overrun(const struct topology *topology, const struct topology_node *gpu,
			       uint32_t kfd_minor)
{
	return topology_has_partitions(gpu) && kfd_minor > KFD_MINOR_ONE_XCC &&
	       topology_is_partition(topology, gpu);
}

bool kfd_queue_changes_partition(const struct kfd_queue *queue)
{
	return !is_compute(queue) && !queue->saved_gpu->location_unknown &&
	       topology_partition(queue->saved_gpu) != topology_partition(queue->gpu);
}

bool kfd_queue_may_overrun(const struct kfd_queue *queue)
{
	return is_compute(queue) &&
	       kfd_queue_gpu_may_overrun(queue->topology, queue->gpu, queue->kfd_minor);
}

bool kfd_queue_has_odd_size(const struct kfd_queue *queue)
{
	return queue->gpu->gfx_target_version >= TOPOLOGY_GFX9 &&
	       queue->saved->mqd_size % (is_compute(queue) ? MQD_OF_ONE_XCC : SDMA_MQD);
}

bool kfd_queue_has_kernel_rights(const struct kfd_queue *queue)
{
	uint32_t bits = 0;

	if (!is_compute(queue))
		return mqd_word(queue, MQD_RB_CNTL) & KERNEL_RING;
	for (uint64_t mqd = 0; mqd + MQD_OF_ONE_XCC <= queue->saved->mqd_size;
	     mqd += MQD_OF_ONE_XCC)
		bits |= mqd_word(queue, mqd + MQD_PQ_CONTROL);
	return bits & KERNEL_QUEUE;
}
