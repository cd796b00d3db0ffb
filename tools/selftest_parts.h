/* SPDX-License-Identifier: GPL-2.0-only */
/* The parts of a selftest: each GPU, and what several GPUs or processes do together. */
#ifndef AMDGPU_PLUGIN_TOOLS_SELFTEST_PARTS_H
#define AMDGPU_PLUGIN_TOOLS_SELFTEST_PARTS_H

#include <stddef.h>

#include "selftest.h"

/* The next GPU of the request, in the order in which the job counts them, or NULL. *@node and
 * *@index begin with 0. */
const struct topology_node *selftest_parts_next_gpu(const struct selftest *selftest, size_t *node,
						    unsigned int *index);
/* Its @index is one more than that of @gpu. */
#define SELFTEST_FOR_EACH_GPU(selftest, gpu, index) \
	size_t gpu##_node = 0;                      \
	unsigned int index = 0;                     \
	for (const struct topology_node *gpu;       \
	     (gpu = selftest_parts_next_gpu(selftest, &gpu##_node, &index));)

/* Tries all. Results as those of selftest_trip_run(). */
int selftest_parts_run(struct selftest *selftest);

#endif
