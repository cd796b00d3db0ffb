/* SPDX-License-Identifier: GPL-2.0-only */
/* The GPUs of a job, and how much of the memory of the option dump-memory each of them gets. */
#ifndef AMDGPU_PLUGIN_DUMP_WRITEBACK_GPUS_H
#define AMDGPU_PLUGIN_DUMP_WRITEBACK_GPUS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct pool_share;

/* At most @bytes for the GPUs that process @top and its descendants have open, or for all GPUs of
 * the machine if @top is 0. A GPU gets no more than it holds, and no more than its GTT takes
 * without evictions. The caller frees @ret_shares. Without GPUs, *@ret_count is 0. */
int writeback_gpus_choose(pid_t top, uint64_t bytes, struct pool_share **ret_shares,
			  size_t *ret_count);

#endif
