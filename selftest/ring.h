/* SPDX-License-Identifier: GPL-2.0-only */
/* Processes in a ring, the ranks. Each owns a buffer, and imports the buffer of the rank before it
 * by a dma-buf, as ROCr does. An owner writes a number and a page that follows from it. The
 * importer reads both through its own queue and its own mapping, and writes the number back through
 * its queue. Only then the owner writes the next number. If a rank has a copy instead of the
 * buffer, the number does not come back, and the owner reports that. */
#ifndef SELFTEST_RING_H
#define SELFTEST_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "board.h"
#include "raw_kfd.h"
#include "report.h"

/* Of each buffer. */
#define RING_BYTES 65536u
/* Microseconds between two looks of a rank. */
#define RING_STEP_US 5000

struct ring_options {
	struct report *report;
	/* It has the number of ranks. */
	struct board *board;
	/* Flags of ALLOC_MEMORY_OF_GPU. */
	uint32_t flags;
	/* For each rank, the positions of the GPU with its buffer, and of the GPU with its queue,
	 * to which it maps what it imports. */
	int buffer_gpu[BOARD_RANKS_MAX], queue_gpu[BOARD_RANKS_MAX];
	/* The device of an import is the GPU with the importer's queue, not the GPU with the
	 * buffer. The CPU cannot map such an import. */
	bool imports_elsewhere;
	/* Imports the object of a dma-buf in another way than by a BO of KFD: at bo->address, for
	 * the GPU at this position. Sets bo->mmap_offset if the CPU has to map it at another offset
	 * than the owner. NULL: by a BO of KFD. */
	int (*import)(struct raw_process *process, int gpu, int dmabuf, struct raw_bo *bo);
	/* Where the caller keeps a dma-buf of each buffer, by rank. NULL: it keeps none. */
	int *dmabufs;
};

/* Forks the ranks, which use the board until it stops, and end with their parent. A rank reports
 * its failures. A line "unable: ..." instead of a failure says what the driver cannot do. */
int ring_start(const struct ring_options *options);

/* The number in the buffer of rank @owner, which is mapped at @buffer, or 0 if the pages that never
 * change are not right. */
uint64_t ring_look(const void *buffer, unsigned int owner);

#endif
