// SPDX-License-Identifier: GPL-2.0-only
/* The two processes of a selftest, and the programs that they start. What is tried is the caller's.
 */
#include "selftest_run.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "amdgpu_plugin_util.h"
#include "kernel/proc.h"

#define MOMENT_MS 20
/* For processes that were killed to end: a driver may have to reset a GPU first. */
#define KILL_S 60.0

/* The end of a pipe that closes when the user's process ends. Only the process that does the work
 * has it. */
static int user_fd = -1;

static volatile sig_atomic_t is_told_to_end;

static void take_signal(int number)
{
	(void)number;
	is_told_to_end = 1;
}

/* Those that ask this program to end. */
static void handle_signals(void (*handler)(int number))
{
	const struct sigaction action = { .sa_handler = handler };

	(void)sigaction(SIGINT, &action, NULL);
	(void)sigaction(SIGTERM, &action, NULL);
	(void)sigaction(SIGHUP, &action, NULL);
}

/* Also descendants whose parents have ended become children of this process, such as tasks that
 * CRIU has restored. */
static void adopt_descendants(void)
{
	(void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
}

/* Whether a child is left. Each descendant is one when those above it have ended. */
static bool reap(void)
{
	pid_t pid;

	do
		pid = waitpid(-1, NULL, WNOHANG);
	while (pid > 0);
	return pid == 0;
}

int selftest_run_kill_all(void)
{
	const double end = now_seconds() + KILL_S;

	while (reap()) {
		_cleanup_(pid_list_done) struct pid_list tree = { 0 };
		int ret = proc_list_tree(getpid(), &tree);

		if (ret < 0)
			return ret;
		if (now_seconds() > end)
			return -EBUSY;
		for (size_t i = 0; i < tree.count; i++) {
			if (tree.pids[i] != getpid())
				(void)kill(tree.pids[i], SIGKILL);
		}
		(void)poll(NULL, 0, MOMENT_MS);
	}
	return 0;
}

static _Noreturn void do_work(const int pipe_fds[2], int (*work)(void *argument), void *argument)
{
	int result;

	(void)close(pipe_fds[1]);
	user_fd = pipe_fds[0];
	/* Signals of the terminal go to the user's process only. */
	(void)setsid();
	handle_signals(SIG_DFL);
	adopt_descendants();
	result = work(argument);
	(void)selftest_run_kill_all();
	exit(result);
}

/* A signal between the look and waitpid() would be missed, so the wait is short. */
static int wait_for_worker(pid_t worker, int *pipe_fd, int *ret_status)
{
	pid_t ended;

	while (!(ended = waitpid(worker, ret_status, WNOHANG))) {
		if (is_told_to_end)
			fd_close(pipe_fd);
		(void)poll(NULL, 0, MOMENT_MS);
	}
	return ended < 0 ? -errno : 0;
}

int selftest_run(int (*work)(void *argument), void *argument, int *ret_result)
{
	int pipe_fds[2], status = 0, ret;
	pid_t worker;

	if (pipe2(pipe_fds, O_CLOEXEC) < 0)
		return -errno;
	handle_signals(take_signal);
	adopt_descendants();
	worker = fork();
	if (!worker)
		do_work(pipe_fds, work, argument);
	(void)close(pipe_fds[0]);
	ret = worker < 0 ? -errno : wait_for_worker(worker, &pipe_fds[1], &status);
	fd_close(&pipe_fds[1]);
	if (selftest_run_kill_all() < 0)
		return -EBUSY;
	if (ret < 0)
		return ret;
	if (is_told_to_end)
		return -EINTR;
	if (!WIFEXITED(status))
		return -ECHILD;
	*ret_result = WEXITSTATUS(status);
	return 0;
}

static _Noreturn void execute(const char *const argv[], const char *log)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

	(void)setsid();
	if (null < 0 || dup2(null, STDIN_FILENO) < 0 ||
	    dup2(fd < 0 ? null : fd, STDOUT_FILENO) < 0 ||
	    dup2(fd < 0 ? null : fd, STDERR_FILENO) < 0)
		_exit(127);
	(void)execv(argv[0], (char *const *)argv);
	_exit(127);
}

int selftest_run_start(const char *const argv[], const char *log, pid_t *ret_pid)
{
	pid_t pid = fork();

	if (pid < 0)
		return -errno;
	if (!pid)
		execute(argv, log);
	*ret_pid = pid;
	return 0;
}

/* 0: the process has ended. */
static int look(pid_t pid, int milliseconds)
{
	_cleanup_close_ int fd = (int)syscall(SYS_pidfd_open, pid, 0);
	struct pollfd waits[2] = { { .fd = user_fd, .events = POLLIN },
				   { .fd = fd, .events = POLLIN } };

	if (fd < 0)
		return -errno;
	if (poll(waits, 2, milliseconds) < 0)
		return errno == EINTR ? -ETIME : -errno;
	if (waits[0].revents)
		return -ECANCELED;
	return waits[1].revents ? 0 : -ETIME;
}

int selftest_run_wait(pid_t pid, double seconds, int *ret_status)
{
	const double end = now_seconds() + seconds;
	int ret;

	do
		ret = look(pid, MOMENT_MS * 10);
	while (ret == -ETIME && now_seconds() < end);
	if (ret < 0)
		return ret;
	/* A task that CRIU has restored becomes a child when CRIU ends. */
	return waitpid(pid, ret_status, 0) < 0 ? -errno : 0;
}

int selftest_run_sleep(pid_t pid)
{
	int ret = look(pid, MOMENT_MS);

	if (ret == -ETIME)
		return 0;
	return ret ? ret : -ESRCH;
}
