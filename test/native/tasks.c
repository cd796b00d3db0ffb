// SPDX-License-Identifier: GPL-2.0-only
/* Makes, saves, verifies and ends the tasks of a dump. */
#include "tasks.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "criu.h"
#include "simulator.h"

/* CRIU's process in the simulator. With a single task, that task is the same process. */
#define CRIU_PROCESS 0

static uint32_t process_of(const struct tasks *tasks, const struct task *task)
{
	return tasks->count > 1 ? task->number + 1 : CRIU_PROCESS;
}

static int play(uint32_t process)
{
	char number[16];

	(void)snprintf(number, sizeof(number), "%u", process);
	return simulator_write("task", number);
}

static bool has_descriptor(const struct task *task, int fd)
{
	for (size_t i = 0; i < task->num_files; i++) {
		if (task->files[i].fd == fd)
			return true;
	}
	return false;
}

/* The child keeps its own inherited descriptors and closes those of earlier children. Then it
 * closes @line. */
static void __attribute__((noreturn))
be_task(const struct tasks *tasks, const struct task *own, int line)
{
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (int fd = STDERR_FILENO + 1; fd < CRIU_LOWEST_FD; fd++) {
		if (!has_descriptor(own, fd) && fd != line)
			(void)close(fd);
	}
	for (const struct task *other = tasks->tasks; other < tasks->tasks + tasks->count;
	     other++) {
		for (size_t i = 0; other != own && i < other->num_vmas; i++)
			(void)munmap((void *)(uintptr_t)other->vmas[i].addr, other->vmas[i].size);
	}
	(void)close(line);
	for (;;)
		(void)pause();
}

/* The child's descriptors stay open here too, because CRIU will show duplicates of them. */
static int fork_task(struct tasks *tasks, struct task *task)
{
	int ends[2], ret = 0;
	char byte;

	(void)fflush(stdout);
	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	task->pid = fork();
	if (task->pid == 0)
		be_task(tasks, task, ends[1]);
	if (task->pid < 0)
		ret = -errno;
	(void)close(ends[1]);
	while (read(ends[0], &byte, 1) < 0 && errno == EINTR)
		;
	(void)close(ends[0]);
	return ret;
}

static int make_task(struct tasks *tasks, struct task *task)
{
	uint32_t i = task->number;
	int ret = play(process_of(tasks, task));

	if (workload_is_broker(&tasks->workloads[i]))
		return ret;
	if (!ret)
		ret = client_open(&tasks->workloads[i], &tasks->clients[i]);
	if (!ret)
		ret = client_make(tasks->clients[i], &tasks->workloads[i], task);
	return ret;
}

/* When they have all their mappings. */
static int fork_tasks(struct tasks *tasks)
{
	int ret = 0;

	for (uint32_t i = 0; !ret && i < tasks->count; i++) {
		if (!workload_is_broker(&tasks->workloads[i]))
			ret = fork_task(tasks, &tasks->tasks[i]);
	}
	return ret;
}

/* The others have their buffers. */
static int make_broker(struct tasks *tasks)
{
	int ret = 0;

	for (uint32_t i = 1; !ret && i < tasks->count; i++) {
		ret = play(process_of(tasks, &tasks->tasks[i]));
		if (!ret)
			ret = client_give_dmabufs(tasks->clients[i], &tasks->workloads[i],
						  &tasks->tasks[0]);
	}
	return ret ? ret : fork_task(tasks, &tasks->tasks[0]);
}

/* CRIU has KFD state too, once the plugin has opened /dev/kfd. Opening it now keeps later counts of
 * objects equal. */
static int make_criu(void)
{
	int ret = play(CRIU_PROCESS), fd;

	if (ret < 0)
		return ret;
	fd = open("/dev/kfd", O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	(void)close(fd);
	return 0;
}

/* What a task gives to the others: a dma-buf, a share handle, or both. */
struct share {
	int fd;
	uint32_t handle[4];
};

static int give(const struct tasks *tasks, const struct task *owner, size_t index,
		struct share *share)
{
	struct client *client = tasks->clients[owner->number];
	int ret = play(process_of(tasks, owner));

	if (!ret && tasks->workloads[0].legacy)
		ret = client_export_handle(client, index, share->handle);
	if (!ret && tasks->workloads[0].legacy != WORKLOAD_LEGACY)
		ret = client_export(client, index, &share->fd);
	return ret;
}

static bool takes_handle(const struct task *task, const struct workload *owner)
{
	return owner->legacy == WORKLOAD_LEGACY ||
	       (owner->legacy == WORKLOAD_HALF_LEGACY && task->number % 2);
}

static int take(const struct tasks *tasks, struct task *task, const struct workload *owner,
		size_t index, const struct share *share)
{
	struct client *client = tasks->clients[task->number];
	int ret = play(process_of(tasks, task));

	return ret ? ret
		   : client_import(client, owner, index, share->fd,
				   takes_handle(task, owner) ? share->handle : NULL, task);
}

/* Shares buffer @index of @owner with all other tasks, or with @owner itself if it is the only
 * task. */
static int share_buffer(struct tasks *tasks, const struct task *owner, size_t index)
{
	const struct workload *workload = &tasks->workloads[owner->number];
	struct share share = { .fd = -1 };
	int ret = give(tasks, owner, index, &share);

	for (uint32_t i = 0; !ret && i < tasks->count; i++) {
		if (workload_imports(&tasks->workloads[i], owner->number))
			ret = take(tasks, &tasks->tasks[i], workload, index, &share);
	}
	if (share.fd >= 0)
		(void)close(share.fd);
	if (ret < 0 || workload_keeps(workload, index))
		return ret;
	ret = play(process_of(tasks, owner));
	return ret ? ret : client_release(tasks->clients[owner->number], workload, index);
}

static int share_buffers(struct tasks *tasks)
{
	int ret = 0;

	for (uint32_t i = 0; !ret && i < tasks->count; i++) {
		for (size_t index = 0; !ret && index < tasks->workloads[i].shared; index++) {
			if (workload_makes(&tasks->workloads[i], index))
				ret = share_buffer(tasks, &tasks->tasks[i], index);
		}
	}
	return ret;
}

int tasks_make(const struct workload *workload, struct tasks *ret_tasks)
{
	int ret = 0;

	*ret_tasks = (struct tasks){ .count = workload->tasks };
	for (uint32_t i = 0; !ret && i < workload->tasks; i++) {
		ret_tasks->workloads[i] = workload_of_task(workload, i);
		ret_tasks->tasks[i].number = i;
		ret = make_task(ret_tasks, &ret_tasks->tasks[i]);
	}
	if (!ret && workload->broker)
		ret = make_broker(ret_tasks);
	if (!ret)
		ret = share_buffers(ret_tasks);
	if (!ret && workload->tasks > 1)
		ret = fork_tasks(ret_tasks);
	return ret || workload->tasks == 1 ? ret : make_criu();
}

int tasks_save(const struct tasks *tasks, const char *directory)
{
	int ret = 0;

	for (uint32_t i = 0; !ret && i < tasks->count; i++) {
		ret = task_save(&tasks->tasks[i], directory);
		if (!ret)
			ret = play(process_of(tasks, &tasks->tasks[i]));
		if (!ret)
			ret = client_save_list(&tasks->workloads[i], directory);
	}
	return ret;
}

int tasks_verify(const struct tasks *tasks)
{
	int ret = 0;

	for (uint32_t i = 0; !ret && i < tasks->count; i++) {
		ret = play(process_of(tasks, &tasks->tasks[i]));
		if (!ret)
			ret = client_verify(&tasks->workloads[i]);
	}
	return ret;
}

static void end_task(struct task *task)
{
	if (task->pid > 0) {
		(void)kill(task->pid, SIGKILL);
		(void)waitpid(task->pid, NULL, 0);
	}
	task_done(task);
}

void tasks_end(struct tasks *tasks)
{
	for (uint32_t i = 0; i < tasks->count; i++) {
		if (tasks->clients[i])
			client_close(tasks->clients[i]);
		for (size_t j = 0; !tasks->clients[i] && j < tasks->tasks[i].num_files; j++)
			(void)close(tasks->tasks[i].files[j].fd);
		end_task(&tasks->tasks[i]);
	}
}
