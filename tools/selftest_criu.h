/* SPDX-License-Identifier: GPL-2.0-only */
/* One run of CRIU, to dump or to restore a job. */
#ifndef AMDGPU_PLUGIN_TOOLS_SELFTEST_CRIU_H
#define AMDGPU_PLUGIN_TOOLS_SELFTEST_CRIU_H

#include <stdbool.h>
#include <sys/types.h>

#include "selftest.h"

#define SELFTEST_ERRORS 6144
/* The program through which a dump or a restore with --stream has its images. */
#define SELFTEST_STREAMER "criu-image-streamer"

/* How a job is dumped and restored. */
struct selftest_manner {
	const char *name;
	const char *dump_option;      /* of CRIU */
	const char *variable, *value; /* an option of the plugin, in CRIU's environment */
	bool streams;                 /* the images go through the streamer */
};

struct selftest_criu {
	const char *command; /* "dump" or "restore" */
	const char *dir;     /* of images and logs */
	pid_t pid;           /* of the job */
	const struct selftest_manner *manner;
	struct selftest_step *result; /* all zero */
	/* The step at which it has failed, and errors in CRIU's log. */
	const char *step;
	char errors[SELFTEST_ERRORS];
};

/* Runs CRIU to its end. On -EPROTO @criu->step says what has failed. Other errors are those of
 * selftest_run_wait(), at @criu->step. */
int selftest_criu_run(const struct selftest *selftest, struct selftest_criu *criu);

#endif
