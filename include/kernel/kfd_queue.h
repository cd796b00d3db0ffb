/* SPDX-License-Identifier: GPL-2.0-only */
/* What the saved hardware state of a queue says about its restore. In the private data the record
 * of a queue is followed by an MQD (memory queue descriptor) for each XCC, and then, on gfx9, by a
 * control stack for each XCC, which lists the waves that the GPU has saved. kfd_queue_repair() may
 * have changed it; the functions here read both. */
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

/* Whether the queue has a control stack in the kernel, and the MQD of an XCC does not say that it
 * has no waves. */
bool kfd_queue_has_waves(const struct kfd_queue *queue);
/* Whether it has, and the state lacks control stacks, which list the waves. */
bool kfd_queue_loses_waves(const struct kfd_queue *queue);

/* Copies the private data with the state of the queue in the form that each driver of the GPU
 * takes:
 *
 * - A queue of a copy engine has one MQD. On GPUs with several XCCs some drivers save more bytes
 *   than they take back: they compare the size with that of one MQD (kfd_criu_restore_queue() in
 *   kfd_process_queue_manager.c).
 * - So they do with a compute queue of several XCCs, but then read an MQD for each XCC, one behind
 *   the other (restore_mqd_v9_4_3() in kfd_mqd_manager_v9.c). If no XCC has waves, the record
 *   states one MQD, and the control stacks of all XCCs. The other MQDs are in the first control
 *   stack, which nothing reads. From KFD 1.18 on, also drivers that do not compare take it.
 * - The control stacks are those that the MQDs state, so that the driver makes room for them. Those
 *   that the state lacks are zeros.
 *
 * 1: the caller frees the copy; 0: the data has this form, or the queue has waves on several XCCs.
 * -EINVAL: the MQD states more than any GPU has. */
int kfd_queue_repair(const struct kfd_queue *queue, uint8_t **ret_bytes, size_t *ret_size);

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
