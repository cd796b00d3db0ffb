// SPDX-License-Identifier: GPL-2.0-only
/* Runs the streamer by a shell, because it wants a pipe for the stream. It says in its log when its
 * socket is there. */
#include "selftest_stream.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "amdgpu_plugin_util.h"
#include "check.h"
#include "selftest_run.h"

/* The arguments: the streamer, the directory, the stream, the log. */
#define CAPTURE "\"$0\" -D \"$1\" capture 2> \"$3\" | cat > \"$2\""
#define SERVE   "cat \"$2\" | \"$0\" -D \"$1\" serve 2> \"$3\""
/* Its first line when CRIU can begin. */
#define READY "socket-init"

bool selftest_stream_find(char path[PATH_MAX])
{
	return check_find_program(SELFTEST_STREAMER, path);
}

static bool is_ready(const char *log)
{
	_cleanup_fclose_ FILE *file = stream_open(log);
	char line[256];

	while (file && fgets(line, sizeof(line), file)) {
		if (!strncmp(line, READY, strlen(READY)))
			return true;
	}
	return false;
}

static int await(pid_t pid, const char *log, double seconds)
{
	const double end = now_seconds() + seconds;
	int ret = 0;

	while (!ret && !is_ready(log))
		ret = now_seconds() > end ? -ETIME : selftest_run_sleep(pid);
	/* It may have ended behind that line. */
	return ret == -ESRCH && is_ready(log) ? 0 : ret;
}

int selftest_stream_start(const char *streamer, const char *dir, bool is_dump, double seconds,
			  pid_t *ret_pid)
{
	char stream[PATH_MAX], log[PATH_MAX];
	const char *argv[] = { "/bin/sh", "-c", is_dump ? CAPTURE : SERVE, streamer, dir, stream,
			       log,       NULL };
	int ret;

	/* The size of the images counts the stream, by its name. */
	if (snprintf(stream, sizeof(stream), "%s/stream.img", dir) >= PATH_MAX ||
	    snprintf(log, sizeof(log), "%s/streamer-%s.log", dir, is_dump ? "dump" : "restore") >=
		    PATH_MAX)
		return -ENAMETOOLONG;
	ret = selftest_run_start(argv, "/dev/null", ret_pid);
	return ret ? ret : await(*ret_pid, log, seconds);
}
