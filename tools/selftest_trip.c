// SPDX-License-Identifier: GPL-2.0-only
/* Starts a job, has CRIU dump and restore it, and asks it whether it is the same. */
#include "selftest_trip.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "amdgpu_plugin_util.h"
#include "kernel/proc.h"
#include "selftest_criu.h"
#include "selftest_dir.h"
#include "selftest_run.h"
#include "selftest_state.h"

#define LINE_SIZE 1024

struct trip {
	struct selftest *selftest;
	const struct selftest_part *part;
	const struct selftest_manner *manner;
	pid_t pid;
	/* The job and its descendants before the last dump. */
	struct pid_list tree;
	unsigned int num_dirs;
	/* The log of the job, and how much of it was read. */
	char log[PATH_MAX];
	long log_offset;
	char compared[LINE_SIZE];
	/* The images and logs of this trip. */
	char dir[PATH_MAX];
	struct selftest_trip_result result;
};

/* Of a step that has failed, or that the driver does not allow: the report has the line already. */
#define FAILED (-EPROTO)

/* The report has one failure for each part. */
static int fail(struct trip *trip, const char *what, const char *log)
{
	selftest_report_fail(&trip->selftest->report, &trip->result, what, log);
	return FAILED;
}

/* An error of a step. That the user ends the selftest is no failure. */
static int fail_by(struct trip *trip, int ret, const char *step)
{
	char what[LINE_SIZE];

	if (ret == -ECANCELED)
		return ret;
	if (ret == -ETIME)
		(void)snprintf(what, sizeof(what), "%s has not ended in %.0f s", step,
			       trip->selftest->limit_s);
	else
		(void)snprintf(what, sizeof(what), "%s: %s", step, strerror(-ret));
	return fail(trip, what, NULL);
}

/* --- the job ------------------------------------------------------------------------------------
 */

/* Reads the next complete line of the job's log without "client PID: ". */
static bool read_line(struct trip *trip, char line[LINE_SIZE])
{
	_cleanup_fclose_ FILE *file = stream_open(trip->log);
	const char *text;

	if (!file || fseek(file, trip->log_offset, SEEK_SET) < 0 || !fgets(line, LINE_SIZE, file) ||
	    !strchr(line, '\n'))
		return false;
	trip->log_offset = ftell(file);
	line[strcspn(line, "\n")] = '\0';
	text = strstr(line, ": ");
	if (text)
		memmove(line, text + 2, strlen(text + 2) + 1);
	return true;
}

static bool begins(const char *line, const char *word)
{
	return !strncmp(line, word, strlen(word));
}

static void say_engine(struct trip *trip, const char *line)
{
	selftest_report_say(&trip->selftest->report, NULL, "%s: %s", trip->part->label, line);
}

static int skip(struct trip *trip, const char *why)
{
	selftest_report_skip(&trip->selftest->report, "%s: %s, because %s", trip->part->label,
			     trip->part->name, why);
	return FAILED;
}

/* -EAGAIN: the job has not written this line yet. */
static int read_until(struct trip *trip, const char *word)
{
	char line[LINE_SIZE];

	while (read_line(trip, line)) {
		if (begins(line, "FAILED"))
			return fail(trip, line + strlen("FAILED: "), NULL);
		if (begins(line, "unable"))
			return skip(trip, line + strlen("unable: "));
		if (begins(line, "engine") && !trip->part->move)
			say_engine(trip, line);
		if (begins(line, "compared"))
			(void)snprintf(trip->compared, sizeof(trip->compared), "%s", line);
		if (begins(line, word))
			return 0;
	}
	return -EAGAIN;
}

/* A job that has died may have said why. */
static int await_line(struct trip *trip, const char *word)
{
	const double end = now_seconds() + trip->selftest->limit_s;
	bool is_dead = false;

	for (;;) {
		int ret = read_until(trip, word);

		if (ret != -EAGAIN)
			return ret;
		if (is_dead)
			return fail(trip, "the job has died", NULL);
		if (now_seconds() > end)
			return -ETIME;
		ret = selftest_run_sleep(trip->pid);
		is_dead = ret == -ESRCH;
		if (ret && !is_dead)
			return ret;
	}
}

/* A dump must not meet the log, which the job closes behind the line. */
static int wait_for_line(struct trip *trip, const char *word, const char *step)
{
	int ret = await_line(trip, word);

	while (!ret && selftest_state_has_open(trip->pid, trip->log))
		ret = selftest_run_sleep(trip->pid);
	if (!ret || ret == -ESRCH || ret == FAILED)
		return ret == FAILED ? ret : 0;
	return fail_by(trip, ret, step);
}

static int start_job(struct trip *trip)
{
	const struct selftest_part *part = trip->part;
	const char *argv[16];
	char bytes[32];
	int count = 0, ret;

	(void)snprintf(bytes, sizeof(bytes), "%ju", (uintmax_t)trip->selftest->bytes);
	argv[count++] = trip->selftest->job;
	argv[count++] = "--log";
	argv[count++] = trip->log;
	argv[count++] = "--gpus";
	argv[count++] = part->gpus;
	argv[count++] = "--bytes";
	argv[count++] = bytes;
	if (part->files)
		argv[count++] = "--files";
	if (part->packets)
		argv[count++] = "--packets";
	if (part->kernel)
		argv[count++] = "--kernel";
	if (part->shares)
		argv[count++] = "--share";
	if (part->move) {
		argv[count++] = "--name";
		argv[count++] = SELFTEST_MOVE_NAME;
	}
	argv[count] = NULL;
	ret = selftest_run_start(argv, "/dev/null", &trip->pid);
	return ret ? fail_by(trip, ret, "the start of the job")
		   : wait_for_line(trip, "ready", "the start of the job");
}

static int ask_job(struct trip *trip, int number, const char *answer, const char *step)
{
	if (kill(trip->pid, number) < 0)
		return fail(trip, "the job has died", NULL);
	return wait_for_line(trip, answer, step);
}

/* --- CRIU ---------------------------------------------------------------------------------------
 */

/* @command: "dump" or "restore" */
static int run_criu(struct trip *trip, const char *command, struct selftest_step *result)
{
	struct selftest_criu criu = { .command = command,
				      .dir = trip->dir,
				      .pid = trip->pid,
				      .manner = trip->manner,
				      .result = result };
	int ret;

	*result = (struct selftest_step){ 0 };
	ret = selftest_criu_run(trip->selftest, &criu);
	if (ret == -EPROTO)
		return fail(trip, criu.step, criu.errors);
	return ret ? fail_by(trip, ret, criu.step) : 0;
}

/* Waits for the end of a job that was killed, by CRIU or by the selftest: its pids must be free.
 * Its descendants become children of this process when it has ended. */
static int reap(struct trip *trip)
{
	int status, ret = selftest_run_wait(trip->pid, trip->selftest->limit_s, &status);

	for (size_t i = 0; !ret && i < trip->tree.count; i++) {
		if (trip->tree.pids[i] != trip->pid)
			ret = selftest_run_wait(trip->tree.pids[i], trip->selftest->limit_s,
						&status);
	}
	return ret ? fail_by(trip, ret, "the job") : 0;
}

/* --- the trip -----------------------------------------------------------------------------------
 */

/* As if the job had come back on its GPU: on that one it would have the render node of the other.
 */
static int read_state(const struct trip *trip, char **ret_text)
{
	const struct selftest_move *move = trip->part->move;

	return selftest_state_read(trip->pid, move ? move->to->drm_render_minor : 0,
				   move ? move->from->drm_render_minor : 0, ret_text);
}

/* @before: what selftest_state_read() has said. */
static int compare(struct trip *trip, const char *before)
{
	_cleanup_free_ char *after = NULL;
	char line[LINE_SIZE];
	int ret = read_state(trip, &after);

	if (ret)
		return fail_by(trip, ret, "the state of the job");
	if (selftest_state_compare(before, after, line, sizeof(line)))
		return fail(trip, line, NULL);
	return ask_job(trip, SIGUSR1, "verified", "the comparison in the job");
}

static int restore(struct trip *trip, const char *before)
{
	int ret = run_criu(trip, "restore", &trip->result.restore);

	return ret ? ret : compare(trip, before);
}

static int make_dir(struct trip *trip)
{
	int ret = 0;

	if (snprintf(trip->dir, sizeof(trip->dir), "%s/gpu-%s-%s-%u", trip->selftest->dir,
		     trip->part->gpus, trip->part->key, ++trip->num_dirs) >= PATH_MAX)
		ret = -ENAMETOOLONG;
	else if (mkdir(trip->dir, 0700) < 0)
		ret = -errno;
	return ret ? fail_by(trip, ret, "the directory of the images") : 0;
}

static int pass(struct trip *trip)
{
	selftest_report_pass(&trip->selftest->report, &trip->result, trip->compared);
	return 0;
}

static void remove_images(const struct trip *trip)
{
	if (!trip->selftest->request->keep)
		selftest_dir_remove(trip->dir);
}

/* A directory for the images, the state before them, and the dump. */
static int dump(struct trip *trip, char **ret_before)
{
	int ret = make_dir(trip);

	if (ret)
		return ret;
	pid_list_done(&trip->tree);
	ret = proc_list_tree(trip->pid, &trip->tree);
	if (!ret)
		ret = selftest_state_read(trip->pid, 0, 0, ret_before);
	if (ret)
		return fail_by(trip, ret, "the state of the job");
	trip->result.restore = (struct selftest_step){ .seconds = -1 };
	ret = run_criu(trip, "dump", &trip->result.dump);
	trip->result.image_bytes = selftest_dir_count_images(trip->dir);
	return ret;
}

/* The images of the last dump are still good after the job has run on and has died. */
static int end_job(struct trip *trip, const char *before)
{
	int ret = compare(trip, before);

	if (!ret)
		ret = pass(trip);
	if (!ret)
		(void)kill(trip->pid, SIGKILL);
	return ret;
}

/* @restored: the job comes back from these images. */
static int dump_once(struct trip *trip, bool restored)
{
	_cleanup_free_ char *before = NULL;
	int ret = dump(trip, &before);

	if (!ret && trip->manner->dump_option)
		ret = restored ? end_job(trip, before) : compare(trip, before);
	if (!ret && restored)
		ret = reap(trip);
	if (!ret && restored)
		ret = restore(trip, before);
	remove_images(trip);
	return ret ? ret : pass(trip);
}

static int dump_often(struct trip *trip, const struct selftest_manner *manner, unsigned int count)
{
	int ret = 0;

	trip->manner = manner;
	trip->result.part = manner->name;
	for (unsigned int i = 1; !ret && i <= count; i++) {
		trip->result.trip = i;
		ret = dump_once(trip, !manner->dump_option || i == count);
	}
	return ret;
}

static int go(struct trip *trip)
{
	const struct selftest_part *part = trip->part;
	const struct selftest_manner ended = { .name = part->name,
					       .variable = part->move ? "AMDGPU_DEVICE_MAP" : NULL,
					       .value = part->move ? part->move->map : NULL };
	const struct selftest_manner running = { .name = "job left running", .dump_option = "-R" };
	const struct selftest_manner streamed = { .name = "job streamed", .streams = true };
	char memory[32];
	const struct selftest_manner late = { .name = "job left running with dump-memory",
					      .dump_option = "-R",
					      .variable = "AMDGPU_DUMP_MEMORY",
					      .value = memory };
	int ret;

	(void)snprintf(memory, sizeof(memory), "%ju", (uintmax_t)trip->selftest->check.contents);
	ret = start_job(trip);
	if (part->move)
		fd_close(&part->move->link);
	if (!ret)
		ret = dump_often(trip, &ended, part->trips);
	if (!ret)
		ret = dump_often(trip, &running, part->dumps);
	if (!ret && part->dumps)
		ret = dump_often(trip, &late, 1);
	if (!ret && part->dumps && *trip->selftest->streamer)
		ret = dump_often(trip, &streamed, 1);
	return ret ? ret : ask_job(trip, SIGTERM, "finished ok", "the end of the job");
}

int selftest_trip_run(struct selftest *selftest, const struct selftest_part *part)
{
	struct trip trip = {
		.selftest = selftest,
		.part = part,
		.result = { .part = part->name, .gpus = part->label },
	};
	int ret, killed;

	ret = snprintf(trip.log, sizeof(trip.log), "%s/gpu-%s-%s.log", selftest->dir, part->gpus,
		       part->key);
	ret = ret >= PATH_MAX ? fail_by(&trip, -ENAMETOOLONG, "the log of the job") : go(&trip);
	pid_list_done(&trip.tree);
	killed = selftest_run_kill_all();
	if (killed)
		(void)fail(&trip, "a process that was killed does not end: the driver hangs", NULL);
	if (killed || ret == -ECANCELED)
		return killed ? killed : ret;
	return 0;
}
