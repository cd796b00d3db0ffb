// SPDX-License-Identifier: GPL-2.0-only
/* hold [--anonymous] FILE...: keeps the FILEs open, without opening their devices, until its
 * standard input ends. It prints a line when it has them. --anonymous: also files without a name,
 * two userfaultfds and those that CRIU saves. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/fanotify.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

static int open_anonymous(void)
{
	sigset_t signals;

	return sigemptyset(&signals) < 0 || syscall(SYS_userfaultfd, 0) < 0 ||
			       syscall(SYS_userfaultfd, 0) < 0 || eventfd(0, 0) < 0 ||
			       epoll_create1(0) < 0 || inotify_init() < 0 ||
			       fanotify_init(0, 0) < 0 || signalfd(-1, &signals, 0) < 0 ||
			       timerfd_create(CLOCK_MONOTONIC, 0) < 0 ||
			       syscall(SYS_pidfd_open, getpid(), 0) < 0
		       ? -1
		       : 0;
}

int main(int argc, char **argv)
{
	char byte;

	for (int i = 1; i < argc; i++) {
		int ret = strcmp(argv[i], "--anonymous") ? open(argv[i], O_PATH) : open_anonymous();

		if (ret < 0) {
			perror(argv[i]);
			return 1;
		}
	}
	(void)puts("ready");
	(void)fflush(stdout);
	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
	return 0;
}
