/* SPDX-License-Identifier: GPL-2.0-only */
/* Runs a program and waits for it with patience. May be used by several threads at once. */
#ifndef TEST_FAULTS_PROCESS_H
#define TEST_FAULTS_PROCESS_H

#include <stdbool.h>

#include "tools.h"

/* A program, looked up in PATH, and its arguments. Empty at first: { 0 }. */
struct command {
	char **words; /* ends with a NULL */
	size_t count;
};

void command_add(struct command *command, const char *format, ...) FORMAT(2);
void command_done(struct command *command);

struct outcome {
	struct text out, err;
	bool ended; /* false: it was killed, with all of its process group, for it took too long */
	int status; /* its exit status, or minus the number of the signal that ended it */
};

/* Runs it to its end, and to the end of all that hold its output, in a session of its own.
 * The outcome is done with outcome_done(). The program (of the caller) ends with a line where
 * none can be started. */
void process_run(const struct command *command, struct outcome *ret_outcome);
void outcome_done(struct outcome *outcome);

/* For tools that must not fail: the program ends with a line if they do.
 * The output is text_done()'s. */
void process_must(const struct command *command, struct text *ret_out);

#endif
