/* SPDX-License-Identifier: GPL-2.0-only */
/* One dump or restore on the native simulator: starts the host of test/native, with or without the
 * injector. */
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
	const char *directory; /* the directory of images */
	const char *table;     /* of the injector, or NULL */
	const char *inject;    /* the injector's instruction; NULL: none */
	bool again;            /* a failed dump is repeated */
};

void host_run(const struct build *build, const struct host_call *call, struct outcome *ret_outcome);

#endif
