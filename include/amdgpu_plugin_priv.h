/* SPDX-License-Identifier: GPL-2.0-only */
/* The driver's private data of a checkpoint. It is opaque, but for how many GPUs it was written for shows in its
 * layout: a restore where more are visible needs that much to be known (kfd_priv.h, kfd_criu_*_priv_data). */
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

/* Whether SVM ranges are among the objects. -EINVAL: the bytes are not of a layout that is known. */
int priv_has_svm(const struct priv_data *priv, bool *ret_has_svm);

/* Size with records of @num_more devices. */
size_t priv_size_with(const struct priv_data *priv, uint32_t num_more);
/* Copies the data to @to, which has room for that, with these records after those of the others. */
void priv_copy_with(const struct priv_data *priv, uint32_t num_more, uint8_t *to);

#endif
