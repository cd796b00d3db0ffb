// SPDX-License-Identifier: GPL-2.0-only
/* Runs "inspect" of each program in a child, and reads the pid from its output. */
#include "container.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "amdgpu_plugin_util.h"

#define NULL_FILE "/dev/null"

/* The names that podman and docker accept. A name is an argument of a program, so it must not look
 * like an option. */
static bool is_name(const char *name)
{
	if (!isalnum((unsigned char)*name))
		return false;
	while (isalnum((unsigned char)*name) || (*name && strchr("_.-", *name)))
		name++;
	return !*name;
}

/* Starts the program with its output in pipe @to. -ENOENT: the program is not there. */
static int start(const char *program, const char *name, int to, pid_t *ret_child)
{
	const char *const arguments[] = { program,          "container", "inspect", "--format",
					  "{{.State.Pid}}", "--",        name,      NULL };
	posix_spawn_file_actions_t actions;
	int ret = posix_spawn_file_actions_init(&actions);

	if (ret)
		return -ret;
	ret = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, NULL_FILE, O_RDONLY, 0);
	if (!ret)
		ret = posix_spawn_file_actions_adddup2(&actions, to, STDOUT_FILENO);
	if (!ret)
		ret = posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, NULL_FILE, O_WRONLY,
						       0);
	if (!ret)
		ret = posix_spawnp(ret_child, program, &actions, NULL, (char *const *)arguments,
				   environ);
	(void)posix_spawn_file_actions_destroy(&actions);
	return -ret;
}

/* A line with a number. 0: the container does not run. */
static int read_answer(int from, pid_t *ret_pid)
{
	char text[32], *end;
	size_t length = 0;
	int ret = read_short(from, text, sizeof(text), &length);
	long pid;

	if (ret < 0)
		return ret;
	pid = strtol(text, &end, 10);
	if (end == text || strcmp(end, "\n") != 0 || pid < 0 || pid > INT_MAX)
		return -EPROTO;
	*ret_pid = (pid_t)pid;
	return 0;
}

/* -ESRCH: the program does not know the container. */
static int ask(const char *program, const char *name, pid_t *ret_pid)
{
	_cleanup_close_ int from = -1;
	int ends[2], ret, status;
	pid_t child, pid = 0;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	from = ends[0];
	ret = start(program, name, ends[1], &child);
	fd_close(&ends[1]);
	if (ret < 0)
		return ret;
	ret = read_answer(from, &pid);
	fd_close(&from);
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	if (ret < 0 || !WIFEXITED(status) || WEXITSTATUS(status))
		return -ESRCH;
	*ret_pid = pid;
	return pid ? 0 : -ENOTCONN;
}

int container_find_pid(const char *name, pid_t *ret_pid)
{
	static const char *const programs[] = { "podman", "docker" };
	int ret = -ENOENT;

	if (!is_name(name))
		return -EINVAL;
	for (size_t i = 0; i < ARRAY_SIZE(programs); i++) {
		int answer = ask(programs[i], name, ret_pid);

		if (!answer || answer == -ENOTCONN)
			return answer;
		/* The other program may know more. */
		if (answer != -ENOENT)
			ret = answer;
	}
	return ret;
}
