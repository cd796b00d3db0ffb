/* SPDX-License-Identifier: GPL-2.0-only */
/* Keeps the SDMA queue of one GPU busy with the chain, from a thread of its own, and compares what
 * the engine made of it pass by pass. */
#ifndef SELFTEST_CHAIN_H
#define SELFTEST_CHAIN_H

#include <stdint.h>

#include "gpus.h"
#include "report.h"

struct chain;

struct chain_options {
	/* Batches that are in the ring at a time, 1 to 64. */
	unsigned int depth;
	/* A copy of this size in every batch, to give a slow engine something to be busy with. */
	unsigned int filler_kib;
	/* Rest after every batch, to leave the processor to others. */
	unsigned int pace_us;
	uint64_t key;
	/* The engine counts it up in each batch. NULL: batches are not counted. */
	uint64_t *counter;
};

/* Sets up queue and memory and starts the thread. */
int chain_start(struct report *report, const struct gpu *gpu, const struct chain_options *options,
		struct chain **ret_chain);
/* Lets the engine finish, compares, and frees everything. */
void chain_stop(struct chain *chain);

/* Waits for the end of a pass with nothing left in the ring, compares everything, and lets the
 * chain go on. Packets is what was executed since the start. */
int chain_verify(struct chain *chain, uint64_t *ret_packets);

/* Bytes of packets that the engine has not executed at this moment. */
uint64_t chain_in_flight(const struct chain *chain);

#endif
