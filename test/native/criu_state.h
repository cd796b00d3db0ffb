/* SPDX-License-Identifier: GPL-2.0-only */
/* State of the CRIU that its exported functions look at; they have no argument to find it by. */
#ifndef TEST_NATIVE_CRIU_STATE_H
#define TEST_NATIVE_CRIU_STATE_H

/* CRIU's own descriptors lie above those of the task. */
#define CRIU_LOWEST_FD  200
#define CRIU_STORED_MAX 64

struct criu_state {
	int image_dir;
	unsigned int log_level;
	int unused_fd;
	int stored[CRIU_STORED_MAX];
	int num_stored;
};

extern struct criu_state criu_state;

#endif
