/* SPDX-License-Identifier: GPL-2.0-only */
/* The control socket: tests send lines with a command each, and get a line as the answer. README.md
 * describes the commands. */
#ifndef TEST_GPU_CONTROL_H
#define TEST_GPU_CONTROL_H

#include <poll.h>

struct hive;

#define CONTROL_CLIENTS 8u
#define CONTROL_FDS     (CONTROL_CLIENTS + 1)
#define CONTROL_LINE    256u
#define CONTROL_ANSWER  16384u

struct control_client {
	int fd; /* or -1 */
	unsigned int length;
	char line[CONTROL_LINE];
};

struct control {
	int listen_fd; /* or -1 */
	struct control_client clients[CONTROL_CLIENTS];
};

void control_init(struct control *control);
int control_listen(struct control *control, const char *path);
void control_close(struct control *control);

/* Fills in CONTROL_FDS entries for poll(). */
void control_prepare(const struct control *control, struct pollfd *fds);
/* Serves what poll() has found in them. */
void control_serve(struct control *control, const struct pollfd *fds, const struct hive *hive);

/* One command; the answer ends with a newline. For tests without a socket. */
void control_command(const struct hive *hive, char *line, char *answer);

#endif
