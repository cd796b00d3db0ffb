/* SPDX-License-Identifier: GPL-2.0-only */
/* Runs a program and sends SIGKILL when its log has come to some line. A shell is too slow for
 *that: it would come when all is over.
 *
 *	kill-at LOG COUNT WORDS USEC PID|0 CMD...
 *
 * COUNT lines of LOG that hold WORDS, and USEC later the process PID is killed, or CMD with 0. Ends
 *with the status of CMD, as a shell would say it. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define LOOK_USEC 500

struct log {
	const char *path, *words;
	long left;
	int fd;
	char line[4096];
	size_t used;
};

static void end_line(struct log *log)
{
	log->line[log->used] = '\0';
	log->left -= strstr(log->line, log->words) != NULL;
	log->used = 0;
}

/* What has been added; the file may not be there yet. */
static void look(struct log *log)
{
	char bytes[4096];
	ssize_t size;

	if (log->fd < 0)
		log->fd = open(log->path, O_RDONLY | O_CLOEXEC);
	while (log->fd >= 0 && log->left > 0 && (size = read(log->fd, bytes, sizeof(bytes))) > 0) {
		for (ssize_t i = 0; i < size && log->left > 0; i++) {
			if (bytes[i] == '\n')
				end_line(log);
			else if (log->used < sizeof(log->line) - 1)
				log->line[log->used++] = bytes[i];
		}
	}
}

static int status_of(int status)
{
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int main(int argc, char **argv)
{
	struct log log = { .fd = -1 };
	pid_t child, victim;
	int status;

	if (argc < 7)
		return 2;
	log.path = argv[1];
	log.left = atol(argv[2]);
	log.words = argv[3];
	child = fork();
	if (child == 0) {
		(void)execvp(argv[6], argv + 6);
		_exit(127);
	}
	victim = atoi(argv[5]) ? atoi(argv[5]) : child;
	for (look(&log); log.left > 0; look(&log)) {
		if (waitpid(child, &status, WNOHANG) == child)
			return status_of(status);
		(void)usleep(LOOK_USEC);
	}
	(void)usleep((useconds_t)atol(argv[4]));
	(void)kill(victim, SIGKILL);
	return waitpid(child, &status, 0) == child ? status_of(status) : 126;
}
