/* SPDX-License-Identifier: GPL-2.0-only */
/* The copy engine's instruction set (SDMA 4.4, where a count is bytes - 1): copies and NOPs, and
 * atomic additions in a user's queue. */
#ifndef SIM_SDMA_H
#define SIM_SDMA_H

#include "vm.h"

#define SIM_SDMA_IB_ALIGNMENT  256u
#define SIM_SDMA_IB_PAD_DWORDS 8u
#define SIM_SDMA_IB_MAX_BYTES  (1u << 20)
#define SIM_SDMA_HEAD_DWORDS   8u /* the longest packet without payload */

/* Checks a whole command buffer of @count dwords, then runs it. -EINVAL: it is malformed, and
 * nothing was copied. -EFAULT: an address was wrong, and everything before it is done. Each failure
 * is a violation. */
int sim_sdma_run_ib(const struct sim_client *client, const u32 *dwords, u32 count, u64 *ret_bytes);

/* A packet at the head of a user's queue. */
struct sim_sdma_head {
	u64 addr;      /* its address, for the payload */
	u32 available; /* dwords from it to the write pointer or the end of the ring */
	u32 dwords[SIM_SDMA_HEAD_DWORDS]; /* the first of them */
};

struct sim_sdma_result {
	u32 length; /* dwords of the packet */
	u64 bytes;  /* bytes copied */
};

/* Runs one packet. -EINVAL: malformed; -EFAULT. Both are violations. */
int sim_sdma_run_packet(const struct sim_client *client, const struct sim_sdma_head *head,
			struct sim_sdma_result *ret_result);

#endif
