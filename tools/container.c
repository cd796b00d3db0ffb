// SPDX-License-Identifier: GPL-2.0-only
/* Runs "inspect" of each program by a shell, and reads the pid from its output. */
#include "container.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "amdgpu_plugin_util.h"

/* The shell's status for a program that is not there. */
#define NOT_FOUND 127

/* The names that podman and docker accept. A shell takes each of them for one word, which does not
 * look like an option. */
static bool is_name(const char *name)
{
	if (!isalnum((unsigned char)*name))
		return false;
	while (isalnum((unsigned char)*name) || (*name && strchr("_.-", *name)))
		name++;
	return !*name;
}

/* The answer is a line with a number, which is 0 if the container does not run. -ENOENT: the
 * program is not there. -ESRCH: it does not know the container. */
static int ask(const char *program, const char *name, pid_t *ret_pid)
{
	_cleanup_free_ char *command = NULL;
	long pid = 0;
	char end;
	int count, status;
	FILE *from;

	if (asprintf(
		    &command,
		    "%s container inspect --format '{{.State.Pid}}' -- %s < /dev/null 2> /dev/null",
		    program, name) < 0)
		return -ENOMEM;
	from = popen(command, "re");
	if (!from)
		return -errno;
	count = fscanf(from, "%ld%c", &pid, &end);
	status = pclose(from);
	if (WIFEXITED(status) && WEXITSTATUS(status) == NOT_FOUND)
		return -ENOENT;
	if (status || count != 2 || end != '\n' || pid < 0 || pid > INT_MAX)
		return -ESRCH;
	*ret_pid = (pid_t)pid;
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
