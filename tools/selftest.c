// SPDX-License-Identifier: GPL-2.0-only
/* Examines the machine, and what the selftest needs of it. The parts are in selftest_parts.c. */
#include "selftest.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "amdgpu_plugin_util.h"
#include "criu/log.h"
#include "elf.h"
#include "host.h"
#include "kernel/amdgpu_module.h"
#include "kernel/gpu_use.h"
#include "selftest_dir.h"
#include "selftest_parts.h"
#include "selftest_run.h"

#ifndef PLUGIN_VERSION
#define PLUGIN_VERSION "(unknown version)"
#endif
#ifndef LIBEXECDIR
#define LIBEXECDIR "/usr/libexec/criu-amdgpu"
#endif

#define DEFAULT_DIR "/var/tmp"
#define LOCKED_FILE "generation_id"
/* Of the small buffers of a job, and of its memory that is not the GPU's; and of the areas in which
 * the driver saves the waves of two compute queues, for each SIMD. */
#define SMALL_BYTES (64ull << 20)
#define SIMD_BYTES  (320ull << 10)
#define MOST_BYTES  (4ull << 30)
/* Of a file that shows the speed of storage: ^C waits for it. */
#define STORAGE_BYTES (256ull << 20)
/* A step takes at most so long, and longer for many bytes. */
#define LIMIT_S          300.0
#define BYTES_PER_SECOND 50e6

static int trouble(const char *format, const char *detail)
{
	(void)fprintf(stderr, "criu-amdgpu: selftest: ");
	(void)fprintf(stderr, format, detail);
	(void)fputc('\n', stderr);
	return TOOL_TROUBLE;
}

static void selftest_done(struct selftest *selftest)
{
	selftest_report_done(&selftest->report);
	options_done(&selftest->check.options);
	topology_done(&selftest->check.topology);
}

/* --- the machine --------------------------------------------------------------------------------
 */

static int check_choice(const struct selftest *selftest)
{
	bool found = false;

	SELFTEST_FOR_EACH_GPU (selftest, gpu, index) {
		found = true;
		if (gpu->in_use && !selftest->request->force)
			return trouble(
				"another process uses GPU %s; wait for its end, choose a GPU with --gpu, or use --force",
				selftest->request->gpu ? selftest->request->gpu
						       : "of this machine");
	}
	return found ? TOOL_YES : trouble("there is no GPU %s", selftest->request->gpu);
}

static int check_all(struct selftest *selftest)
{
	_cleanup_(gpu_use_done) struct gpu_use use = { 0 };
	struct check *check = &selftest->check;
	bool has_gpu = false;

	if (topology_read(TOPOLOGY_SYSFS, &check->topology) < 0 ||
	    !topology_count_gpus(&check->topology)) {
		(void)fprintf(stderr, "criu-amdgpu: selftest: this machine has no AMD GPU\n");
		return TOOL_NO_GPU;
	}
	topology_done(&check->topology);
	if (options_read(&check->options) < 0)
		return TOOL_TROUBLE;
	check_criu(check);
	check_machine(check, &has_gpu);
	if (check->refused)
		return TOOL_TROUBLE;
	/* The plugin's file has its version as a string, because images have it, too. */
	if (!elf_has(check->plugin, PLUGIN_VERSION, sizeof(PLUGIN_VERSION)))
		return trouble(
			"the plugin %s is of another version than this program, which is " PLUGIN_VERSION
			"; install both from one package",
			check->plugin);
	if (gpu_use_read(&use) < 0)
		return trouble("no memory%s", "");
	gpu_use_mark(&use, &check->topology);
	return check_choice(selftest);
}

/* One selftest at a time: the lock ends with the processes that have it. Dumps lock the
 * directory. */
static int lock_machine(int *ret_fd)
{
	_cleanup_close_ int fd = fd_open(TOPOLOGY_SYSFS "/" LOCKED_FILE, O_RDONLY);

	if (fd < 0)
		return trouble("cannot lock " TOPOLOGY_SYSFS "/" LOCKED_FILE ": %s", strerror(-fd));
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return trouble("another selftest runs%s", "");
	*ret_fd = take_fd(&fd);
	return TOOL_YES;
}

/* --- what is needed -----------------------------------------------------------------------------
 */

static uint64_t read_vram(const struct topology_node *gpu, const char *name)
{
	uint64_t bytes = 0;
	char path[128];

	(void)snprintf(path, sizeof(path), "/sys/class/drm/renderD%u/device/mem_info_vram_%s",
		       gpu->drm_render_minor, name);
	(void)read_number_at(AT_FDCWD, path, &bytes);
	return bytes;
}

static uint64_t default_size(const struct selftest *selftest)
{
	uint64_t size = MOST_BYTES;

	if (selftest->request->quick)
		return 0;
	SELFTEST_FOR_EACH_GPU (selftest, gpu, index) {
		uint64_t total = read_vram(gpu, "total"), used = read_vram(gpu, "used");
		uint64_t share = total > used ? (total - used) / 8 : 0;

		size = share < size ? share : size;
	}
	return size;
}

static int read_numbers(struct selftest *selftest)
{
	const struct tool_request *request = selftest->request;
	uint64_t seconds;

	selftest->bytes = default_size(selftest);
	if (request->size && parse_size(request->size, &selftest->bytes) < 0)
		return trouble("--size %s is no size", request->size);
	selftest->limit_s = LIMIT_S + (double)selftest->bytes / BYTES_PER_SECOND;
	if (!request->limit)
		return TOOL_YES;
	if (parse_size(request->limit, &seconds) < 0 || !seconds)
		return trouble("--limit %s is no number of seconds", request->limit);
	selftest->limit_s = (double)seconds;
	return TOOL_YES;
}

static int find_job(struct selftest *selftest)
{
	char self[PATH_MAX] = "";
	ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *slash = length > 0 ? strrchr(self, '/') : NULL;

	if (slash)
		*slash = '\0';
	(void)snprintf(selftest->job, sizeof(selftest->job), "%.*s/" SELFTEST_JOB, PATH_MAX - 32,
		       self);
	if (access(selftest->job, X_OK) < 0)
		(void)snprintf(selftest->job, sizeof(selftest->job), LIBEXECDIR "/" SELFTEST_JOB);
	return access(selftest->job, X_OK) < 0
		       ? trouble("cannot run %s; install the package again", selftest->job)
		       : TOOL_YES;
}

/* The images of a job on one GPU. */
static uint64_t bytes_of_job(const struct selftest *selftest)
{
	uint64_t most = 0;

	SELFTEST_FOR_EACH_GPU (selftest, gpu, index) {
		uint64_t bytes = gpu->simd_count * SIMD_BYTES;

		most = bytes > most ? bytes : most;
	}
	return selftest->bytes + SMALL_BYTES + most;
}

static int check_directory(struct selftest *selftest, const struct tool_request *request)
{
	struct check *check = &selftest->check;
	int ret = request->dir ? 0 : host_open_directory(DEFAULT_DIR);

	if (ret < 0)
		return TOOL_TROUBLE;
	/* One dump at a time, the largest of a job on all GPUs. With --keep there is less room. */
	check->largest = bytes_of_job(selftest);
	check->contents =
		check->largest * (request->gpu ? 1 : topology_count_gpus(&check->topology));
	check_room(check);
	if (check->refused)
		return TOOL_TROUBLE;
	ret = selftest_dir_make(request->dir ? request->dir : DEFAULT_DIR, selftest->dir);
	return ret ? trouble("cannot make a directory: %s", strerror(-ret)) : TOOL_YES;
}

/* --- the work -----------------------------------------------------------------------------------
 */

static void say_criu(struct selftest *selftest)
{
	const char *argv[] = { selftest->criu, "--version", NULL };
	_cleanup_fclose_ FILE *file = NULL;
	char path[PATH_MAX + 16], version[64] = "unknown";
	int status;
	pid_t pid;

	(void)snprintf(path, sizeof(path), "%s/version.txt", selftest->dir);
	if (!selftest_run_start(argv, path, &pid) &&
	    !selftest_run_wait(pid, selftest->limit_s, &status))
		file = stream_open(path);
	if (file && fscanf(file, "Version: %63s", version) != 1)
		(void)snprintf(version, sizeof(version), "unknown");
	selftest_report_say(&selftest->report, "CRIU", "%s", version);
}

static void say_machine(struct selftest *selftest)
{
	char driver[64] = "that of the kernel";
	struct utsname name;

	(void)amdgpu_module_text("version", driver, sizeof(driver));
	if (!uname(&name))
		selftest_report_say(&selftest->report, "kernel", "Linux %s", name.release);
	selftest_report_say(&selftest->report, "driver", "amdgpu, %s", driver);
	say_criu(selftest);
	selftest_report_say(&selftest->report, "plugin", "%s", PLUGIN_VERSION);
	selftest_report_say(&selftest->report, NULL, "limit of each step: %.0f s",
			    selftest->limit_s);
}

static void say_storage(struct selftest *selftest)
{
	uint64_t largest = selftest->check.largest;
	struct selftest_dir_speed speed;
	int ret = selftest_dir_measure(selftest->dir,
				       largest < STORAGE_BYTES ? largest : STORAGE_BYTES, &speed);

	if (ret)
		selftest_report_say(&selftest->report, "storage alone", "not measured: %s",
				    strerror(-ret));
	else
		selftest_report_say(
			&selftest->report, "storage alone",
			"one thread writes %.0f MiB/s to the page cache and %.0f MiB/s to the end, and reads %.0f MiB/s",
			speed.write_mib_s, speed.flush_mib_s, speed.read_mib_s);
}

static int work(void *argument)
{
	struct selftest *selftest = argument;
	const struct selftest_report *report = &selftest->report;
	int ret;

	say_machine(selftest);
	say_storage(selftest);
	ret = selftest_parts_run(selftest);
	/* The user's process may have been killed. */
	if (!selftest->request->keep || ret == -ECANCELED)
		selftest_dir_remove(selftest->dir);
	if (ret == -ECANCELED)
		return TOOL_TROUBLE;
	if (selftest_report_end(&selftest->report, selftest->request->json,
				selftest->request->report) < 0)
		return TOOL_TROUBLE;
	return report->passed && !report->failed ? TOOL_YES : TOOL_NO;
}

static int run(struct selftest *selftest)
{
	int result = TOOL_TROUBLE, ret = selftest_run(work, selftest, &result);

	if (!selftest->request->keep || ret == -EINTR)
		selftest_dir_remove(selftest->dir);
	else
		(void)fprintf(stderr, "criu-amdgpu: selftest: images and logs are in %s\n",
			      selftest->dir);
	switch (ret) {
	case 0:
		return result;
	case -EINTR:
		return trouble("ended by a signal; nothing is left of it%s", "");
	case -EBUSY:
		return trouble("a process that was killed does not end: the driver hangs%s", "");
	default:
		return trouble("the process that works was killed (%s)", strerror(-ret));
	}
}

int selftest_command(const struct tool_request *request)
{
	_cleanup_(selftest_done) struct selftest selftest = {
		.request = request,
		.check = { .request = request, .quiet = true },
	};
	_cleanup_close_ int lock = -1;
	int ret = check_all(&selftest);

	if (ret == TOOL_YES)
		ret = lock_machine(&lock);
	if (ret == TOOL_YES)
		ret = read_numbers(&selftest);
	if (ret == TOOL_YES)
		ret = find_job(&selftest);
	if (ret == TOOL_YES && !check_find_program("criu", selftest.criu))
		ret = trouble("criu is not in PATH%s", "");
	if (ret == TOOL_YES && selftest_report_init(&selftest.report, request->json) < 0)
		ret = trouble("no memory%s", "");
	if (ret == TOOL_YES)
		ret = check_directory(&selftest, request);
	return ret == TOOL_YES ? run(&selftest) : ret;
}
