/* SPDX-License-Identifier: GPL-2.0-only */
/* One GPU process: everything it sets up, verifies and takes down. */
#ifndef CLIENT_CLIENT_H
#define CLIENT_CLIENT_H

#include <stdint.h>

#include "extras.h"
#include "job.h"
#include "report.h"

/* The command line of gpu_client. */
struct options {
	struct job_options job;
	const char *log;
	unsigned int tree;
	unsigned int many;
	bool split_mapping;
	bool shared;
	int shared_fd; /* set by the tree */
	struct extras_options extras;
};

/* How a client of a tree tells its parent: counts in memory that they share. */
struct client_answers {
	uint32_t ready;
	uint32_t verified;
	uint32_t failed;
};

/* Runs until SIGTERM, which must be blocked, as SIGUSR1 and SIGUSR2; returns the exit status.
 * @instance tells clients of a tree apart. @answers may be NULL; otherwise each change of it is
 * followed by a SIGRTMIN to the parent. */
int client_run(struct report *report, const struct options *options, uint32_t instance,
	       struct client_answers *answers);

#endif
