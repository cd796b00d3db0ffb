// SPDX-License-Identifier: GPL-2.0-only
/* Runs CRIU, with a streamer if the images are streamed, and reads its log. */
#include "selftest_criu.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "amdgpu_plugin_util.h"
#include "selftest_run.h"

#define LINE_SIZE   1024
#define ERROR_LINES 6u

/* The arguments: the streamer, the directory, the stream, the log. */
#define CAPTURE "\"$0\" -D \"$1\" capture 2> \"$3\" | cat > \"$2\""
#define SERVE   "cat \"$2\" | \"$0\" -D \"$1\" serve 2> \"$3\""
/* Its first line when CRIU can begin. */
#define READY "socket-init"

static bool is_dump(const struct selftest_criu *criu)
{
	return !strcmp(criu->command, "dump");
}

static bool is_error(const char *line)
{
	return strstr(line, "Error (") || strstr(line, "Warn  (amdgpu_plugin)");
}

/* The first errors in a log of CRIU, and the plugin's last line on contents. */
static void read_log(const char *path, struct selftest_criu *criu)
{
	static const char prefix[] = "amdgpu_plugin: ";
	_cleanup_fclose_ FILE *file = stream_open(path);
	char line[LINE_SIZE];
	unsigned int count = 0;

	while (file && fgets(line, sizeof(line), file)) {
		const char *text = strstr(line, prefix);
		size_t length = strlen(criu->errors);

		if (text && strstr(text, " MiB of contents in "))
			(void)snprintf(criu->result->said, SELFTEST_SAID, "%.*s",
				       (int)strcspn(text + strlen(prefix), "\n"),
				       text + strlen(prefix));
		if (is_error(line) && count++ < ERROR_LINES)
			(void)snprintf(criu->errors + length, sizeof(criu->errors) - length, "%s",
				       line);
	}
}

/* CRIU inherits the option of the plugin. */
static int start_with_option(const struct selftest_criu *criu, const char *const argv[],
			     pid_t *ret_pid)
{
	const struct selftest_manner *manner = criu->manner;
	char output[PATH_MAX];
	int ret;

	if (snprintf(output, sizeof(output), "%s/criu.txt", criu->dir) >= PATH_MAX)
		return -ENAMETOOLONG;
	if (manner->variable && setenv(manner->variable, manner->value, 1) < 0)
		return -errno;
	ret = selftest_run_start(argv, output, ret_pid);
	if (manner->variable)
		(void)unsetenv(manner->variable);
	return ret;
}

/* @log: a file in the directory. */
static int start(const struct selftest *selftest, const struct selftest_criu *criu, const char *log,
		 pid_t *ret_pid)
{
	const char *argv[16] = { selftest->criu, criu->command, "-D", criu->dir, "-o", log, "-v4" };
	const char *libdir = selftest->request->libdir;
	int count = 7;
	char pid[16];

	(void)snprintf(pid, sizeof(pid), "%d", criu->pid);
	if (libdir) {
		argv[count++] = "-L";
		argv[count++] = libdir;
	}
	if (criu->manner->streams)
		argv[count++] = "--stream";
	if (is_dump(criu)) {
		argv[count++] = "-t";
		argv[count++] = pid;
		argv[count++] = criu->manner->dump_option;
	} else {
		argv[count++] = "-d";
	}
	return start_with_option(criu, argv, ret_pid);
}

static int run_alone(const struct selftest *selftest, struct selftest_criu *criu, int *ret_status)
{
	char name[64], log[PATH_MAX];
	pid_t pid;
	int ret;

	(void)snprintf(name, sizeof(name), "%s.log", criu->command);
	criu->step = criu->command;
	if (snprintf(log, sizeof(log), "%s/%s", criu->dir, name) >= PATH_MAX)
		return -ENAMETOOLONG;
	ret = start(selftest, criu, name, &pid);
	if (!ret)
		ret = selftest_run_wait(pid, selftest->limit_s, ret_status);
	if (ret)
		return ret;
	read_log(log, criu);
	return 0;
}

/* The streamer says in its log when its socket is there. */
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

static int await_streamer(pid_t pid, const char *log, double seconds)
{
	const double end = now_seconds() + seconds;
	int ret = 0;

	while (!ret && !is_ready(log))
		ret = now_seconds() > end ? -ETIME : selftest_run_sleep(pid);
	/* It may have ended behind that line. */
	return ret == -ESRCH && is_ready(log) ? 0 : ret;
}

/* The stream and the log of the streamer are files beside the images. With a dump it writes the
 * stream, and otherwise it reads it. A shell runs it, because it wants a pipe for the stream. */
static int start_streamer(const struct selftest *selftest, const struct selftest_criu *criu,
			  pid_t *ret_pid)
{
	char stream[PATH_MAX], log[PATH_MAX];
	const char *argv[] = { "/bin/sh",
			       "-c",
			       is_dump(criu) ? CAPTURE : SERVE,
			       selftest->streamer,
			       criu->dir,
			       stream,
			       log,
			       NULL };
	int ret;

	/* The size of the images counts the stream, by its name. */
	if (snprintf(stream, sizeof(stream), "%s/stream.img", criu->dir) >= PATH_MAX ||
	    snprintf(log, sizeof(log), "%s/streamer-%s.log", criu->dir, criu->command) >= PATH_MAX)
		return -ENAMETOOLONG;
	ret = selftest_run_start(argv, "/dev/null", ret_pid);
	return ret ? ret : await_streamer(*ret_pid, log, selftest->limit_s);
}

/* The streamer is ready before CRIU begins, and ends behind it. If CRIU fails, the streamer may
 * wait for CRIU without end, until the caller ends it with the other processes. */
static int run_with_streamer(const struct selftest *selftest, struct selftest_criu *criu,
			     int *ret_status)
{
	pid_t streamer;
	int status, ret;

	criu->step = "the start of " SELFTEST_STREAMER;
	ret = start_streamer(selftest, criu, &streamer);
	if (ret == -ESRCH) {
		criu->step = SELFTEST_STREAMER " has ended before it was ready";
		return -EPROTO;
	}
	if (!ret)
		ret = run_alone(selftest, criu, ret_status);
	if (ret || *ret_status)
		return ret;
	criu->step = SELFTEST_STREAMER;
	return selftest_run_wait(streamer, selftest->limit_s, &status);
}

int selftest_criu_run(const struct selftest *selftest, struct selftest_criu *criu)
{
	const double begin = now_seconds();
	int status = 0;
	int ret = criu->manner->streams ? run_with_streamer(selftest, criu, &status)
					: run_alone(selftest, criu, &status);

	criu->result->seconds = now_seconds() - begin;
	if (ret || !status)
		return ret;
	criu->step = is_dump(criu) ? "criu dump has failed" : "criu restore has failed";
	return -EPROTO;
}
