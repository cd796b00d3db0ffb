// SPDX-License-Identifier: GPL-2.0-only
/* Starts a process, collects its output, and kills it after a time limit. The caller interprets the
 * output. */
#include "process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "amdgpu_plugin_util.h"

#define PATIENCE_S 600

/* Descriptors of its output, its error output and its pidfd; -1: it has ended. */
enum source { OUT, ERR, SELF, SOURCES };

struct process {
	pid_t pid;
	struct pollfd sources[SOURCES];
};

void command_add(struct command *command, const char *format, ...)
{
	va_list arguments;

	command->words =
		must(realloc(command->words, (command->count + 2) * sizeof(*command->words)));
	va_start(arguments, format);
	command->words[command->count++] = formatted(format, arguments);
	va_end(arguments);
	command->words[command->count] = NULL;
}

void command_done(struct command *command)
{
	for (size_t i = 0; i < command->count; i++)
		free(command->words[i]);
	free(command->words);
	*command = (struct command){ 0 };
}

/* In the child of a process with threads: call nothing that takes a lock. */
static void __attribute__((noreturn)) become(const struct command *command, int out, int err)
{
	int in = open("/dev/null", O_RDONLY | O_CLOEXEC);

	(void)setsid();
	/* an interrupted explorer leaves no process running */
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (dup2(in, STDIN_FILENO) >= 0 && dup2(out, STDOUT_FILENO) >= 0 &&
	    dup2(err, STDERR_FILENO) >= 0)
		(void)execvp(command->words[0], command->words);
	_exit(127);
}

static void process_start(const struct command *command, struct process *ret_process)
{
	struct process *process = ret_process;
	int out[2], err[2];

	if (pipe2(out, O_CLOEXEC) < 0 || pipe2(err, O_CLOEXEC) < 0)
		fail("no pipe: %s", strerror(errno));
	process->pid = fork();
	if (process->pid < 0)
		fail("no process: %s", strerror(errno));
	if (!process->pid)
		become(command, out[1], err[1]);
	(void)close(out[1]);
	(void)close(err[1]);
	process->sources[OUT] = (struct pollfd){ out[0], POLLIN, 0 };
	process->sources[ERR] = (struct pollfd){ err[0], POLLIN, 0 };
	process->sources[SELF] = (struct pollfd){ pidfd_open(process->pid, 0), POLLIN, 0 };
	if (process->sources[SELF].fd < 0)
		fail("no pidfd: %s", strerror(errno));
}

static void process_close(struct process *process)
{
	for (int i = 0; i < SOURCES; i++)
		fd_close(&process->sources[i].fd);
}

static void take_output(struct pollfd *source, struct text *text)
{
	char bytes[16384];
	ssize_t length = read(source->fd, bytes, sizeof(bytes));

	if (length > 0) {
		text_append(text, bytes, (size_t)length);
		return;
	}
	(void)close(source->fd);
	source->fd = -1;
}

static void take_news(struct process *process, struct outcome *outcome)
{
	struct pollfd *sources = process->sources;

	if (sources[OUT].revents)
		take_output(&sources[OUT], &outcome->out);
	if (sources[ERR].revents)
		take_output(&sources[ERR], &outcome->err);
	if (sources[SELF].revents) {
		(void)close(sources[SELF].fd);
		sources[SELF].fd = -1;
	}
}

/* Whether it has ended in time. */
static bool process_collect(struct process *process, struct outcome *outcome)
{
	const struct pollfd *sources = process->sources;
	double end = now_seconds() + PATIENCE_S;

	while (sources[OUT].fd >= 0 || sources[ERR].fd >= 0 || sources[SELF].fd >= 0) {
		double left_s = end - now_seconds();

		if (left_s <= 0)
			return false;
		if (poll(process->sources, SOURCES, (int)(left_s * 1e3) + 1) > 0)
			take_news(process, outcome);
	}
	return true;
}

void process_run(const struct command *command, struct outcome *ret_outcome)
{
	struct outcome outcome = { 0 };
	struct process process;
	int status;

	process_start(command, &process);
	outcome.ended = process_collect(&process, &outcome);
	if (!outcome.ended) {
		(void)kill(-process.pid, SIGKILL);
		/* read the rest of its output */
		(void)process_collect(&process, &outcome);
	}
	process_close(&process);
	while (waitpid(process.pid, &status, 0) < 0 && errno == EINTR)
		;
	outcome.status = WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
	*ret_outcome = outcome;
}

void outcome_done(struct outcome *outcome)
{
	text_done(&outcome->out);
	text_done(&outcome->err);
}

void process_must(const struct command *command, struct text *ret_out)
{
	struct outcome outcome;

	process_run(command, &outcome);
	if (!outcome.ended || outcome.status)
		fail("%s fails: %s", command->words[0], text_string(&outcome.err));
	text_done(&outcome.err);
	*ret_out = outcome.out;
}
