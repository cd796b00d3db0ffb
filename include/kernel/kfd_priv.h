/* SPDX-License-Identifier: GPL-2.0-only */
/* The driver's private data of a checkpoint: records of the process, its devices, its BOs and its
 * objects, which are queues, events and SVM ranges (kfd_priv.h, kfd_criu_*_priv_data). The plugin
 * reads of it how much of each queue the driver saved, and adds devices for a restore where more
 * GPUs are visible. All else is opaque and stays as it is.
 *
 * Drivers differ in the size of a BO's record. This unit derives the size: objects must fill the
 * data to the last byte. Bytes after the last object mean an unknown layout, and so does a rest
 * that does not divide by the number of BOs: no driver writes either, and RESTORE refuses both. */
#ifndef AMDGPU_PLUGIN_KERNEL_KFD_PRIV_H
#define AMDGPU_PLUGIN_KERNEL_KFD_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What CHECKPOINT has written, and for what. */
struct kfd_priv {
	const uint8_t *bytes;
	size_t size;
	uint32_t num_devices;
	uint32_t num_bos;
	uint32_t num_objects;
};

/* Whether SVM ranges are among the objects; true if they are with any size of BO records that fits.
 * -EINVAL: no size fits. */
int kfd_priv_has_svm(const struct kfd_priv *priv, bool *ret_has_svm);

/* As the driver numbers them (kfd_priv.h, enum kfd_queue_type). */
enum kfd_priv_queue_type {
	KFD_PRIV_QUEUE_COMPUTE = 0,
	KFD_PRIV_QUEUE_SDMA = 1,
	KFD_PRIV_QUEUE_SDMA_XGMI = 4,
};

/* What the record of a queue says. */
struct kfd_priv_queue {
	/* As the process knows it. */
	uint32_t gpu_id;
	uint32_t type;
	uint32_t id;
	/* Bytes of the area where running waves are saved. */
	uint32_t cwsr_size;
	/* Bytes of hardware state that follow: one MQD for each XCC whose state was saved. */
	uint32_t mqd_size;
};

/* The queues, in memory that the caller frees. Where several sizes of BO records fit, those of
 * known drivers go first. -EINVAL: the version is unknown, no size fits, or the sizes that fit
 * disagree about the queues. */
int kfd_priv_list_queues(const struct kfd_priv *priv, struct kfd_priv_queue **ret_queues,
			 size_t *ret_num_queues);

/* Size with records of @num_more devices. */
size_t kfd_priv_size_with(const struct kfd_priv *priv, uint32_t num_more);
/* Copies the data to @to, which has room for that, with these records after those of the others. */
void kfd_priv_copy_with(const struct kfd_priv *priv, uint32_t num_more, uint8_t *to);

#endif
