// SPDX-License-Identifier: GPL-2.0-only
/* Plays CRIU's part in a restore: the main process, and a child for each task. */
#include "criu.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "criu_calls.h"
#include "criu_stub.h"
#include "streamer.h"

/* A task of a failed restore has this time to end. */
#define LAST_WORDS_MS 2000

/* Newer CRIU has a second argument and does not set it. With older CRIU there is garbage. */
static int restore_file(struct criu *criu, int id)
{
	int (*function)(int id, bool *retry) =
		(int (*)(int, bool *))(uintptr_t)criu_hook(criu, HOOK_RESTORE_EXT_FILE);
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

/* CRIU maps neighbouring mappings of one file through one descriptor: that of the first mapping. */
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
			int *ret_fd) =
		(int (*)(const char *, uint64_t, uint64_t, uint64_t *, int *))(uintptr_t)criu_hook(
			criu, HOOK_UPDATE_VMA_MAP);
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

/* The main process and a task tell each other their progress over a pair of sockets. */
static int tell(int socket, int result)
{
	return send(socket, &result, sizeof(result), MSG_NOSIGNAL) == sizeof(result) ? 0 : -EPIPE;
}

/* The message of the other side; -EPIPE: the other side has ended. */
static int hear(int socket)
{
	int result;

	return read(socket, &result, sizeof(result)) == sizeof(result) ? result : -EPIPE;
}

/* CRIU's tasks begin without CRIU's descriptors, except those above CRIU_LOWEST_FD. */
static void close_inherited(void)
{
	for (int fd = STDERR_FILENO + 1; fd < CRIU_LOWEST_FD; fd++)
		(void)close(fd);
}

/* A task of the restore, as the main process knows it. */
struct child {
	const struct task *task;
	const struct criu_task *own;
	int first_id;
	pid_t pid;
	int socket;
	bool resumed;
};

/* A descriptor that the plugin gave CRIU for mappings must not be one of the task's. */
static int check_files(const struct task *task)
{
	for (size_t i = 0; i < task->num_files; i++) {
		if (fcntl(task->files[i].fd, F_GETFD) < 0)
			return criu_complain("a file of the task was closed with its mappings");
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

/* Runs in the task. The result is the exit status of the process. */
static int run_task(struct criu *criu, const struct child *child, int socket)
{
	const struct criu_task *own = child->own;
	int ret;

	close_inherited();
	ret = criu_believe("own_pid", "%d", CRIU_TASK_PID + (int)child->task->number);
	if (!ret)
		own->begin(own->argument);
	/* The plugin in the main process listens before the tasks begin. */
	if (!ret)
		ret = hear(socket);
	if (!ret)
		ret = prepare_task(criu, child);
	if (tell(socket, ret) < 0 || ret)
		return ret;
	ret = hear(socket);
	/* Other tasks are not resumed yet. */
	if (!ret) {
		ret = own->resume(own->argument);
		if (tell(socket, ret) < 0 || ret)
			return ret;
		ret = hear(socket);
	}
	/* The images of the restore must be closed before the task runs. */
	streamer_settle();
	/* A task that has run is only killed. */
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

/* @children begins with the tasks before @child, whose sockets @child closes. */
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
			      : criu_believe("own_pid", "%d %d",
					     CRIU_TASK_PID + (int)child->task->number, child->pid);
}

/* Hears of a task that has something to tell. */
static int hear_next(struct child *children, size_t count, bool heard[])
{
	struct pollfd polls[CRIU_TASKS_MAX];

	for (size_t i = 0; i < count; i++)
		polls[i] = (struct pollfd){ heard[i] ? -1 : children[i].socket, POLLIN, 0 };
	if (poll(polls, count, -1) < 0)
		return errno == EINTR ? 0 : -errno;
	for (size_t i = 0; i < count; i++) {
		if (!polls[i].revents)
			continue;
		heard[i] = true;
		return hear(children[i].socket);
	}
	return 0;
}

static bool all_heard(const bool heard[], size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (!heard[i])
			return false;
	}
	return true;
}

/* All tasks begin. CRIU waits for no other task when one fails. */
static int begin_and_hear(struct child *children, size_t count)
{
	bool heard[CRIU_TASKS_MAX] = { false };
	int ret = 0;

	for (size_t i = 0; i < count; i++) {
		int told = tell(children[i].socket, 0);

		ret = ret ? ret : told;
	}
	while (!ret && !all_heard(heard, count))
		ret = hear_next(children, count, heard);
	return ret;
}

/* From here on the GPU runs the queues of the task, before CRIU calls the hook for the next one. */
static int resume_task(struct criu *criu, struct child *child)
{
	int ret = criu_call_with_pid(criu, HOOK_RESUME_DEVICES_LATE, child->pid);

	child->resumed = !ret;
	if (!ret)
		ret = tell(child->socket, 0);
	return ret ? ret : hear(child->socket);
}

/* Each task is dead before CRIU does anything else: CRIU before 4.3 would let tasks run until it
 * comes to a dead one. */
static void report_living(const struct child *children, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		siginfo_t info = { 0 };

		if (waitid(P_PID, (id_t)children[i].pid, &info, WEXITED | WNOHANG | WNOWAIT) < 0 ||
		    info.si_code != CLD_KILLED)
			printf("left alive process %d\n", children[i].pid);
	}
	(void)fflush(stdout);
}

/* CRIU keeps its descriptor store until it ends, which may be when the job ends. */
static int check_store(void)
{
	char byte;

	return recv(criu_stub.store, &byte, sizeof(byte), MSG_DONTWAIT) > 0
		       ? criu_complain("the descriptor store is not empty")
		       : 0;
}

/* CRIU has seized all tasks. */
static int believe_traced(const struct child *children, size_t count)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < count; i++)
		ret = criu_believe("traced", "2 %d", children[i].pid);
	return ret;
}

/* CRIU before 4.3 ignores a failure, and calls the hook for the other tasks, too. */
static int resume_tasks(struct criu *criu, struct child *children, size_t count)
{
	int result = believe_traced(children, count);

	for (size_t i = 0; i < count && (!result || criu->hooks <= HOOK_DUMP_FINISH); i++) {
		int ret = resume_task(criu, &children[i]);

		result = result ? result : ret;
	}
	if (result)
		report_living(children, count);
	return result ? result : check_store();
}

/* Another plugin has answered for all tasks, so CRIU asks no further one. */
static int resume_without_plugin(struct criu *criu)
{
	criu_leave(criu, STAGE_RESTORE, 0);
	return criu_complain("reports success, and no queue runs");
}

/* The part of the main process between the begin of the tasks and their end. */
static int accompany(struct criu *criu, struct child *children, size_t count)
{
	int ret = criu_call_without(criu, HOOK_POST_FORKING);

	if (!ret)
		ret = begin_and_hear(children, count);
	if (!ret && getenv("AMDGPU_HOST_NEIGHBOUR"))
		return resume_without_plugin(criu);
	return ret ? ret : resume_tasks(criu, children, count);
}

/* CRIU kills the tasks of a failed restore. Here a task that lives hears of it first and reports
 * its progress. */
static int let_go(const struct child *child, int ret)
{
	return child->pid > 0 ? tell(child->socket, ret && child->resumed ? -ECANCELED : ret) : 0;
}

static int end_task(const struct child *child, int told, int ret)
{
	struct pollfd its_end = { .fd = child->socket };
	int status;

	if (child->pid <= 0)
		return ret;
	if (told < 0 || (ret && poll(&its_end, 1, LAST_WORDS_MS) < 1))
		(void)kill(child->pid, SIGKILL);
	if (waitpid(child->pid, &status, 0) < 0)
		return ret ? ret : -errno;
	if (ret)
		return ret;
	return WIFEXITED(status) && !WEXITSTATUS(status) ? 0 : -EIO;
}

/* All tasks run at the same time. */
static int end_tasks(struct child *children, size_t count, int ret)
{
	int told[CRIU_TASKS_MAX], result = ret;

	for (size_t i = 0; i < count; i++)
		told[i] = let_go(&children[i], ret);
	for (size_t i = 0; i < count; i++) {
		int ended = end_task(&children[i], told[i], ret);

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
					      .first_id = criu_first_id(tasks, &tasks[i]),
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

	ret = TIMED(criu, CRIU_INIT, criu->desc->init(STAGE_RESTORE));
	if (!ret)
		ret = criu_call_without(criu, HOOK_RESTORE_INIT);
	if (ret < 0)
		return ret;
	ret = fork_tasks(criu, tasks, own, children, num_tasks);
	if (!ret)
		ret = accompany(criu, children, num_tasks);
	criu_leave(criu, STAGE_RESTORE, ret);
	for (size_t i = 0; i < num_tasks; i++)
		own[i].resumed(own[i].argument, children[i].pid);
	return end_tasks(children, num_tasks, ret);
}
