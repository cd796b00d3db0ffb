// SPDX-License-Identifier: GPL-2.0-only
/* A process with KFD state that lives while its images are restored. */
#include "original.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "criu_calls.h"
#include "raw_kfd.h"

/* Ends when the other side closes its socket. */
static void live(int socket)
{
	struct raw_process process;
	char byte = 0;

	if (raw_open(&process) < 0 || write(socket, &byte, 1) != 1)
		_exit(1);
	_exit(read(socket, &byte, 1) == 0 ? 0 : 1);
}

int original_start(pid_t own_pid, struct original *ret_original)
{
	int pair[2];
	char byte;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	(void)fflush(stdout);
	ret_original->pid = fork();
	if (ret_original->pid == 0) {
		(void)close(pair[0]);
		live(pair[1]);
	}
	(void)close(pair[1]);
	ret_original->socket = pair[0];
	if (ret_original->pid < 0 || read(pair[0], &byte, 1) != 1) {
		(void)fprintf(stderr, "original: it did not start\n");
		return -ECHILD;
	}
	return criu_believe("own_pid", "%d %d", own_pid, ret_original->pid);
}

void original_end(struct original *original)
{
	if (!original->pid)
		return;
	(void)close(original->socket);
	if (original->pid > 0)
		(void)waitpid(original->pid, NULL, 0);
	original->pid = 0;
}
