/* SPDX-License-Identifier: GPL-2.0-only */
/* The GPUs that this process works on, through libhsakmt. Only functions and structures that
 * libhsakmt 5.2.3 and 6.2.4 have in common are used. */
#ifndef CLIENT_GPUS_H
#define CLIENT_GPUS_H

#include <stdbool.h>
#include <stdint.h>

#include <hsakmt.h>

#include "report.h"

#define GPUS_MAX 64

struct gpu {
	/* Position among the GPUs that libhsakmt lists, and what it calls the node. */
	int index;
	HSAuint32 node;
	int render_minor;
	/* The whole VRAM can be mapped by the CPU. */
	bool vram_visible;
};

struct gpus {
	struct gpu list[GPUS_MAX];
	int count;
};

/* Opens /dev/kfd, takes the system properties and picks the GPUs of @choice: "all", or indices
 * like "0,2,5". A GPU that is not there is an error. */
int gpus_open(struct report *report, const char *choice, struct gpus *ret_gpus);

void gpus_close(void);

#endif
