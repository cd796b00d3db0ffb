/* SPDX-License-Identifier: GPL-2.0-only */
/* Several clients as the children of one process that has no GPU. */
#ifndef CLIENT_TREE_H
#define CLIENT_TREE_H

#include "client.h"
#include "report.h"

#define TREE_MAX 64

/* Forks options->tree clients, hands signals on to them and sums up what they answer, until
 * SIGTERM; returns the exit status. The signals of client_run() and SIGRTMIN must be blocked. */
int tree_run(struct report *report, const struct options *options);

#endif
