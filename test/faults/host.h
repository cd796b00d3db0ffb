/* SPDX-License-Identifier: GPL-2.0-only */
/* One dump or restore on the native simulator: calls test/native's host, with
 * or without the injector. */
#ifndef TEST_FAULTS_HOST_H
#define TEST_FAULTS_HOST_H

#include <stdbool.h>

#include "process.h"
#include "scenarios.h"

/* The paths of the built files. */
struct build {
	struct text plugin, host, simulator, injector, work, coverage;
};

void build_init(struct build *build, const char *directory);
void build_done(struct build *build);

struct host_call {
	const struct scenario *scenario;
	enum phase phase;
	const char *directory; /* of images */
	const char *table;     /* of the injector; NULL: there is none */
	const char *inject;    /* what the injector is told; NULL: nothing */
	bool again;            /* a dump that fails is made again */
};

void host_run(const struct build *build, const struct host_call *call, struct outcome *ret_outcome);

#endif
