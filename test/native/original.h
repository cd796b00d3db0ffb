/* SPDX-License-Identifier: GPL-2.0-only */
/* A process with KFD state that lives during a restore. */
#ifndef TEST_NATIVE_ORIGINAL_H
#define TEST_NATIVE_ORIGINAL_H

#include <sys/types.h>

struct original {
	pid_t pid; /* 0: no original runs */
	int socket;
};

/* Starts it, and waits until it has KFD state. It says of itself that it is process @own_pid.
 * Unless
 * @name is "none", it has a buffer with this share handle, 32 hexadecimal digits. -errno after a
 * line. */
int original_start(pid_t own_pid, const char *name, struct original *ret_original);
/* @ret, or -EIO after a line: its buffer has changed. */
int original_end(struct original *original, int ret);

#endif
