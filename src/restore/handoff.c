// SPDX-License-Identifier: GPL-2.0-only
/* Hands the contents of a task's BOs to CRIU's main process, which loads them while the task goes
 * on. This file has both ends; handoff_message.c has the messages. */
#include "restore/handoff.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "amdgpu_plugin_util.h"
#include "criu/host.h"
#include "criu/log.h"
#include "restore/handoff_message.h"

/* A task seen on the socket. */
struct handoff_task {
	struct handoff_task *next;
	pid_t pid;
	struct content_job *jobs;
	size_t num_jobs;
	/* The number from which on CRIU chooses no descriptor. */
	int lowest_fd;
	/* NULL if the load has not begun: the task has not sent END, or because of @ret. */
	struct content_run *run;
	int ret;
};

struct handoff {
	struct content_settings settings;
	struct content_totals *totals;
	/* How many more GPUs may load at the same time. */
	sem_t gpu_limit;
	/* The main process's end of the pair, or -1 when closed. */
	int listen_sock;
	/* The tasks' end, in CRIU's descriptor store. */
	int store_id;
	/* RLIMIT_NOFILE before the first descriptors came. */
	struct rlimit old_limit;
	pthread_t listener;
	bool listening;
	/* The listener posts @ready once. If @ready_ret is not 0, it does not listen. */
	sem_t ready;
	int ready_ret;
	/* The listener uses these while it runs, the main thread uses them afterwards. */
	struct handoff_task *tasks;
	int ret;
};

/* In a task. */

static int send_bos(int socket, struct message *message, const struct content_job *job,
		    size_t first)
{
	size_t remaining = job->num_bos - first;
	size_t count = remaining < MESSAGE_FDS_MAX ? remaining : MESSAGE_FDS_MAX;
	int fds[MESSAGE_FDS_MAX];

	/* cppcheck-suppress knownConditionTrueFalse ; send_job() has at least one more BO */
	for (size_t i = 0; i < count; i++) {
		message->bos[i] = job->bos[first + i];
		fds[i] = message->bos[i].dmabuf_fd;
	}
	return handoff_message_send(socket, message, MESSAGE_BOS, fds, count);
}

static int send_job(int socket, struct message *message, const struct content_job *job)
{
	int ret;

	message->job = *job;
	ret = handoff_message_send(socket, message, MESSAGE_JOB, &job->image_fd,
				   job->image_fd >= 0);
	for (size_t i = 0; !ret && i < job->num_bos; i += MESSAGE_FDS_MAX)
		ret = send_bos(socket, message, job, i);
	return ret;
}

static int send_jobs(int socket, const struct content_job *jobs, size_t num_jobs)
{
	_cleanup_free_ struct message *message = calloc(1, sizeof(*message));
	int ret = message ? 0 : -ENOMEM;

	for (size_t i = 0; !ret && i < num_jobs; i++)
		ret = send_job(socket, message, &jobs[i]);
	return ret < 0 ? ret : handoff_message_send(socket, message, MESSAGE_END, NULL, 0);
}

int handoff_send(const struct handoff *handoff, const struct content_job *jobs, size_t num_jobs)
{
	_cleanup_close_ int socket = host_fetch_fd(handoff->store_id);
	int ret = socket < 0 ? socket : send_jobs(socket, jobs, num_jobs);

	return ret < 0 ? log_error(ret, "contents: cannot hand them to CRIU's main process") : 0;
}

/* In CRIU's main process. */

static void free_task(struct handoff_task *task)
{
	for (size_t i = 0; i < task->num_jobs; i++) {
		struct content_job *job = &task->jobs[i];

		for (size_t bo = 0; bo < job->num_bos; bo++)
			fd_close(&job->bos[bo].dmabuf_fd);
		fd_close(&job->image_fd);
		free(job->bos);
	}
	free(task->jobs);
	free(task);
}

/* Raises RLIMIT_NOFILE by the number of descriptors of a job. CRIU's own have small numbers, or
 * numbers just below the limit that CRIU started with. */
static int make_room(struct handoff *handoff, struct handoff_task *task, size_t num_bos)
{
	size_t needed = num_bos + MESSAGE_FDS_MAX + 1;
	struct rlimit old, raised;
	int ret;

	if (getrlimit(RLIMIT_NOFILE, &old) < 0)
		return -errno;
	ret = nofile_raise(old.rlim_cur + needed, &handoff->old_limit);
	if (ret < 0)
		return ret;
	if (getrlimit(RLIMIT_NOFILE, &raised) < 0)
		return -errno;
	task->lowest_fd =
		raised.rlim_cur > old.rlim_cur + needed ? (int)old.rlim_cur : HOST_LOWEST_FD;
	return 0;
}

static int add_job(struct handoff *handoff, struct handoff_task *task,
		   const struct content_job *sent, struct message_extra *extra)
{
	struct content_job job = *sent;
	int ret;

	job.bos = NULL;
	job.num_bos = 0;
	job.image_fd = extra->num_fds ? extra->fds[0] : -1;
	ret = array_append(&task->jobs, &task->num_jobs, sizeof(job), &job);

	if (ret < 0)
		return ret;
	extra->num_fds = 0;
	ret = make_room(handoff, task, sent->num_bos);
	return !ret && job.image_fd >= 0
		       ? fd_move_up(&task->jobs[task->num_jobs - 1].image_fd, task->lowest_fd)
		       : ret;
}

/* The BOs are of the last job. */
static int add_bos(struct handoff_task *task, const struct content_bo *bos,
		   struct message_extra *extra)
{
	struct content_job *job;
	int ret;

	if (!task->num_jobs)
		return -EPROTO;
	job = &task->jobs[task->num_jobs - 1];
	ret = array_grow(&job->bos, job->num_bos + extra->num_fds, sizeof(*job->bos));
	for (size_t i = 0; !ret && i < extra->num_fds; i++)
		ret = fd_move_up(&extra->fds[i], task->lowest_fd);
	if (ret < 0)
		return ret;
	for (size_t i = 0; i < extra->num_fds; i++) {
		job->bos[job->num_bos] = bos[i];
		job->bos[job->num_bos++].dmabuf_fd = extra->fds[i];
	}
	extra->num_fds = 0;
	return 0;
}

/* Takes descriptors out of @extra. */
static int handle(struct handoff *handoff, struct handoff_task *task, const struct message *message,
		  struct message_extra *extra)
{
	switch (message->kind) {
	case MESSAGE_JOB:
		return add_job(handoff, task, &message->job, extra);
	case MESSAGE_BOS:
		return add_bos(task, message->bos, extra);
	default:
		return content_start_load(task->jobs, task->num_jobs, &handoff->settings,
					  &handoff->gpu_limit, &task->run);
	}
}

/* The pointer in the list that points to the task. If the task is not in the list: the pointer at
 * the end of the list, which is NULL. */
static struct handoff_task **find_task(struct handoff *handoff, pid_t pid)
{
	struct handoff_task **at = &handoff->tasks;

	while (*at && (*at)->pid != pid)
		at = &(*at)->next;
	return at;
}

/* An error of one task stays in its struct handoff_task, so that other tasks go on. */
static int receive(struct handoff *handoff, struct message *message)
{
	struct message_extra extra;
	int ret = handoff_message_receive(handoff->listen_sock, message, &extra);
	struct handoff_task **task;

	if (ret < 0 && ret != -EMFILE)
		return ret;
	task = find_task(handoff, extra.sender);
	if (!*task)
		*task = calloc(1, sizeof(**task));
	if (*task) {
		(*task)->pid = extra.sender;
		if (!ret && !(*task)->ret)
			ret = handle(handoff, *task, message, &extra);
		if (!(*task)->ret)
			(*task)->ret = ret;
	}
	handoff_message_close_fds(&extra);
	return *task ? 0 : -ENOMEM;
}

/* Returns when the main process shuts the socket down, or on an error. Then later sends fail
 * instead of blocking: CRIU's helper processes inherit a copy of the socket, so closing it is not
 * enough. */
static void *listen_for_tasks(void *argument)
{
	struct handoff *handoff = argument;
	_cleanup_free_ struct message *message = calloc(1, sizeof(*message));
	int ret = message ? thread_unshare_fs() : -ENOMEM;

	handoff->ready_ret = ret;
	(void)sem_post(&handoff->ready);
	while (!ret)
		ret = receive(handoff, message);
	handoff->ret = ret == -ENODATA ? 0 : ret;
	(void)shutdown(handoff->listen_sock, SHUT_RDWR);
	return NULL;
}

/* *@ret_task_end is for CRIU's descriptor store. */
static int open_listen_sock(struct handoff *handoff, int *ret_task_end)
{
	int pair[2], on = 1;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	handoff->listen_sock = pair[0];
	*ret_task_end = pair[1];
	if (setsockopt(handoff->listen_sock, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) < 0)
		return -errno;
	/* CRIU may choose low numbers for its own descriptors. A failure here does no harm. */
	(void)fd_move_up(&handoff->listen_sock, HOST_LOWEST_FD);
	return 0;
}

int handoff_new(const struct content_settings *settings, struct content_totals *totals,
		struct handoff **ret_handoff)
{
	struct handoff *handoff = calloc(1, sizeof(*handoff));
	_cleanup_close_ int task_end = -1;
	int ret;

	if (!handoff)
		return -ENOMEM;
	handoff->settings = *settings;
	handoff->totals = totals;
	handoff->listen_sock = -1;
	(void)sem_init(&handoff->ready, 0, 0);
	(void)sem_init(&handoff->gpu_limit, 0, CONTENT_GPUS_AT_ONCE);
	ret = open_listen_sock(handoff, &task_end);
	if (!ret) {
		handoff->store_id = host_store_fd(task_end);
		ret = handoff->store_id < 0 ? handoff->store_id : 0;
	}
	if (ret < 0) {
		handoff_free(handoff);
		return ret;
	}
	*ret_handoff = handoff;
	return 0;
}

/* The kernel starts no thread of a process whose children are to be in another PID namespace
 * (copy_process()). CRIU has entered such a one for the tasks if it belongs to other containers,
 * too, and has forked all of them. */
static int start_in_own_namespace(struct handoff *handoff)
{
	_cleanup_close_ int own = open("/proc/self/ns/pid", O_RDONLY | O_CLOEXEC);
	_cleanup_close_ int entered = open("/proc/self/ns/pid_for_children", O_RDONLY | O_CLOEXEC);
	int ret;

	if (own < 0 || entered < 0 || setns(own, CLONE_NEWPID) < 0)
		return -errno;
	ret = thread_start(&handoff->listener, listen_for_tasks, handoff);
	(void)setns(entered, CLONE_NEWPID);
	return ret;
}

int handoff_listen(struct handoff *handoff)
{
	int ret = thread_start(&handoff->listener, listen_for_tasks, handoff);

	if (ret == -EINVAL)
		ret = start_in_own_namespace(handoff);
	handoff->listening = !ret;
	while (!ret && sem_wait(&handoff->ready) < 0)
		; /* EINTR is the only error. */
	if (!ret)
		ret = handoff->ready_ret;
	if (ret < 0) {
		(void)shutdown(handoff->listen_sock, SHUT_RDWR);
		handoff_stop_listening(handoff);
	}
	return ret;
}

void handoff_stop_listening(struct handoff *handoff)
{
	if (!handoff || !handoff->listening)
		return;
	/* The listener still receives the messages that are pending. */
	(void)shutdown(handoff->listen_sock, SHUT_RD);
	(void)pthread_join(handoff->listener, NULL);
	handoff->listening = false;
	fd_close(&handoff->listen_sock);
}

int handoff_finish(struct handoff *handoff, pid_t pid)
{
	struct handoff_task **place, *task;
	int ret;

	handoff_stop_listening(handoff);
	place = find_task(handoff, pid);
	task = *place;
	if (!task)
		return log_error(handoff->ret ? handoff->ret : -EPROTO,
				 "process %d: its contents did not arrive", pid);
	*place = task->next;
	ret = task->run ? content_finish(task->run)
			: log_error(task->ret ? task->ret : -ENODATA,
				    "process %d: its contents did not arrive", pid);
	if (!ret)
		content_totals_add(handoff->totals, task->jobs, task->num_jobs);
	free_task(task);
	return ret;
}

void handoff_free(struct handoff *handoff)
{
	if (!handoff)
		return;
	handoff_stop_listening(handoff);
	for (struct handoff_task *task = handoff->tasks; task; task = task->next) {
		if (task->run)
			content_stop(task->run);
	}
	while (handoff->tasks) {
		struct handoff_task *task = handoff->tasks;

		handoff->tasks = task->next;
		if (task->run)
			content_cancel(task->run);
		free_task(task);
	}
	fd_close(&handoff->listen_sock);
	nofile_restore(&handoff->old_limit);
	(void)sem_destroy(&handoff->gpu_limit);
	(void)sem_destroy(&handoff->ready);
	free(handoff);
}
