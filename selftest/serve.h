/* SPDX-License-Identifier: GPL-2.0-only */
/* The life of a client that is one process: it says "ready", verifies at SIGUSR1, and ends after
 * SIGTERM. */
#ifndef SELFTEST_SERVE_H
#define SELFTEST_SERVE_H

#include <signal.h>
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

/* Must be called before the first thread starts. Return: main()'s status. */
int serve(const struct serve *serve);

/* The same life for a client that works until a signal comes. @run returns after SIGTERM; it
 * answers SIGUSR1 itself, and reports its failures. Return: main()'s status. */
int serve_running(struct report *report, void *arg, int (*start)(void *arg),
		  int (*run)(void *arg, const sigset_t *signals));

/* SIGUSR1 and SIGTERM, which this thread and those that it starts no longer receive. */
sigset_t serve_block(void);

#endif
