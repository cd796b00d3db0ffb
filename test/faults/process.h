/* SPDX-License-Identifier: GPL-2.0-only */
/* Runs a program and waits for it, with a time limit. Several threads may use this at once. */
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
	bool ended; /* false: the time limit passed, and its process group was killed */
	int status; /* its exit status, or minus the number of the signal that ended it */
};

/* Runs it in a session of its own until it and all holders of its output have ended. Free the
 * outcome with outcome_done(). If it cannot be started, this program ends with a line. */
void process_run(const struct command *command, struct outcome *ret_outcome);
void outcome_done(struct outcome *outcome);

/* For tools that must not fail: if one does, the program ends with a line. Free the output with
 * text_done(). */
void process_must(const struct command *command, struct text *ret_out);

#endif
