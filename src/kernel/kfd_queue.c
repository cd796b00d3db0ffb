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

/* Offsets of ctl_stack_size and mqd_size in the queue's record (kfd_criu_queue_priv_data in
 * kfd_priv.h). */
#define RECORD_STACK_SIZE 108u
#define RECORD_MQD_SIZE   112u

/* More than the control stacks of any GPU: 40 waves of 8 bytes for each of 256 CUs, for 64 XCCs. */
#define MOST_STACK_BYTES (1u << 23)

static bool is_compute(const struct kfd_queue *queue)
{
	return queue->saved->type == KFD_PRIV_QUEUE_COMPUTE;
}

/* Bytes of the MQDs and control stacks in the record, and where they begin in the data. */
static uint64_t state_bytes(const struct kfd_priv_queue *saved)
{
	return (uint64_t)saved->mqd_size + saved->ctl_stack_size;
}

static uint64_t state_offset(const struct kfd_priv_queue *saved)
{
	return saved->offset + saved->size - state_bytes(saved);
}

/* @offset counts from the first MQD. Returns 0 if the record is too short. */
static uint32_t mqd_word(const struct kfd_queue *queue, uint64_t offset)
{
	const struct kfd_priv_queue *saved = queue->saved;
	uint32_t word;

	if (offset + sizeof(word) > state_bytes(saved))
		return 0;
	memcpy(&word, queue->priv->bytes + state_offset(saved) + offset, sizeof(word));
	return word;
}

/* Other generations have the control stack in the memory of the process (get_checkpoint_info() in
 * the kernel's kfd_mqd_manager_*.c). */
static bool has_stack(const struct kfd_queue *queue)
{
	uint32_t version = queue->gpu->gfx_target_version;

	return is_compute(queue) && version >= TOPOLOGY_GFX9 && version < TOPOLOGY_GFX10;
}

/* The control stack grows down from its end, and the state of the waves grows up from there
 * (init_mqd() and get_wave_state() in the kernel's kfd_mqd_manager_v9.c). */
static bool has_no_waves(const struct kfd_queue *queue, uint64_t mqd)
{
	const uint32_t size = mqd_word(queue, mqd + MQD_STACK_SIZE);

	return size && mqd_word(queue, mqd + MQD_STACK_OFFSET) == size &&
	       mqd_word(queue, mqd + MQD_STATE_OFFSET) == size;
}

/* Whether no XCC has waves, and control stacks of the stated size give the MQDs of all XCCs room.
 */
static bool fits_one_mqd(const struct kfd_queue *queue)
{
	const uint32_t stack = mqd_word(queue, MQD_STACK_SIZE);

	for (uint64_t xcc = 0; xcc < queue->gpu->num_xcc; xcc++) {
		const uint64_t mqd = xcc * MQD_OF_ONE_XCC;

		if (!has_no_waves(queue, mqd) || mqd_word(queue, mqd + MQD_STACK_SIZE) != stack)
			return false;
	}
	return stack >= MQD_OF_ONE_XCC;
}

/* Whether the record has the form that kfd_queue_repair() gives queues of several XCCs. The record
 * of a single XCC has one control stack. */
static bool is_rearranged(const struct kfd_queue *queue)
{
	const struct kfd_priv_queue *saved = queue->saved;
	const uint64_t stack = mqd_word(queue, MQD_STACK_SIZE);

	return has_stack(queue) && queue->gpu->num_xcc > 1 && saved->mqd_size == MQD_OF_ONE_XCC &&
	       saved->ctl_stack_size == stack * queue->gpu->num_xcc && fits_one_mqd(queue);
}

/* The number of XCCs whose MQDs the record has. */
static uint32_t saved_xccs(const struct kfd_queue *queue)
{
	return is_rearranged(queue) ? queue->gpu->num_xcc : queue->saved->mqd_size / MQD_OF_ONE_XCC;
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
	       saved_xccs(queue) < queue->gpu->num_xcc;
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
	       queue->kfd_minor <= KFD_MINOR_ONE_XCC && saved_xccs(queue) > 1;
}

/* The largest that an MQD states, as an image may differ from what a driver has saved. */
static uint64_t stated_stack(const struct kfd_queue *queue)
{
	const uint32_t xccs = saved_xccs(queue);
	uint32_t most = 0;

	for (uint64_t xcc = 0; xcc < xccs; xcc++) {
		uint32_t bytes = mqd_word(queue, xcc * MQD_OF_ONE_XCC + MQD_STACK_SIZE);

		most = bytes > most ? bytes : most;
	}
	return most;
}

static uint64_t stack_bytes(const struct kfd_queue *queue)
{
	uint64_t bytes = has_stack(queue) ? stated_stack(queue) : 0;

	/* A queue without an area for its waves has none. */
	if (!bytes && has_stack(queue) && queue->saved->cwsr_size)
		bytes = queue->gpu->ctl_stack_size;
	return bytes * saved_xccs(queue);
}

static bool lacks_stack(const struct kfd_queue *queue)
{
	return queue->saved->ctl_stack_size < stack_bytes(queue);
}

bool kfd_queue_has_waves(const struct kfd_queue *queue)
{
	const uint32_t xccs = saved_xccs(queue);

	for (uint64_t xcc = 0; has_stack(queue) && xcc < xccs; xcc++) {
		if (!has_no_waves(queue, xcc * MQD_OF_ONE_XCC))
			return true;
	}
	return false;
}

bool kfd_queue_loses_waves(const struct kfd_queue *queue)
{
	return lacks_stack(queue) && kfd_queue_has_waves(queue);
}

/* The state that a restore gives the driver: the first @copied bytes of what the record has, and
 * then zeros. */
struct form {
	uint64_t copied;
	uint64_t mqd_size;
	uint64_t stack_size;
};

static bool needs_one_mqd(const struct kfd_queue *queue)
{
	return has_stack(queue) && queue->gpu->num_xcc > 1 &&
	       queue->kfd_minor > KFD_MINOR_ONE_XCC &&
	       queue->saved->mqd_size == (uint64_t)MQD_OF_ONE_XCC * queue->gpu->num_xcc &&
	       fits_one_mqd(queue);
}

/* See kfd_queue_repair(). */
static struct form find_form(const struct kfd_queue *queue)
{
	const struct kfd_priv_queue *saved = queue->saved;

	if (!is_compute(queue) && queue->gpu->num_xcc > 1 && saved->mqd_size > SDMA_MQD)
		return (struct form){ SDMA_MQD, SDMA_MQD, 0 };
	if (needs_one_mqd(queue))
		return (struct form){ saved->mqd_size, MQD_OF_ONE_XCC, stack_bytes(queue) };
	if (lacks_stack(queue))
		return (struct form){ saved->mqd_size, saved->mqd_size, stack_bytes(queue) };
	return (struct form){ state_bytes(saved), saved->mqd_size, saved->ctl_stack_size };
}

static void set_size(uint8_t *at, uint64_t size)
{
	const uint32_t bytes = (uint32_t)size;

	memcpy(at, &bytes, sizeof(bytes));
}

int kfd_queue_repair(const struct kfd_queue *queue, uint8_t **ret_bytes, size_t *ret_size)
{
	const struct kfd_priv_queue *saved = queue->saved;
	const struct form form = find_form(queue);
	const uint64_t state = state_offset(saved), bytes = form.mqd_size + form.stack_size;
	const uint64_t end = saved->offset + saved->size, behind = queue->priv->size - end;

	if (form.mqd_size == saved->mqd_size && form.stack_size == saved->ctl_stack_size)
		return 0;
	if (form.stack_size > MOST_STACK_BYTES)
		return -EINVAL;
	*ret_bytes = calloc(1, state + bytes + behind);
	if (!*ret_bytes)
		return -ENOMEM;
	memcpy(*ret_bytes, queue->priv->bytes, state + form.copied);
	set_size(*ret_bytes + saved->offset + RECORD_MQD_SIZE, form.mqd_size);
	set_size(*ret_bytes + saved->offset + RECORD_STACK_SIZE, form.stack_size);
	memcpy(*ret_bytes + state + bytes, queue->priv->bytes + end, behind);
	*ret_size = state + bytes + behind;
	return 1;
}

bool kfd_queue_exceeds_stack(const struct kfd_queue *queue)
{
	uint64_t most = queue->gpu->ctl_stack_size;

	/* Older kernels do not state it. */
	if (!has_stack(queue) || !most)
		return false;
	return queue->saved->ctl_stack_size > round_up(most, KFD_GPU_PAGE) * saved_xccs(queue);
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
	const uint32_t xccs = saved_xccs(queue);
	uint32_t bits = 0;

	if (!is_compute(queue))
		return mqd_word(queue, MQD_RB_CNTL) & KERNEL_RING;
	for (uint64_t xcc = 0; xcc < xccs; xcc++)
		bits |= mqd_word(queue, xcc * MQD_OF_ONE_XCC + MQD_PQ_CONTROL);
	return bits & KERNEL_QUEUE;
}
