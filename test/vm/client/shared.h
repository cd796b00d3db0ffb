/* SPDX-License-Identifier: GPL-2.0-only */
/* A buffer of the GPU that all clients of a tree have, and that the engine of each writes to: word
 * N is counted up by client N, again and again. */
#ifndef CLIENT_SHARED_H
#define CLIENT_SHARED_H

#include <stdint.h>

#include "gpus.h"
#include "report.h"
#include "sdma.h"

/* Makes the buffer on the first GPU that is used, as a descriptor that children inherit. */
int shared_make(struct report *report, const char *gpu_choice, int *ret_fd);

struct shared {
	struct report *report;
	uint64_t *words; /* where engines have it; not the CPU */
	struct memory staging;
};

/* Maps the buffer, and closes @fd: a dump could not save it. */
int shared_open(struct report *report, const struct gpu *gpu, int fd, struct shared *shared);
/* Says the first @count words in a line, after "shared @instance". */
int shared_report(struct shared *shared, struct sdma_queue *queue, uint32_t instance,
		  unsigned int count);
void shared_close(struct shared *shared);

#endif
