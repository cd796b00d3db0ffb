/* SPDX-License-Identifier: GPL-2.0-only */
/* A process with KFD state that lives while its images are restored. */
#ifndef TEST_NATIVE_ORIGINAL_H
#define TEST_NATIVE_ORIGINAL_H

#include <sys/types.h>

struct original {
	pid_t pid; /* 0: there is none */
	int socket;
};

/* Starts it, and waits until it has KFD state. It says of itself that it is process @own_pid.
 * -errno after a line. */
int original_start(pid_t own_pid, struct original *ret_original);
void original_end(struct original *original);

#endif
