/* SPDX-License-Identifier: GPL-2.0-only */
/* The command line of gpu_client. */
#ifndef CLIENT_OPTIONS_H
#define CLIENT_OPTIONS_H

#include <stdbool.h>

#include "extras.h"
#include "job.h"

struct options {
	struct job_options job; /* pace_us 0: by the number of queues */
	const char *log;
	unsigned int tree;
	unsigned int many;
	bool split_mapping;
	bool shared;
	int shared_fd; /* set by the tree */
	bool self_test_chain;
	struct extras_options extras;
};

/* -EINVAL after telling stderr what is wrong; 1 after printing the help that was asked for. */
int options_parse(int argc, char **argv, struct options *ret_options);

#endif
