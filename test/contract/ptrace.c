/* SPDX-License-Identifier: GPL-2.0-only */
/* CRIU_OP by others than the owner: only the very thread that traces the process, and only with the
 * capability; and what becomes of a process whose dumper died. */
#include <errno.h>
#include <linux/capability.h>
#include <pthread.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "contract.h"
#include "criu_op.h"
#include "raw_kfd.h"

enum command {
	COMMAND_SUBMIT,   /* some packets */
	COMMAND_RESTS,    /* does the queue rest? */
	COMMAND_FINISHES, /* does it get to the end? */
};

static int target_obey(struct raw_queue *queue, volatile uint64_t *counter, long command)
{
	switch (command) {
	case COMMAND_SUBMIT:
		for (int i = 0; i < 100; i++)
			raw_queue_add(queue, counter, 1);
		raw_queue_ring(queue);
		return 0;
	case COMMAND_RESTS:
		return raw_queue_rests(queue);
	default:
		return raw_queue_wait(queue);
	}
}

/* The process to be dumped: tells the number of its /dev/kfd, then obeys until the line is cut. */
static void target_main(struct peer *peer)
{
	struct raw_process process;
	struct raw_queue queue;
	struct raw_bo host;
	long command;

	EXPECT(raw_open_acquired(&process), 0);
	EXPECT(raw_create_queue(&process, 0, &queue), 0);
	EXPECT(raw_alloc_mapped(&process, 0, RAW_GTT, 4096, &host), 0);
	peer_send(peer, process.kfd);
	while (peer_receive(peer, &command) == 0)
		peer_send(peer, target_obey(&queue, (volatile uint64_t *)host.address, command));
}

static long target_command(struct peer *target, enum command command)
{
	long answer = -EPIPE;

	peer_send(target, command);
	(void)peer_receive(target, &answer);
	return answer;
}

/* A duplicate of the target's /dev/kfd, as CRIU gets one. */
static void target_get_kfd(struct peer *target, int *ret_kfd)
{
	long number;
	int pidfd;

	EXPECT(peer_receive(target, &number), 0);
	pidfd = (int)syscall(SYS_pidfd_open, target->pid, 0);
	EXPECT_TRUE(pidfd >= 0);
	*ret_kfd = (int)syscall(SYS_pidfd_getfd, pidfd, (int)number, 0);
	close(pidfd);
	EXPECT_TRUE(*ret_kfd >= 0);
}

static int seize(pid_t pid)
{
	return ptrace(PTRACE_SEIZE, pid, NULL, NULL) < 0 ? -errno : 0;
}

static int detach(pid_t pid)
{
	int status;

	if (ptrace(PTRACE_INTERRUPT, pid, NULL, NULL) < 0)
		return -errno;
	if (waitpid(pid, &status, __WALL) != pid || !WIFSTOPPED(status))
		return -ECHILD;
	return ptrace(PTRACE_DETACH, pid, NULL, NULL) < 0 ? -errno : 0;
}

static int set_effective(bool on)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &header, data) < 0)
		return -errno;
	for (int i = 0; i < 2; i++)
		data[i].effective = on ? data[i].permitted : 0;
	return syscall(SYS_capset, &header, data) < 0 ? -errno : 0;
}

struct attempt {
	int kfd;
	struct criu_image *image;
	int ret;
};

static void *attempt_info(void *argument)
{
	struct attempt *attempt = argument;

	attempt->ret = criu_process_info(attempt->kfd, attempt->image);
	return NULL;
}

static int info_from_thread(int kfd, struct criu_image *image)
{
	struct attempt attempt = { .kfd = kfd, .image = image };
	pthread_t thread;

	if (pthread_create(&thread, NULL, attempt_info, &attempt))
		return -EAGAIN;
	pthread_join(thread, NULL);
	return attempt.ret;
}

RULE(ptrace_only_the_tracing_thread_with_capability_dumps)
{
	struct kfd_ioctl_get_version_args version = { 0 };
	struct criu_image *image = criu_image_new();
	struct peer target;
	int kfd;

	peer_start(target_main, &target);
	target_get_kfd(&target, &kfd);
	EXPECT(criu_process_info(kfd, image), -EBADF);
	EXPECT(seize(target.pid), 0);
	EXPECT(raw_ioctl(kfd, AMDKFD_IOC_GET_VERSION, &version), -EBADF);
	EXPECT(info_from_thread(kfd, image), -EBADF);
	EXPECT(set_effective(false), 0);
	EXPECT(criu_process_info(kfd, image), -EACCES);
	EXPECT(set_effective(true), 0);
	EXPECT(criu_process_info(kfd, image), 0);
	EXPECT(image->args.pid, target.pid);
	EXPECT(criu_checkpoint(kfd, image), 0);
	criu_close_dmabufs(image);
	EXPECT(target_command(&target, COMMAND_SUBMIT), 0);
	EXPECT(target_command(&target, COMMAND_RESTS), 0);
	EXPECT(criu_unpause(kfd), 0);
	EXPECT(target_command(&target, COMMAND_FINISHES), 0);
	EXPECT(detach(target.pid), 0);
	EXPECT(criu_process_info(kfd, image), -EBADF);
	EXPECT(peer_join(&target), 0);
}

static pid_t victim;
static int victim_kfd;

static void dumper_main(struct peer *peer)
{
	struct criu_image *image = criu_image_new();

	(void)peer;
	EXPECT(seize(victim), 0);
	EXPECT(criu_process_info(victim_kfd, image), 0);
	EXPECT(criu_checkpoint(victim_kfd, image), 0);
	/* It dies without UNPAUSE. */
	raise(SIGKILL);
}

RULE(ptrace_a_dead_dumper_leaves_the_target_stopped)
{
	struct peer target, dumper;

	peer_start(target_main, &target);
	target_get_kfd(&target, &victim_kfd);
	victim = target.pid;
	peer_start(dumper_main, &dumper);
	EXPECT(peer_join(&dumper), 128 + SIGKILL);
	EXPECT(target_command(&target, COMMAND_SUBMIT), 0);
	EXPECT(target_command(&target, COMMAND_RESTS), 0);
	/* Another tracer can help. */
	EXPECT(criu_unpause(victim_kfd), -EBADF);
	EXPECT(seize(target.pid), 0);
	EXPECT(criu_unpause(victim_kfd), 0);
	EXPECT(target_command(&target, COMMAND_FINISHES), 0);
	EXPECT(detach(target.pid), 0);
	EXPECT(peer_join(&target), 0);
}
