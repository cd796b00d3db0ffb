/* SPDX-License-Identifier: GPL-2.0-only */
/* A compute queue (AQL) with its ring, and a page of memory for its pointers and for the signals
 * and data of its packets. One thread at a time per queue. */
#ifndef SELFTEST_AQL_H
#define SELFTEST_AQL_H

#include "memory.h"
#include "raw_aql.h"
#include "report.h"
#include "thunk.h"

#define AQL_PAGE_BYTES 4096u

/* Begins the page. */
struct aql_pointers {
	volatile uint64_t read, write;
};

struct aql {
	struct report *report;
	struct memory ring, page;
	struct thunk_queue queue;
};

/* The page is all zero then. A failure is reported; call aql_close() also then. */
int aql_open(struct report *report, const struct gpu *gpu, struct aql *aql);
void aql_close(struct aql *aql, const struct gpu *gpu);
/* Puts a packet into the ring. The ring must have room. */
void aql_put(struct aql *aql, const struct raw_packet *packet);
/* Tells the GPU of the packets. */
void aql_ring(struct aql *aql);

#endif
