/* SPDX-License-Identifier: GPL-2.0-only */
/* The life of one job of the selftest: it starts, CRIU dumps and restores it, and it verifies. */
#ifndef AMDGPU_PLUGIN_TOOLS_SELFTEST_TRIP_H
#define AMDGPU_PLUGIN_TOOLS_SELFTEST_TRIP_H

#include "selftest.h"
#include "selftest_move.h"

struct selftest_part {
	const char *label; /* of the report: "GPU 0x07cd" */
	const char *gpus;  /* for the job: the positions of its GPUs, or "all" */
	const char *name;  /* of the report: "job" */
	const char *key;   /* of the names of its files */
	bool files, packets, kernel;
	/* In place of the job, two processes that share buffers. */
	bool shares;
	/* The job comes back on another GPU. NULL: on those that it had. */
	struct selftest_move *move;
	/* Dumps that end the job and are restored. Then dumps that leave it running, of which the
	 * last one is restored; the same with the option dump-memory. */
	unsigned int trips, dumps;
};

/* Adds lines and results to the report. -ECANCELED: the selftest has to end; -EBUSY: a process does
 * not end, so nothing more can be tried. */
int selftest_trip_run(struct selftest *selftest, const struct selftest_part *part);

#endif
