/* SPDX-License-Identifier: GPL-2.0-only */
/* Accesses of lanes to memory, LDS and private memory, shared by their files. */
#ifndef SIM_GCN_MEMORY_H
#define SIM_GCN_MEMORY_H

#include "gcn.h"

/* Register @i of an operand in a lane. */
u32 *sim_gcn_lane(struct sim_gcn_run *run, u32 operand, u32 i, u32 lane);
/* Copy between registers of a lane and @bytes of memory. */
void sim_gcn_gather(struct sim_gcn_run *run, const struct sim_gcn_inst *inst, u32 operand, u32 lane,
		    u32 bytes, u8 *to);
void sim_gcn_spread(struct sim_gcn_run *run, const struct sim_gcn_inst *inst, u32 operand, u32 lane,
		    const u8 *from, u32 bytes);
/* A load or store of @bytes by each lane of @exec at its @va. */
int sim_gcn_transfer(struct sim_gcn_run *run, const struct sim_gcn_inst *inst, u64 exec,
		     const u64 *va, u32 bytes);
/* The part of LDS that an access touches, or NULL after a complaint. */
u8 *sim_gcn_lds_at(struct sim_gcn_run *run, const struct sim_gcn_inst *inst, u32 at, u32 bytes);

/* Buffer instructions: the address in SGPRs, and what a lane adds to it. */
u64 sim_gcn_buffer_base(const struct sim_gcn_run *run, const struct sim_gcn_inst *inst);
u32 sim_gcn_buffer_offset(struct sim_gcn_run *run, const struct sim_gcn_inst *inst, u32 lane);
/* A load or store of the private memory that four SGPRs describe, or -EINVAL after a complaint. */
int sim_gcn_private(struct sim_gcn_run *run, const struct sim_gcn_inst *inst);
/* Flat addresses of private memory and of LDS. */
bool sim_gcn_is_aperture(const struct sim_gcn_run *run, u64 va);
int sim_gcn_transfer_aperture(struct sim_gcn_run *run, const struct sim_gcn_inst *inst, u32 lane,
			      u64 va, u32 bytes);

#endif
