/* SPDX-License-Identifier: GPL-2.0-only */
/* Memory of the process itself that a GPU reaches: ROCr has locked it, or has given it SVM
 * attributes. A function that returns false has said why. */
#ifndef CLIENT_ROCR_HOST_H
#define CLIENT_ROCR_HOST_H

#include "rocr.h"

struct rocr_host {
	const struct rocr_place *gpu;
	void *memory; /* for the CPU */
	void *mapped; /* the same memory for the GPU */
	size_t size;
};

/* New pages that ROCr locks (hsa_amd_memory_lock()). */
bool rocr_host_lock(const struct rocr_place *gpu, size_t size, struct rocr_host *ret_host);
bool rocr_host_unlock(struct rocr_host *host);

/* New pages with SVM attributes other than the default. CPU and GPU use the same address. On a
 * kernel without SVM, pages that ROCr locks. */
bool rocr_host_share(const struct rocr_place *gpu, size_t size, struct rocr_host *ret_host);
bool rocr_host_unshare(struct rocr_host *host);

/* The attributes are those that rocr_host_share() has set. */
bool rocr_host_verify_attributes(const struct rocr_host *host);

#endif
