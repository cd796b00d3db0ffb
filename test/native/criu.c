// SPDX-License-Identifier: GPL-2.0-only
/* Plays CRIU to the plugin: loads it and dumps. criu_restore.c restores. */
#include "criu.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "after.h"
#include "client.h"
#include "criu_calls.h"
#include "criu_stub.h"
#include "post_dump.h"
#include "simulator.h"
#include "streamer.h"

/* Bytes of one write. */
#define MEMORY_STEP (1u << 20)
/* Longer than a dump of the tests takes, also on a busy machine. */
#define FREEZE_S 600
/* More than any workload opens. */
#define CRIU_TASK_FILES 256

static const char *const names[HOOK_MAX + 2] = {
	[HOOK_DUMP_EXT_FILE] = "dump_ext_file",
	[HOOK_RESTORE_EXT_FILE] = "restore_ext_file",
	[HOOK_HANDLE_DEVICE_VMA] = "handle_device_vma",
	[HOOK_UPDATE_VMA_MAP] = "update_vma_map",
	[HOOK_RESUME_DEVICES_LATE] = "resume_devices_late",
	[HOOK_PAUSE_DEVICES] = "pause_devices",
	[HOOK_CHECKPOINT_DEVICES] = "checkpoint_devices",
	[HOOK_POST_FORKING] = "post_forking",
	[HOOK_RESTORE_INIT] = "restore_init",
	[HOOK_DUMP_DEVICES_LATE] = "dump_devices_late",
	[HOOK_DUMP_FINISH] = "dump_finish",
	[CRIU_INIT] = "init",
	[CRIU_EXIT] = "exit",
};

double criu_now(void)
{
	struct timespec time;

	(void)clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

int criu_complain(const char *what)
{
	(void)fprintf(stderr, "criu: %s\n", what);
	return -EINVAL;
}

static int load(struct criu *criu, const struct criu_setup *setup)
{
	char path[4096];
	const bool *takes_mapping_fd;
	const size_t *hooks;

	(void)snprintf(path, sizeof(path), "%s/criu-%s.so", setup->hosts, setup->version);
	criu->version = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
	hooks = criu->version ? dlsym(criu->version, "criu_hooks") : NULL;
	takes_mapping_fd = criu->version ? dlsym(criu->version, "criu_takes_mapping_fd") : NULL;
	if (!hooks || !takes_mapping_fd)
		return criu_complain(dlerror());
	criu->hooks = (unsigned int)*hooks;
	criu->takes_mapping_fd = *takes_mapping_fd;
	criu->plugin = dlopen(setup->plugin, RTLD_LAZY);
	if (!criu->plugin)
		return criu_complain(dlerror());
	criu->desc = dlsym(criu->plugin, "CR_PLUGIN_DESC");
	if (!criu->desc)
		return criu_complain("the plugin has no descriptor");
	if (criu->desc->version > CRIU_PLUGIN_VERSION_0_2)
		return criu_complain("the plugin is for a newer CRIU");
	if (criu->desc->max_hooks != (criu->hooks < HOOK_MAX ? criu->hooks : HOOK_MAX))
		return criu_complain("the plugin takes this CRIU for another version");
	return 0;
}

int criu_load(const struct criu_setup *setup, struct criu **ret_criu)
{
	/* Shared with the tasks, which add the times of their hooks. */
	struct criu *criu = mmap(NULL, sizeof(*criu), PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int ret;

	if (criu == MAP_FAILED)
		return -ENOMEM;
	opts = setup->ends_tasks ? CRIU_FINAL_DEAD : CRIU_FINAL_ALIVE;
	criu_stub.log_level = (unsigned int)setup->log_level;
	criu_stub.lowest_fd = CRIU_LOWEST_FD;
	/* Above the files of seven tasks with eight GPUs. */
	criu_stub.unused_fd = 128;
	criu_stub.image_dir =
		criu_stub_keep_fd(open(setup->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	ret = criu_stub.image_dir < 0 ? criu_complain("cannot open the image directory")
				      : load(criu, setup);
	if (!ret)
		ret = criu_stub_open_store();
	if (!ret && setup->streams)
		ret = streamer_start(setup->directory, setup->captures, NULL);
	if (ret < 0) {
		criu_unload(criu);
		return ret;
	}
	criu->memory = setup->memory;
	criu->workload = setup->workload;
	*ret_criu = criu;
	return 0;
}

void criu_unload(struct criu *criu)
{
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	/* A sanitizer cannot name functions of an unloaded library. */
	if (criu->plugin)
		(void)dlclose(criu->plugin);
	if (criu->version)
		(void)dlclose(criu->version);
#endif
	streamer_stop();
	if (criu_stub.image_dir >= 0)
		(void)close(criu_stub.image_dir);
	criu_stub.image_dir = -1;
	criu_stub_close_stored();
	(void)munmap(criu, sizeof(*criu));
}

void criu_print_times(const struct criu *criu)
{
	for (size_t i = 0; i < HOOK_MAX + 2; i++) {
		if (criu->seconds[i] > 0)
			printf("hook %s %.6f\n", names[i], criu->seconds[i]);
	}
}

void *criu_hook(const struct criu *criu, enum criu_plugin_hook number)
{
	return number < criu->hooks && number < criu->desc->max_hooks ? criu->desc->hooks[number]
								      : NULL;
}

int criu_call_with_pid(struct criu *criu, enum criu_plugin_hook number, int pid)
{
	int (*function)(int pid) = (int (*)(int))(uintptr_t)criu_hook(criu, number);
	int ret = function ? TIMED(criu, number, function(pid)) : -ENOTSUP;

	return ret == -ENOTSUP ? 0 : ret;
}

int criu_call_without(struct criu *criu, enum criu_plugin_hook number)
{
	int (*function)(void) = (int (*)(void))(uintptr_t)criu_hook(criu, number);
	int ret = function ? TIMED(criu, number, function()) : -ENOTSUP;

	return ret == -ENOTSUP ? 0 : ret;
}

static pid_t real_pid(void)
{
	/* The kernel's answer; getpid() would give the simulated pid. */
	return (pid_t)syscall(SYS_getpid);
}

int criu_believe(const char *file, const char *format, ...)
{
	va_list arguments;
	char text[64];

	va_start(arguments, format);
	(void)vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	return simulator_write(file, text);
}

/* CRIU shows the plugin each mapping of a device before any file. */
static int dump_vmas(struct criu *criu, const struct task *task)
{
	int (*function)(int fd, const struct stat *stat) = (int (*)(int, const struct stat *))(
		uintptr_t)criu_hook(criu, HOOK_HANDLE_DEVICE_VMA);
	int ret = 0;

	for (size_t i = 0; !ret && i < task->num_vmas; i++) {
		const char *path = task->files[task->vmas[i].file].path;
		/* CRIU's descriptor cannot read, write or call ioctl(). */
		int fd = open(path, O_PATH | O_CLOEXEC);
		struct stat stat_of;

		if (fd < 0 || stat(path, &stat_of) < 0)
			return -errno;
		ret = TIMED(criu, HOOK_HANDLE_DEVICE_VMA, function(fd, &stat_of));
		(void)close(fd);
	}
	return ret;
}

int criu_first_id(const struct task *tasks, const struct task *task)
{
	size_t id = 1;

	for (; tasks < task; tasks++)
		id += tasks->num_files;
	return (int)id;
}

/* CRIU takes duplicates of the task's descriptors before it shows the first of them, and closes
 * them after the last (dump_task_files_seized() in files.c). */
static int dump_files(struct criu *criu, const struct task *task, int id)
{
	int (*function)(int fd, int id) =
		(int (*)(int, int))(uintptr_t)criu_hook(criu, HOOK_DUMP_EXT_FILE);
	int fds[CRIU_TASK_FILES], ret = 0;
	size_t count = 0;

	if (task->num_files > CRIU_TASK_FILES)
		return criu_complain("a task has too many files");
	for (; !ret && count < task->num_files; count++) {
		fds[count] = fcntl(task->files[count].fd, F_DUPFD_CLOEXEC, CRIU_LOWEST_FD);
		ret = fds[count] < 0 ? -errno : 0;
	}
	for (size_t i = 0; !ret && i < count; i++)
		ret = TIMED(criu, HOOK_DUMP_EXT_FILE, function(fds[i], id + (int)i));
	while (count)
		(void)close(fds[--count]);
	return ret;
}

/* CRIU writes this image of a task when all files of the task are saved. */
static int dump_core(const struct task *tasks, const struct task *task)
{
	char name[32];
	int fd;

	(void)snprintf(name, sizeof(name), "core-%d.img", CRIU_TASK_PID + (int)(task - tasks));
	fd = openat(criu_stub.image_dir, name, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	return fd < 0 ? -errno : close(fd);
}

/* CRIU writes the memory of the tasks from pipes that have their pages. */
static int dump_memory(const char *path)
{
	int from = open(path, O_RDONLY | O_CLOEXEC);
	int to = openat(criu_stub.image_dir, "pages-1.img",
			O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
	ssize_t copied = from < 0 || to < 0 ? -1 : 1;

	while (copied > 0)
		copied = sendfile(to, from, NULL, MEMORY_STEP);
	if (from >= 0)
		(void)close(from);
	if (to < 0 || close(to) < 0 || copied < 0)
		return criu_complain("cannot write the memory of the tasks");
	return 0;
}

static int call_for_all(struct criu *criu, enum criu_plugin_hook number, const struct task *tasks,
			size_t num_tasks)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < num_tasks; i++)
		ret = criu_call_with_pid(criu, number, tasks[i].pid ? tasks[i].pid : real_pid());
	return ret;
}

/* In CRIU 4.0, which keeps no inventory of plugins yet, the alarm of the freezing still runs then
 * (collect_pstree() in seize.c). */
static int checkpoint_devices(struct criu *criu, const struct task *tasks, size_t num_tasks)
{
	int ret;

	if (!dlsym(criu->version, "add_inventory_plugin"))
		(void)alarm(FREEZE_S);
	ret = call_for_all(criu, HOOK_CHECKPOINT_DEVICES, tasks, num_tasks);
	(void)alarm(0);
	return ret;
}

static int dump_all(struct criu *criu, const struct task *tasks, size_t num_tasks)
{
	int ret = call_for_all(criu, HOOK_PAUSE_DEVICES, tasks, num_tasks);

	/* CRIU 4.0 to 4.2 call it before each try to seize a task. */
	if (!ret && criu->hooks <= HOOK_DUMP_DEVICES_LATE)
		ret = call_for_all(criu, HOOK_PAUSE_DEVICES, tasks, num_tasks);
	if (!ret)
		ret = checkpoint_devices(criu, tasks, num_tasks);
	for (size_t i = 0; !ret && i < num_tasks; i++) {
		ret = dump_vmas(criu, &tasks[i]);
		if (!ret)
			ret = dump_files(criu, &tasks[i], criu_first_id(tasks, &tasks[i]));
		if (!ret)
			ret = dump_core(tasks, &tasks[i]);
	}
	if (!ret && criu->memory)
		ret = dump_memory(criu->memory);
	/* The argument is the topmost process. */
	return ret ? ret : call_for_all(criu, HOOK_DUMP_DEVICES_LATE, tasks, 1);
}

/* CRIU has stopped the tasks before it calls a plugin. */
static int believe_traced(const struct task *tasks, size_t num_tasks)
{
	int ret = criu_believe("own_files", "%d", CRIU_LOWEST_FD);

	if (ret < 0)
		return ret;
	if (!tasks->pid) {
		ret = criu_believe("own_pid", "%d", CRIU_TASK_PID);
		return ret ? ret : criu_believe("traced", "1");
	}
	for (size_t i = 0; !ret && i < num_tasks; i++)
		ret = criu_believe("own_pid", "%d %d", CRIU_TASK_PID + (int)i, tasks[i].pid);
	return ret ? ret : criu_believe("traced", "2");
}

void criu_leave(struct criu *criu, int stage, int ret)
{
	double begin = criu_now();

	criu->desc->exit(stage, ret);
	criu->seconds[CRIU_EXIT] += criu_now() - begin;
}

/* CRIU before 4.0 ends plugins before it runs the post-dump script, CRIU 4.0 and newer after it
 * (cr_dump_finish() in cr-dump.c). CRIU tells DUMP_FINISH and exit() alike how the dump ended. */
static int end_dump(struct criu *criu, int ret)
{
	const bool script_is_last = criu->hooks <= HOOK_PAUSE_DEVICES;
	struct post_dump script = { 0 };
	bool is_incomplete;
	int finished;

	if (script_is_last)
		criu_leave(criu, STAGE_DUMP, ret);
	if (!ret)
		ret = post_dump_run(criu_stub.image_dir, &script);
	/* Only with this option may the script see images whose contents come later. */
	is_incomplete = getenv("AMDGPU_DUMP_MEMORY") && !after_have_state(criu_stub.image_dir);
	finished = criu_call_with_pid(criu, HOOK_DUMP_FINISH, ret);
	if (!ret)
		ret = finished;
	if (!script_is_last)
		criu_leave(criu, STAGE_DUMP, ret);
	if (!ret && is_incomplete)
		post_dump_forget(&script);
	if (!ret && after_is_awaited())
		return after_write_statistics(criu_stub.image_dir, criu->workload);
	return post_dump_check(criu_stub.image_dir, ret, &script);
}

int criu_dump(struct criu *criu, const struct task *tasks, size_t num_tasks)
{
	int ret = believe_traced(tasks, num_tasks);

	if (ret < 0)
		return ret;
	ret = TIMED(criu, CRIU_INIT, criu->desc->init(STAGE_DUMP));
	if (!ret)
		ret = end_dump(criu, dump_all(criu, tasks, num_tasks));
	(void)criu_believe("own_files", "0");
	return ret;
}
