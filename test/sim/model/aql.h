/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Queues of AQL packets (HSA Platform System Architecture Specification 1.2, "Architected Queuing
 * Language"): packets and signals in aql.c, dispatches of kernels in aql_dispatch.c, waves that
 * leave the hardware in aql_save.c. engine.c decides which queue has its turn. Everything here is
 * called under sim->engine_lock. */
#ifndef SIM_AQL_H
#define SIM_AQL_H

#include "aql_packet.h"
#include "gcn.h"
#include "process.h"

/* Runs the packet at the read index, for about *@steps instructions, which are taken off: 1 the
 * packet is complete, 0 it has to wait or to go on at the next call. -errno: the queue stops, after
 * a violation. */
int sim_aql_run_packet(struct sim_queue *queue, const struct sim_client *client, u32 *steps);

/* A dispatch packet, as far as it is about the kernel. */
struct sim_aql_kernel {
	u64 packet; /* address */
	u64 object, kernarg;
	u32 grid[3], workgroup[3];
	u32 group_bytes;
};

/* Begins the kernel: it is queue->dispatch from then on. -errno after a violation. */
int sim_aql_begin(struct sim_queue *queue, const struct sim_client *client,
		  const struct sim_aql_kernel *kernel);
/* Goes on with it: 1 it has ended, 0 not yet. */
int sim_aql_continue(struct sim_queue *queue, const struct sim_client *client, u32 *steps);
/* Forgets the dispatch, if there is one. */
void sim_aql_drop(struct sim_queue *queue);

/* A kernel that has begun, with room for its waves and their LDS. */
struct sim_aql_dispatch {
	struct sim_gcn_dispatch gcn;
	struct sim_gcn_group group;
};

/* Makes room for a dispatch of that size: it is queue->dispatch then, on failure too. */
int sim_aql_allocate(struct sim_queue *queue, const struct sim_gcn_dispatch *gcn);

/* The queue leaves the hardware: waves of a kernel go to the queue's area, and are forgotten. The
 * next load takes them from there. -errno after a violation: they are lost. */
int sim_aql_save(struct sim_queue *queue, const struct sim_client *client);
int sim_aql_load(struct sim_queue *queue, const struct sim_client *client);

#endif
