/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Queues of AQL packets (HSA Platform System Architecture Specification 1.2, "Architected Queuing
 * Language"): packets and signals in aql.c, kernels and their waves in aql_kernel.c. engine.c
 * decides which queue has its turn. Everything here is called under sim->engine_lock. */
#ifndef SIM_AQL_H
#define SIM_AQL_H

#include "process.h"

/* Runs the packet at the read index, for about *@steps instructions, which are taken off: 1 the
 * packet is complete, 0 it has to wait or to go on at the next call. -errno: the queue stops, after
 * a violation. */
int sim_aql_run_packet(struct sim_queue *queue, const struct sim_client *client, u32 *steps);

/* Begins the kernel of the packet at the read index, or goes on with queue->kernel: 1 it has ended,
 * 0 not yet. -errno after a violation. */
int sim_aql_run_kernel(struct sim_queue *queue, const struct sim_client *client,
		       const struct aql_dispatch *packet, u32 *steps);

/* The queue leaves the hardware: waves of a kernel go to the queue's area, and are forgotten. The
 * next load takes them from there. -errno after a violation: they are lost. */
int sim_aql_save(struct sim_queue *queue, const struct sim_client *client);
int sim_aql_load(struct sim_queue *queue, const struct sim_client *client);

#endif
