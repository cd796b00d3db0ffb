// SPDX-License-Identifier: GPL-2.0-only
/* Runs a program with one idle performance event on descriptor 9. While a task has such an event,
 * the kernel does not patch its scheduler each time that CRIU sets its first and removes its last
 * breakpoint: the emulator's processors do not see such patches at the same moment, and now and
 * then one dies of it. */
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define HELD 9

int main(int argc, char **argv)
{
	struct perf_event_attr event;
	long fd;

	(void)argc;
	memset(&event, 0, sizeof(event));
	event.type = PERF_TYPE_SOFTWARE;
	event.size = sizeof(event);
	event.config = PERF_COUNT_SW_DUMMY;
	fd = syscall(SYS_perf_event_open, &event, 0, -1, -1, 0);
	if (fd < 0 || dup2((int)fd, HELD) < 0)
		perror("perf-held");
	else if (fd != HELD)
		close((int)fd);
	execv(argv[1], argv + 1);
	perror(argv[1]);
	return 127;
}
