// SPDX-License-Identifier: GPL-2.0-only
/* Plays CRIU to the plugin: which hook is called when, with which descriptors, and what is
 * made of the answers. */
#include "criu.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "client.h"
#include "criu/plugin_abi.h"
#include "criu_stub.h"
#include "streamer.h"

struct criu {
	void *version, *plugin;
	struct criu_plugin_desc *desc;
	unsigned int hooks; /* of this version */
	bool takes_mapping_fd;
	unsigned int rest_ms;
	double seconds[HOOK_MAX + 2];
};

/* For a task that was not let go, to end by itself. */
#define LAST_WORDS_MS 2000

/* Behind the hooks, for the times. */
enum { INIT = HOOK_MAX, EXIT };

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
	[INIT] = "init",
	[EXIT] = "exit",
};

static double now(void)
{
	struct timespec time;

	(void)clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* Runs @expression as the hook with that number. */
#define TIMED(criu, number, expression)                        \
	({                                                     \
		double begin_ = now();                         \
		__typeof__(expression) result_ = (expression); \
                                                               \
		(criu)->seconds[number] += now() - begin_;     \
		result_;                                       \
	})

static int complain(const char *what)
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
		return complain(dlerror());
	criu->hooks = (unsigned int)*hooks;
	criu->takes_mapping_fd = *takes_mapping_fd;
	criu->plugin = dlopen(setup->plugin, RTLD_LAZY);
	if (!criu->plugin)
		return complain(dlerror());
	criu->desc = dlsym(criu->plugin, "CR_PLUGIN_DESC");
	if (!criu->desc)
		return complain("the plugin has no descriptor");
	if (criu->desc->version > CRIU_PLUGIN_VERSION_0_2 || criu->desc->max_hooks > criu->hooks)
		return complain("the plugin is for a newer CRIU");
	return 0;
}

int criu_load(const struct criu_setup *setup, struct criu **ret_criu)
{
	/* shared with the task, whose hooks take their time, too */
	struct criu *criu = mmap(NULL, sizeof(*criu), PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int ret;

	if (criu == MAP_FAILED)
		return -ENOMEM;
	criu_stub.log_level = (unsigned int)setup->log_level;
	criu_stub.lowest_fd = CRIU_LOWEST_FD;
	criu_stub.unused_fd = 64;
	criu_stub.image_dir = criu_stub_keep_fd(
		open(setup->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	ret = criu_stub.image_dir < 0 ? complain("cannot open the image directory")
				       : load(criu, setup);
	if (!ret && setup->streams)
		ret = streamer_start(setup->directory, setup->captures, NULL);
	if (ret < 0) {
		criu_unload(criu);
		return ret;
	}
	criu->rest_ms = setup->rest_ms;
	*ret_criu = criu;
	return 0;
}

void criu_unload(struct criu *criu)
{
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	/* a sanitizer finds no names for what is gone */
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

/* The plugin's function; NULL: this version has no such hook, or the plugin none. */
static void *hook(const struct criu *criu, enum criu_plugin_hook number)
{
	return number < criu->hooks && number < criu->desc->max_hooks ? criu->desc->hooks[number]
								      : NULL;
}

/* -ENOTSUP means that the plugin leaves it to others, and there are none. */
static int call_with_pid(struct criu *criu, enum criu_plugin_hook number, int pid)
{
	int (*function)(int pid) = (int (*)(int))(uintptr_t)hook(criu, number);
	int ret = function ? TIMED(criu, number, function(pid)) : -ENOTSUP;

	return ret == -ENOTSUP ? 0 : ret;
}

static int call_without(struct criu *criu, enum criu_plugin_hook number)
{
	int (*function)(void) = (int (*)(void))(uintptr_t)hook(criu, number);
	int ret = function ? TIMED(criu, number, function()) : -ENOTSUP;

	return ret == -ENOTSUP ? 0 : ret;
}

static pid_t real_pid(void)
{
	/* the kernel's answer, not what the task believes */
	return (pid_t)syscall(SYS_getpid);
}

/* What the kernel would say of a process that has a pid of its own, and of one that is traced. */
static int believe(const char *file, const char *format, ...)
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
	int (*function)(int fd, const struct stat *stat) =
		(int (*)(int, const struct stat *))(uintptr_t)hook(criu, HOOK_HANDLE_DEVICE_VMA);
	int ret = 0;

	for (size_t i = 0; !ret && i < task->num_vmas; i++) {
		const char *path = task->files[task->vmas[i].file].path;
		/* good for nothing but to be looked at */
		int fd = open(path, O_PATH | O_CLOEXEC);
		struct stat stat_of;

		if (fd < 0 || stat(path, &stat_of) < 0)
			return -errno;
		ret = TIMED(criu, HOOK_HANDLE_DEVICE_VMA, function(fd, &stat_of));
		(void)close(fd);
	}
	return ret;
}

/* CRIU numbers all files that it meets. */
static int first_id(const struct task *tasks, const struct task *task)
{
	size_t id = 1;

	for (; tasks < task; tasks++)
		id += tasks->num_files;
	return (int)id;
}

/* What CRIU gives to plugins is its own duplicate of the task's descriptor. */
static int dump_files(struct criu *criu, const struct task *task, int id)
{
	int (*function)(int fd, int id) =
		(int (*)(int, int))(uintptr_t)hook(criu, HOOK_DUMP_EXT_FILE);
	int ret = 0;

	for (size_t i = 0; !ret && i < task->num_files; i++) {
		int fd = fcntl(task->files[i].fd, F_DUPFD_CLOEXEC, CRIU_LOWEST_FD);

		if (fd < 0)
			return -errno;
		ret = TIMED(criu, HOOK_DUMP_EXT_FILE, function(fd, id + (int)i));
		(void)close(fd);
	}
	return ret;
}

/* What CRIU writes of each task, when all its files are saved. */
static int dump_core(const struct task *tasks, const struct task *task)
{
	char name[32];
	int fd;

	(void)snprintf(name, sizeof(name), "core-%d.img", CRIU_TASK_PID + (int)(task - tasks));
	fd = openat(criu_stub.image_dir, name, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	return fd < 0 ? -errno : close(fd);
}

static int call_for_all(struct criu *criu, enum criu_plugin_hook number, const struct task *tasks,
			size_t num_tasks)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < num_tasks; i++)
		ret = call_with_pid(criu, number, tasks[i].pid ? tasks[i].pid : real_pid());
	return ret;
}

static int dump_all(struct criu *criu, const struct task *tasks, size_t num_tasks)
{
	int ret = call_for_all(criu, HOOK_PAUSE_DEVICES, tasks, num_tasks);

	if (!ret)
		ret = call_for_all(criu, HOOK_CHECKPOINT_DEVICES, tasks, num_tasks);
	for (size_t i = 0; !ret && i < num_tasks; i++) {
		ret = dump_vmas(criu, &tasks[i]);
		if (!ret)
			ret = dump_files(criu, &tasks[i], first_id(tasks, &tasks[i]));
		if (!ret)
			ret = dump_core(tasks, &tasks[i]);
	}
	return ret ? ret : call_for_all(criu, HOOK_DUMP_DEVICES_LATE, tasks, num_tasks);
}

/* That CRIU has stopped them, as it does before it asks plugins for anything. */
static int believe_traced(const struct task *tasks, size_t num_tasks)
{
	int ret = 0;

	if (!tasks->pid) {
		ret = believe("own_pid", "%d", CRIU_TASK_PID);
		return ret ? ret : believe("traced", "1");
	}
	for (size_t i = 0; !ret && i < num_tasks; i++)
		ret = believe("own_pid", "%d %d", CRIU_TASK_PID + (int)i, tasks[i].pid);
	return ret ? ret : believe("traced", "2");
}

static void leave(struct criu *criu, int stage, int ret)
{
	double begin = now();

	criu->desc->exit(stage, ret);
	criu->seconds[EXIT] += now() - begin;
}

int criu_dump(struct criu *criu, const struct task *tasks, size_t num_tasks)
{
	int ret = believe_traced(tasks, num_tasks), finished;

	if (ret < 0)
		return ret;
	ret = TIMED(criu, INIT, criu->desc->init(STAGE_DUMP));
	if (ret < 0)
		return ret;
	ret = dump_all(criu, tasks, num_tasks);
	(void)usleep(criu->rest_ms * 1000);
	/* its argument says whether tasks will run on */
	finished = call_with_pid(criu, HOOK_DUMP_FINISH, ret);
	if (!ret)
		ret = finished;
	leave(criu, STAGE_DUMP, ret);
	return ret;
}

/* Newer hosts have a second argument, which they do not set; older ones have garbage there. */
static int restore_file(struct criu *criu, int id)
{
	int (*function)(int id, bool *retry) =
		(int (*)(int, bool *))(uintptr_t)hook(criu, HOOK_RESTORE_EXT_FILE);
	bool retry = true;
	int fd;

	if (criu->hooks <= HOOK_DUMP_FINISH)
		return TIMED(criu, HOOK_RESTORE_EXT_FILE, function(id, (bool *)8));
	do {
		fd = TIMED(criu, HOOK_RESTORE_EXT_FILE, function(id, &retry));
	} while (fd < 0 && retry);
	return fd;
}

static int restore_files(struct criu *criu, const struct task *task, int id)
{
	for (size_t i = 0; i < task->num_files; i++) {
		int fd = restore_file(criu, id + (int)i);

		if (fd < 0)
			return fd;
		if (dup2(fd, task->files[i].fd) < 0)
			return -errno;
		if (fd != task->files[i].fd)
			(void)close(fd);
	}
	return 0;
}

/* What CRIU maps a run of neighbouring mappings of one file through: what it was given for the
 * first of them. */
struct run {
	uint32_t file;
	int fd;
};

static void end_run(struct run *run)
{
	if (run->fd >= 0)
		(void)close(run->fd);
	run->fd = -1;
}

static int begin_run(const struct criu *criu, const struct task *task, uint32_t file, int plugin_fd,
		     struct run *run)
{
	if (run->fd >= 0 && run->file == file)
		return 0;
	end_run(run);
	run->file = file;
	if (plugin_fd < 0)
		run->fd = open(task->files[file].path, O_RDWR | O_CLOEXEC);
	else if (criu->takes_mapping_fd)
		run->fd = plugin_fd;
	else
		run->fd = fcntl(plugin_fd, F_DUPFD_CLOEXEC, 0);
	return run->fd < 0 ? -errno : 0;
}

static int restore_vma(struct criu *criu, const struct task *task, const struct task_vma *vma,
		       struct run *run)
{
	int (*function)(const char *path, uint64_t addr, uint64_t offset, uint64_t *ret_offset,
			int *ret_fd) = (int (*)(const char *, uint64_t, uint64_t, uint64_t *,
						int *))(uintptr_t)hook(criu, HOOK_UPDATE_VMA_MAP);
	uint64_t offset = vma->offset;
	int fd = -1, ret;

	ret = TIMED(criu, HOOK_UPDATE_VMA_MAP,
		    function(task->files[vma->file].path, vma->addr, vma->offset, &offset, &fd));
	if (ret < 0 && ret != -ENOTSUP)
		return ret;
	ret = begin_run(criu, task, vma->file, fd, run);
	if (ret < 0)
		return ret;
	if (mmap((void *)(uintptr_t)vma->addr, vma->size, PROT_READ | PROT_WRITE,
		 MAP_SHARED | MAP_FIXED_NOREPLACE, run->fd, (off_t)offset) == MAP_FAILED) {
		ret = -errno;
		(void)fprintf(stderr,
			      "criu: cannot map 0x%" PRIx64 " at offset 0x%" PRIx64 ": %s\n",
			      vma->addr, offset, strerror(-ret));
	}
	return ret;
}

static int restore_vmas(struct criu *criu, const struct task *task)
{
	struct run run = { .fd = -1 };
	int ret = 0;

	for (size_t i = 0; !ret && i < task->num_vmas; i++)
		ret = restore_vma(criu, task, &task->vmas[i], &run);
	end_run(&run);
	return ret;
}

/* Main process and task tell each other how far they are by a pair of sockets. */
static int tell(int socket, int result)
{
	return send(socket, &result, sizeof(result), MSG_NOSIGNAL) == sizeof(result) ? 0 : -EPIPE;
}

/* What the other side tells, or that it is no more. */
static int hear(int socket)
{
	int result;

	return read(socket, &result, sizeof(result)) == sizeof(result) ? result : -EPIPE;
}

/* CRIU's tasks begin without CRIU's descriptors, but for those that it keeps above theirs. */
static void close_inherited(void)
{
	for (int fd = STDERR_FILENO + 1; fd < CRIU_LOWEST_FD; fd++)
		(void)close(fd);
}

/* A task that is being restored, as the main process has it. */
struct child {
	const struct task *task;
	const struct criu_task *own;
	int first_id;
	pid_t pid;
	int socket;
	bool resumed;
};

/* A descriptor that the plugin gave CRIU for mappings must be none of the task's. */
static int check_files(const struct task *task)
{
	for (size_t i = 0; i < task->num_files; i++) {
		if (fcntl(task->files[i].fd, F_GETFD) < 0)
			return complain("a file of the task was closed with its mappings");
	}
	return 0;
}

static int prepare_task(struct criu *criu, const struct child *child)
{
	int ret = restore_files(criu, child->task, child->first_id);

	if (!ret)
		ret = restore_vmas(criu, child->task);
	if (!ret)
		ret = check_files(child->task);
	return ret ? ret : child->own->map_memory(child->own->argument);
}

/* The task: its result is the process's. */
static int run_task(struct criu *criu, const struct child *child, int socket)
{
	const struct criu_task *own = child->own;
	int ret;

	close_inherited();
	ret = believe("own_pid", "%d", CRIU_TASK_PID + (int)child->task->number);
	if (!ret)
		own->begin(own->argument);
	/* the main process listens for tasks before they begin */
	if (!ret)
		ret = hear(socket);
	if (!ret)
		ret = prepare_task(criu, child);
	if (tell(socket, ret) < 0 || ret)
		return ret;
	ret = hear(socket);
	/* what is counted from here on is the task's */
	streamer_settle();
	/* one that ran already is only killed */
	if (ret && ret != -ECANCELED)
		own->fail(own->argument);
	return ret ? ret : own->live(own->argument);
}

static int kept_pair(int *ret_own, int *ret_others)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	*ret_own = fcntl(pair[0], F_DUPFD_CLOEXEC, CRIU_LOWEST_FD);
	*ret_others = fcntl(pair[1], F_DUPFD_CLOEXEC, CRIU_LOWEST_FD);
	(void)close(pair[0]);
	(void)close(pair[1]);
	return *ret_own < 0 || *ret_others < 0 ? -EMFILE : 0;
}

/* @children are those before it, too, whose sockets are none of its. */
static int fork_task(struct criu *criu, struct child *children, struct child *child)
{
	int theirs = -1, ret = kept_pair(&child->socket, &theirs);

	if (ret < 0)
		return ret;
	(void)fflush(stdout);
	child->pid = fork();
	if (child->pid == 0) {
		for (; children <= child; children++)
			(void)close(children->socket);
		exit(run_task(criu, child, theirs) ? 1 : 0);
	}
	(void)close(theirs);
	return child->pid < 0 ? -errno
			      : believe("own_pid", "%d %d",
					CRIU_TASK_PID + (int)child->task->number, child->pid);
}

/* All of them get word; the first that fails counts. */
static int begin_and_hear(struct child *children, size_t count)
{
	int ret = 0;

	for (size_t i = 0; i < count; i++) {
		int told = tell(children[i].socket, 0);

		ret = ret ? ret : told;
	}
	for (size_t i = 0; i < count; i++) {
		int heard = hear(children[i].socket);

		ret = ret ? ret : heard;
	}
	return ret;
}

/* What the main process does between the tasks' beginning and their end. */
static int accompany(struct criu *criu, struct child *children, size_t count)
{
	int ret = call_without(criu, HOOK_POST_FORKING);

	if (!ret)
		ret = begin_and_hear(children, count);
	for (size_t i = 0; !ret && i < count; i++) {
		ret = call_with_pid(criu, HOOK_RESUME_DEVICES_LATE, children[i].pid);
		children[i].resumed = !ret;
	}
	return ret;
}

static int end_task(const struct child *child, int ret)
{
	struct pollfd its_end = { .fd = child->socket };
	int status;

	if (child->pid <= 0)
		return ret;
	/* CRIU kills what it cannot restore; this one hears of it before, to tell how far it is */
	if (tell(child->socket, ret && child->resumed ? -ECANCELED : ret) < 0 ||
	    (ret && poll(&its_end, 1, LAST_WORDS_MS) < 1))
		(void)kill(child->pid, SIGKILL);
	if (waitpid(child->pid, &status, 0) < 0)
		return ret ? ret : -errno;
	if (ret)
		return ret;
	return WIFEXITED(status) && !WEXITSTATUS(status) ? 0 : -EIO;
}

static int end_tasks(struct child *children, size_t count, int ret)
{
	int result = ret;

	for (size_t i = 0; i < count; i++) {
		int ended = end_task(&children[i], ret);

		result = result ? result : ended;
		if (children[i].socket >= 0)
			(void)close(children[i].socket);
	}
	return result;
}

static int fork_tasks(struct criu *criu, const struct task *tasks, const struct criu_task *own,
		      struct child *children, size_t count)
{
	int ret = 0;

	for (size_t i = 0; i < count; i++)
		children[i] = (struct child){ .task = &tasks[i],
					      .own = &own[i],
					      .first_id = first_id(tasks, &tasks[i]),
					      .socket = -1 };
	for (size_t i = 0; !ret && i < count; i++)
		ret = fork_task(criu, children, &children[i]);
	return ret;
}

int criu_restore(struct criu *criu, const struct task *tasks, const struct criu_task *own,
		 size_t num_tasks)
{
	struct child children[CRIU_TASKS_MAX];
	int ret;

	ret = TIMED(criu, INIT, criu->desc->init(STAGE_RESTORE));
	if (!ret)
		ret = call_without(criu, HOOK_RESTORE_INIT);
	if (ret < 0)
		return ret;
	ret = fork_tasks(criu, tasks, own, children, num_tasks);
	if (!ret)
		ret = accompany(criu, children, num_tasks);
	leave(criu, STAGE_RESTORE, ret);
	for (size_t i = 0; i < num_tasks; i++)
		own[i].resumed(own[i].argument, children[i].pid);
	return end_tasks(children, num_tasks, ret);
}
