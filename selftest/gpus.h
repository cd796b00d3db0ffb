/* SPDX-License-Identifier: GPL-2.0-only */
/* The GPUs that this process works on. thunk.h says which programs implement this. */
#ifndef SELFTEST_GPUS_H
#define SELFTEST_GPUS_H

#include <stdbool.h>
#include <stdint.h>

#include "report.h"

#define GPUS_MAX 64

struct gpu {
	/* Position among the GPUs that the driver lists, and the node in the topology. */
	int index;
	uint32_t node;
	int render_minor;
	/* The whole VRAM can be mapped by the CPU. */
	bool vram_visible;
	/* Without libhsakmt: the positions of the GPUs that reach its VRAM, a bit each. */
	uint64_t reached_by;
};

struct gpus {
	struct gpu list[GPUS_MAX];
	int count;
};

/* Opens /dev/kfd and picks the GPUs of @choice: "all", or indices
 * like "0,2,5". A GPU that is not there is an error. */
int gpus_open(struct report *report, const char *choice, struct gpus *ret_gpus);

/* For gpus_open(): keeps the GPUs of @choice. */
int gpus_choose(struct report *report, const char *choice, struct gpus *gpus);

void gpus_close(void);

#endif
