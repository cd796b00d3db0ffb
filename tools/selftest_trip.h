/* SPDX-License-Identifier: GPL-2.0-only */
/* The life of one job of the selftest: it starts, CRIU dumps and restores it, and it verifies. */
#ifndef AMDGPU_PLUGIN_TOOLS_SELFTEST_TRIP_H
#define AMDGPU_PLUGIN_TOOLS_SELFTEST_TRIP_H

#include "selftest.h"

struct selftest_part {
	const char *name; /* of its files, too */
	uint32_t gpu_id;
	unsigned int gpu; /* the position among the GPUs */
	bool files, packets, kernel;
	unsigned int trips;
};

/* Adds lines and results to the report. -ECANCELED: the selftest has to end; -EBUSY: a process does
 * not end, so nothing more can be tried. */
int selftest_trip_run(struct selftest *selftest, const struct selftest_part *part);

#endif
