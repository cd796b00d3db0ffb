/* SPDX-License-Identifier: GPL-2.0-only */
/* A compute queue with a kernel that loops until the client ends it by a flag in memory. The queue
 * and all that its kernel needs lie in one page, except the area for waves. */
#ifndef TEST_NATIVE_CLIENT_KERNEL_H
#define TEST_NATIVE_CLIENT_KERNEL_H

#include "raw_aql.h"

/* Makes the queue at @page, a mapped buffer, and waits until the kernel is in its loop: -errno
 * after a line. */
int client_kernel_start(struct raw_process *process, const struct raw_gpu *gpu, uint64_t page,
			uint64_t waves, uint64_t waves_size);
/* Ends the loop of the kernel at @page, and compares the results: -EIO after a line. */
int client_kernel_finish(uint64_t page);

#endif
