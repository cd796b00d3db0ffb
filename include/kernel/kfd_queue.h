/* SPDX-License-Identifier: GPL-2.0-only */
/* What the saved hardware state of a queue says about its restore. In the private data the record
 * of a queue is followed by an MQD (memory queue descriptor) for each XCC, and then, on gfx9, by a
 * control stack for each XCC, which lists the waves that the GPU has saved. */
#ifndef AMDGPU_PLUGIN_KERNEL_KFD_QUEUE_H
#define AMDGPU_PLUGIN_KERNEL_KFD_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "amdgpu_plugin_topology.h"
#include "kernel/kfd_priv.h"

struct kfd_queue {
	const struct kfd_priv *priv;
	const struct kfd_priv_queue *saved;
	/* The GPU whose driver has saved the queue, or is going to restore it; its machine; and the
	 * second number of KFD's version there. */
	const struct topology_node *gpu;
	const struct topology *topology;
	uint32_t kfd_minor;
	/* The GPU of the dump. */
	const struct topology_node *saved_gpu;
};

/* amdgpu's parameter cwsr_enable. */
bool kfd_queue_driver_saves_waves(void);

/* Whether the state is that of fewer XCCs than the GPU has. */
bool kfd_queue_lacks_xccs(const struct kfd_queue *queue);
/* Whether RESTORE would also read the missing ones, from memory of others in the kernel. */
bool kfd_queue_reads_beyond(const struct kfd_queue *queue);
/* Whether the state is that of several XCCs, of which RESTORE would leave out all but one. */
bool kfd_queue_exceeds_xccs(const struct kfd_queue *queue);

/* The bytes of all control stacks of the saved XCCs, as the MQD and the GPU have them. 0: the queue
 * has none in the kernel. */
uint64_t kfd_queue_stack_bytes(const struct kfd_queue *queue);
/* Whether the state has less than that. */
bool kfd_queue_lacks_stack(const struct kfd_queue *queue);
/* Whether it has less, and the MQD of an XCC does not say that the queue has no waves: then what it
 * lacks lists waves. */
bool kfd_queue_loses_waves(const struct kfd_queue *queue);
/* Copies the private data, and gives the queue control stacks of zeros instead of those that it
 * lacks, so that RESTORE makes room for what the MQD states. The caller frees the copy. -EINVAL:
 * the MQD states more than any GPU has. */
int kfd_queue_add_stack(const struct kfd_queue *queue, uint8_t **ret_bytes, size_t *ret_size);

/* Whether the saved state has more control stack bytes than the GPU's properties allow. */
bool kfd_queue_exceeds_stack(const struct kfd_queue *queue);

/* Whether RESTORE may write beyond the memory of compute queues on @gpu: it is a partition, and the
 * driver may count the XCCs of the whole device. Whether a driver has the fix cannot be asked. */
bool kfd_queue_gpu_may_overrun(const struct topology *topology, const struct topology_node *gpu,
			       uint32_t kfd_minor);
bool kfd_queue_may_overrun(const struct kfd_queue *queue);

/* Whether it is the queue of a copy engine, and would be on a partition with another number than at
 * the dump. The engines of the partitions of a device have different doorbells, and the process
 * rings that of the dump (allocate_doorbell() in kfd_device_queue_manager.c). */
bool kfd_queue_changes_partition(const struct kfd_queue *queue);

/* Whether the state is no number of whole MQDs. Older drivers read an MQD all the same. */
bool kfd_queue_has_odd_size(const struct kfd_queue *queue);

/* Whether the firmware would treat the queue as one of the kernel's, by PRIV_STATE or KMD_QUEUE in
 * CP_HQD_PQ_CONTROL, or RB_PRIV in SDMA0_RLC0_RB_CNTL. The driver copies these registers. */
bool kfd_queue_has_kernel_rights(const struct kfd_queue *queue);

#endif
