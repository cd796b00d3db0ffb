// SPDX-License-Identifier: GPL-2.0-only
/* Hands the contents of a restored task's BOs to CRIU's main process: both ends of the protocol of
 * the header. What is loaded is the content unit's business, and what comes of a task that fails
 * the restore unit's. */
#include "restore/handoff.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "amdgpu_plugin_util.h"
#include "criu/host.h"
#include "criu/log.h"
#include "image/image.h"
#include "restore/message.h"

/* GPUs, of all tasks together, that are worked for at once. */
#define GPUS_AT_ONCE 8

/* Descriptors of ours are numbered from here, or from the limit where that can be raised. */
#define LOWEST_FD 512

/* Jobs and BOs beyond that come from no plugin: KFD has at most 64
 * GPUs (MAX_GPU_INSTANCE in kfd_priv.h). */
#define JOBS_MAX 64
#define BOS_MAX  (1u << 26)

/* A task that has handoff_task over, or tried to. */
struct handoff_task {
	struct handoff_task *next;
	pid_t pid;
	struct content_job *jobs;
	size_t num_jobs;
	struct content_run *run;
	int ret;
};

struct handoff {
	struct content_settings settings;
	/* How many more GPUs may load at the same time. */
	sem_t gpu_limit;
	/* The main process's end of the gate, -1 when closed, and what the descriptor
	 * store calls the other. */
	pthread_mutex_t lock;
	int listen_sock;
	int store_id;
	/* As it was before descriptors came. */
	struct rlimit old_limit;
	bool raised_limit;
	pthread_t listener;
	bool listening;
	/* The listener posts @ready once and for all: it listens, or @ready_ret says why not. */
	sem_t ready;
	int ready_ret;
	/* Of the listener while it runs, of the main thread afterwards. */
	struct handoff_task *tasks;
	int ret;
};

/* A task's side. */

static int send_bos(int socket, struct message *message, const struct content_job *job,
		    size_t first)
{
	size_t left = job->num_bos - first;
	size_t count = left < MESSAGE_FDS_MAX ? left : MESSAGE_FDS_MAX;
	int fds[MESSAGE_FDS_MAX];

	/* cppcheck-suppress knownConditionTrueFalse ; there is one left, or this is not called */
	for (size_t i = 0; i < count; i++) {
		const struct content_bo *bo = &job->bos[first + i];

		message->bos[i] = (struct message_bo){ bo->size, bo->checksum };
		fds[i] = bo->dmabuf_fd;
	}
	return message_send(socket, message, MESSAGE_BOS, count * sizeof(*message->bos), fds,
			    count);
}

static int send_job(int socket, struct message *message, const struct content_job *job)
{
	int ret;

	message->job = (struct message_job){
		.gpu_id = job->gpu_id,
		.render_minor = job->render_minor,
		.num_bos = job->num_bos,
		.streamed = job->streamed,
		.has_checksums = job->has_checksums,
		.has_image = job->image_fd >= 0,
	};
	ret = message_send(socket, message, MESSAGE_JOB, sizeof(message->job), &job->image_fd,
			   job->image_fd >= 0);
	for (size_t i = 0; !ret && i < job->num_bos; i += MESSAGE_FDS_MAX)
		ret = send_bos(socket, message, job, i);
	return ret;
}

static int send_jobs(int listen_sock, const struct content_job *jobs, size_t num_jobs)
{
	_cleanup_free_ struct message *message = calloc(1, sizeof(*message));
	_cleanup_close_ int own = -1, theirs = -1;
	int pair[2], ret;

	if (!message)
		return -ENOMEM;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	own = pair[0];
	theirs = pair[1];
	ret = message_send(listen_sock, message, MESSAGE_HELLO, 0, &theirs, 1);
	/* With this one closed, sends fail when the main process's is. */
	fd_close(&theirs);
	for (size_t i = 0; !ret && i < num_jobs; i++)
		ret = send_job(own, message, &jobs[i]);
	return ret < 0 ? ret : message_send(own, message, MESSAGE_END, 0, NULL, 0);
}

int handoff_send(const struct handoff *handoff, const struct content_job *jobs, size_t num_jobs)
{
	_cleanup_close_ int listen_sock = host_fetch_fd(handoff->store_id);
	int ret = listen_sock < 0 ? listen_sock : send_jobs(listen_sock, jobs, num_jobs);

	return ret < 0 ? log_error(ret, "contents: cannot hand them to CRIU's main process") : 0;
}

/* The main process's side. */

/* Descriptors stay out of the way of those whose numbers CRIU chooses. */
static int move_up(int *fds, size_t num_fds, int lowest)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < num_fds; i++)
		ret = fd_move_up(&fds[i], lowest);
	return ret;
}

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

/* Room for the descriptors of a job: a number from which on CRIU chooses none for its own, or
 * -errno. CRIU's are small, or just below the limit that it started with. */
static int make_room(struct handoff *handoff, size_t num_bos)
{
	size_t needed = num_bos + MESSAGE_FDS_MAX + 1;
	struct rlimit old, raised;
	int ret;

	if (getrlimit(RLIMIT_NOFILE, &old) < 0)
		return -errno;
	ret = nofile_raise(old.rlim_cur + needed, &old);
	if (ret < 0)
		return ret;
	if (!handoff->raised_limit) {
		handoff->old_limit = old;
		handoff->raised_limit = true;
	}
	if (getrlimit(RLIMIT_NOFILE, &raised) < 0)
		return -errno;
	return raised.rlim_cur > old.rlim_cur + needed ? (int)old.rlim_cur : LOWEST_FD;
}

/* What no task of ours sends: contents are whole pages, and fit in a file. */
static bool is_possible(const struct message_bo *bo, uint64_t before)
{
	return bo->size % CONTENT_ALIGNMENT == 0 && before <= IMAGE_CONTENTS_MAX &&
	       bo->size <= IMAGE_CONTENTS_MAX - before;
}

/* Memory grows with what has come, whatever was announced. */
static int add_bos(struct content_job *job, const struct message_bo *bos, const int *fds,
		   size_t count, uint64_t *size)
{
	int ret;

	for (size_t i = 0; i < count; i++) {
		if (!is_possible(&bos[i], *size))
			return -EPROTO;
		*size += bos[i].size;
	}
	ret = array_grow(&job->bos, job->num_bos + count, sizeof(*job->bos));
	if (ret < 0)
		return ret;
	for (size_t i = 0; i < count; i++)
		job->bos[job->num_bos++] =
			(struct content_bo){ fds[i], bos[i].size, bos[i].checksum };
	return 0;
}

/* Fills in the job that was announced with @num_bos BOs. */
static int receive_bos(int socket, struct message *message, struct content_job *job,
		       uint64_t num_bos, int lowest)
{
	int fds[MESSAGE_FDS_MAX];
	uint64_t size = 0;
	pid_t pid;
	int ret = 0;

	while (!ret && job->num_bos < num_bos) {
		size_t count;

		ret = message_receive(socket, message, fds, &pid);
		if (ret < 0)
			return ret;
		count = message->header.num_fds;
		if (message->header.kind != MESSAGE_BOS || !count ||
		    count > num_bos - job->num_bos ||
		    message->header.length != count * sizeof(*message->bos))
			ret = -EPROTO;
		if (!ret)
			ret = move_up(fds, count, lowest);
		if (!ret)
			ret = add_bos(job, message->bos, fds, count, &size);
		if (ret < 0)
			message_close_fds(fds, count);
	}
	return ret;
}

/* Its BOs come later. */
static int add_job(struct handoff_task *task, const struct message_job *announced)
{
	struct content_job job = {
		.gpu_id = announced->gpu_id,
		.render_minor = announced->render_minor,
		.image_fd = -1,
		.has_checksums = announced->has_checksums,
	};

	/* Streams are read by the tasks themselves. */
	if (task->num_jobs == JOBS_MAX || announced->num_bos > BOS_MAX || announced->streamed)
		return -EPROTO;
	return array_append(&task->jobs, &task->num_jobs, sizeof(job), &job);
}

static int receive_job(struct handoff *handoff, int socket, struct message *message, const int *fds,
		       struct handoff_task *task)
{
	size_t num_fds = message->header.num_fds;
	uint64_t num_bos = message->job.num_bos;
	struct content_job *job;
	int lowest, ret;

	/* The byte that says whether there is one may say anything. */
	if (message->header.length != sizeof(message->job) || num_fds > 1 ||
	    num_fds != message->job.has_image) {
		message_close_fds(fds, num_fds);
		return -EPROTO;
	}
	ret = add_job(task, &message->job);
	if (ret < 0) {
		message_close_fds(fds, num_fds);
		return ret;
	}
	job = &task->jobs[task->num_jobs - 1];
	if (num_fds)
		job->image_fd = fds[0];
	lowest = make_room(handoff, num_bos);
	if (lowest < 0)
		return lowest;
	ret = num_fds ? fd_move_up(&job->image_fd, lowest) : 0;
	return ret < 0 ? ret : receive_bos(socket, message, job, num_bos, lowest);
}

/* All that a task sends. -ENODATA: it has ended before. */
static int receive_task(struct handoff *handoff, int socket, struct message *message,
			struct handoff_task *task)
{
	for (;;) {
		int fds[MESSAGE_FDS_MAX];
		pid_t pid;
		int ret = message_receive(socket, message, fds, &pid);

		if (ret < 0)
			return ret;
		if (message->header.kind == MESSAGE_JOB) {
			ret = receive_job(handoff, socket, message, fds, task);
			if (ret < 0)
				return ret;
			continue;
		}
		message_close_fds(fds, message->header.num_fds);
		return message->header.kind == MESSAGE_END ? 0 : -EPROTO;
	}
}

/* A task at the gate: nothing that it does wrong is the end of the others. */
static int accept_task(struct handoff *handoff, struct message *message, int socket, pid_t pid)
{
	struct handoff_task *task = calloc(1, sizeof(*task));

	if (!task)
		return -ENOMEM;
	task->pid = pid;
	task->next = handoff->tasks;
	handoff->tasks = task;
	task->ret = receive_task(handoff, socket, message, task);
	if (!task->ret)
		task->ret = content_start_load(task->jobs, task->num_jobs, &handoff->settings,
					       &handoff->gpu_limit, &task->run);
	return 0;
}

static bool has_come(const struct handoff *handoff, pid_t pid)
{
	const struct handoff_task *task = handoff->tasks;

	while (task && task->pid != pid)
		task = task->next;
	return task != NULL;
}

/* It is of no use, but the next one may be. */
static bool is_wrong_message(int error)
{
	return error == -EPROTO || error == -EMFILE;
}

/* What is no hello is not heard; a task whose hello it should have been will miss its contents. The
 * kernel says who comes, and each comes once. */
static int receive_hello(struct handoff *handoff, struct message *message)
{
	_cleanup_close_ int socket = -1;
	int fds[MESSAGE_FDS_MAX];
	pid_t pid = 0;
	int ret;

	ret = message_receive(handoff->listen_sock, message, fds, &pid);
	if (ret < 0)
		return is_wrong_message(ret) ? 0 : ret;
	if (message->header.kind != MESSAGE_HELLO || message->header.num_fds != 1) {
		message_close_fds(fds, message->header.num_fds);
		return 0;
	}
	socket = fds[0];
	if (pid <= 0 || has_come(handoff, pid))
		return 0;
	return accept_task(handoff, message, socket, pid);
}

/* Others may have a copy of the gate: CRIU's helpers are forked with all that it has open. */
static void drain_listen_sock(const struct handoff *handoff)
{
	_cleanup_free_ struct message *message = calloc(1, sizeof(*message));
	int fds[MESSAGE_FDS_MAX], ret = 0;
	pid_t pid;

	(void)shutdown(handoff->listen_sock, SHUT_RDWR);
	while (message && (!ret || is_wrong_message(ret))) {
		ret = message_receive(handoff->listen_sock, message, fds, &pid);
		if (!ret)
			message_close_fds(fds, message->header.num_fds);
	}
}

/* Who comes now, or has come and was not heard, fails instead of waiting. */
static void close_listen_sock(struct handoff *handoff)
{
	drain_listen_sock(handoff);
	(void)pthread_mutex_lock(&handoff->lock);
	fd_close(&handoff->listen_sock);
	(void)pthread_mutex_unlock(&handoff->lock);
}

/* Gives this thread, and the workers that it starts, a root and working directory of their own. A
 * process whose threads share them cannot enter a mount namespace (mntns_install() in the kernel's
 * fs/namespace.c: EINVAL), and CRIU's main thread does that while this one runs. */
static int leave_shared_fs(void)
{
	return unshare(CLONE_FS) < 0 ? -errno : 0;
}

/* Until nothing more can come. */
static void *listen_for_tasks(void *argument)
{
	struct handoff *handoff = argument;
	_cleanup_free_ struct message *message = calloc(1, sizeof(*message));
	int ret = message ? leave_shared_fs() : -ENOMEM;

	handoff->ready_ret = ret;
	(void)sem_post(&handoff->ready);
	while (!ret)
		ret = receive_hello(handoff, message);
	handoff->ret = ret == -ENODATA ? 0 : ret;
	close_listen_sock(handoff);
	return NULL;
}

/* Both ends of the way to the main process; the tasks' own is for the store. */
static int open_listen_sock(struct handoff *handoff, int *ret_theirs)
{
	int pair[2], on = 1;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	handoff->listen_sock = pair[0];
	*ret_theirs = pair[1];
	if (setsockopt(handoff->listen_sock, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) < 0)
		return -errno;
	/* Out of the way of descriptors whose numbers others choose; where that cannot be,
	 * no harm is done. */
	(void)fd_move_up(&handoff->listen_sock, LOWEST_FD);
	return 0;
}

int handoff_new(const struct content_settings *settings, struct handoff **ret_parallel)
{
	struct handoff *handoff = calloc(1, sizeof(*handoff));
	_cleanup_close_ int theirs = -1;
	int ret;

	if (!handoff)
		return -ENOMEM;
	handoff->settings = *settings;
	handoff->listen_sock = -1;
	(void)pthread_mutex_init(&handoff->lock, NULL);
	(void)sem_init(&handoff->ready, 0, 0);
	(void)sem_init(&handoff->gpu_limit, 0, GPUS_AT_ONCE);
	ret = open_listen_sock(handoff, &theirs);
	if (!ret) {
		handoff->store_id = host_store_fd(theirs);
		ret = handoff->store_id < 0 ? handoff->store_id : 0;
	}
	if (ret < 0) {
		handoff_free(handoff);
		return ret;
	}
	*ret_parallel = handoff;
	return 0;
}

int handoff_listen(struct handoff *handoff)
{
	int ret = thread_start(&handoff->listener, listen_for_tasks, handoff);

	if (ret < 0) {
		close_listen_sock(handoff);
		return ret;
	}
	while (sem_wait(&handoff->ready) < 0)
		; /* EINTR is the only error. */
	handoff->listening = !handoff->ready_ret;
	/* A listener that fails closes the gate itself. */
	if (!handoff->listening)
		(void)pthread_join(handoff->listener, NULL);
	return handoff->ready_ret;
}

void handoff_stop_listening(struct handoff *handoff)
{
	if (!handoff || !handoff->listening)
		return;
	/* What is at the gate already is still heard. */
	(void)pthread_mutex_lock(&handoff->lock);
	if (handoff->listen_sock >= 0)
		(void)shutdown(handoff->listen_sock, SHUT_RD);
	(void)pthread_mutex_unlock(&handoff->lock);
	(void)pthread_join(handoff->listener, NULL);
	handoff->listening = false;
}

static struct handoff_task *take_task(struct handoff *handoff, pid_t pid)
{
	for (struct handoff_task **at = &handoff->tasks; *at; at = &(*at)->next) {
		struct handoff_task *task = *at;

		if (task->pid != pid)
			continue;
		*at = task->next;
		return task;
	}
	return NULL;
}

int handoff_finish(struct handoff *handoff, pid_t pid)
{
	struct handoff_task *task;
	int ret;

	handoff_stop_listening(handoff);
	task = take_task(handoff, pid);
	if (!task)
		return log_error(handoff->ret ? handoff->ret : -EPROTO,
				 "process %d: its contents did not arrive", pid);
	if (task->run)
		ret = content_finish(task->run);
	else
		ret = log_error(task->ret, "process %d: its contents did not arrive", pid);
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
	if (handoff->raised_limit)
		nofile_restore(&handoff->old_limit);
	(void)sem_destroy(&handoff->gpu_limit);
	(void)sem_destroy(&handoff->ready);
	(void)pthread_mutex_destroy(&handoff->lock);
	free(handoff);
}
