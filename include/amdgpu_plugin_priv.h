/* SPDX-License-Identifier: GPL-2.0-only */
/* The driver's private data of a checkpoint. It is opaque, but for two things that show in its
 * layout: for how many GPUs it was written, which a restore where more are visible needs, and how
 * much of each queue was saved (kfd_priv.h, kfd_criu_*_priv_data). */
#ifndef AMDGPU_PLUGIN_PRIV_H
#define AMDGPU_PLUGIN_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What CHECKPOINT has written, and for what. */
struct priv_data {
	const uint8_t *bytes;
	size_t size;
	uint32_t num_devices;
	uint32_t num_bos;
	uint32_t num_objects;
};

/* Whether SVM ranges are among the objects. -EINVAL: the bytes are not of a
 * layout that is known. */
int priv_has_svm(const struct priv_data *priv, bool *ret_has_svm);

/* As the driver numbers them (kfd_priv.h, enum kfd_queue_type). */
enum priv_queue_type {
	PRIV_QUEUE_COMPUTE = 0,
	PRIV_QUEUE_SDMA = 1,
	PRIV_QUEUE_SDMA_XGMI = 4,
};

/* What the record of a queue says. */
struct priv_queue {
	/* As the process knows it. */
	uint32_t gpu_id;
	uint32_t type;
	uint32_t id;
	/* Bytes of the area where running waves are saved. */
	uint32_t cwsr_size;
	/* Bytes of hardware state that follow: one MQD for each XCC whose state was saved. */
	uint32_t mqd_size;
};

/* The queues, in memory of the caller's. -EINVAL: the bytes are not of a version and
 * layout that is known. */
int priv_list_queues(const struct priv_data *priv, struct priv_queue **ret_queues,
		     size_t *ret_num_queues);

/* Size with records of @num_more devices. */
size_t priv_size_with(const struct priv_data *priv, uint32_t num_more);
/* Copies the data to @to, which has room for that, with these records after those of the others. */
void priv_copy_with(const struct priv_data *priv, uint32_t num_more, uint8_t *to);

#endif
