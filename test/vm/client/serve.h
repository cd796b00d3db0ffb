/* SPDX-License-Identifier: GPL-2.0-only */
/* The life of a client that is one process: it says "ready", verifies at SIGUSR1, and ends after
 * SIGTERM. */
#ifndef CLIENT_SERVE_H
#define CLIENT_SERVE_H

#include <stdbool.h>

#include "report.h"

struct serve {
	struct report *report;
	void *arg;
	bool (*set_up)(void *arg);
	bool (*begin)(void *arg);  /* starts what a dump is to interrupt */
	bool (*verify)(void *arg); /* lets that end, and compares */
	bool (*tear_down)(void *arg);
};

/* Must be called before the first thread starts. Returns main()'s status. */
int serve(const struct serve *serve);

#endif
