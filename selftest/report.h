/* SPDX-License-Identifier: GPL-2.0-only */
/* The client's log: whole lines appended to one file, and the first failure of any thread. */
#ifndef SELFTEST_REPORT_H
#define SELFTEST_REPORT_H

#include <pthread.h>
#include <stdbool.h>

struct report {
	const char *path;
	pthread_mutex_t lock;
	bool failed;
	char failure[400];
};

void report_init(struct report *report, const char *path);

/* Appends "client PID: ..." as one line. The file is open only meanwhile: a checkpoint of the
 * process must not depend on a log that others write to. */
void report_line(struct report *report, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Remembers the failure; the first one also goes to the log, as "client PID: FAILED: ...".
 * Returns @ret, so that it can end a function. */
int report_fail(struct report *report, int ret, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

bool report_failed(struct report *report);

/* Logs the first failure again, as an answer to a request. */
void report_failed_again(struct report *report);

#endif
