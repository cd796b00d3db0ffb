/* SPDX-License-Identifier: GPL-2.0-only */
/* A kernel that an AQL queue has dispatched: it runs in the interpreter, and its waves leave the
 * hardware and come back (CWSR). State of the waves lies in the queue's save area. The control
 * stack describes it. What is in both is the model's own. */
#ifndef SIM_GCN_KERNEL_H
#define SIM_GCN_KERNEL_H

#include "aql_packet.h"
#include "gcn.h"

#define SIM_GCN_QUEUE_READ 128u /* of amd_queue_t (amd_hsa_queue.h), where its read index lies */

struct sim_gcn_kernel {
	struct sim_gcn_dispatch gcn;
	struct sim_gcn_group group; /* empty: there is no kernel */
};

/* Begins the kernel of the packet at address @at. @rptr_address: of the queue's read index. -errno,
 * after a complaint where the kernel is at fault. */
int sim_gcn_kernel_begin(struct sim_gcn_kernel *kernel, const struct sim_gcn_env *env,
			 const struct aql_dispatch *packet, u64 at, u64 rptr_address);
/* Whether the queue has as much private memory as the packet wants: 1, 0 or -errno. */
int sim_gcn_kernel_has_scratch(const struct sim_gcn_env *env, const struct aql_dispatch *packet,
			       u64 rptr_address);
/* Goes on with it for about @steps instructions: 1: it has ended; 0: not yet; -errno. Only after 0
 * is there still a kernel. */
int sim_gcn_kernel_run(struct sim_gcn_kernel *kernel, const struct sim_gcn_env *env, u32 steps);
/* Forgets the kernel, if there is one. */
void sim_gcn_kernel_done(struct sim_gcn_kernel *kernel);

/* The control stack. */
struct sim_gcn_saved {
	u64 magic;
	u64 index, began;                     /* of the packet: the caller's */
	u64 area;                             /* address of the waves */
	u64 checksum[SIM_GCN_MAX_WAVES + 1u]; /* of the waves and their LDS */
	struct sim_gcn_dispatch gcn;
};

/* The bytes that the waves take in the save area. */
u64 sim_gcn_kernel_bytes(const struct sim_gcn_kernel *kernel);
/* Writes the waves to @area, and fills in @saved. */
int sim_gcn_kernel_save(const struct sim_gcn_kernel *kernel, const struct sim_gcn_env *env,
			u64 area, struct sim_gcn_saved *saved);
/* Brings the waves back. -EINVAL: *@ret_why says what is not as it was saved. */
int sim_gcn_kernel_load(struct sim_gcn_kernel *kernel, const struct sim_gcn_env *env, u64 area,
			const struct sim_gcn_saved *saved, const char **ret_why);

#endif
