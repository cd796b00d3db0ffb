// SPDX-License-Identifier: GPL-2.0-only
/*
 * Large buffers and untidy ends: sizes given in MiB on the command line, then a process that dies
 * with its queue running. Prints how fast things go, as emulation is slow. */
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

#include "kfd.h"

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void report(const char *what, uint64_t bytes, double start)
{
	double seconds = now() - start;

	printf("  %s: %.2f s, %.0f MB/s\n", what, seconds, (double)bytes / 1e6 / seconds);
}

static void large(struct kfd *kfd, uint64_t bytes, HsaEvent *event)
{
	uint32_t *vram = kfd_alloc(kfd->gpus[0], bytes, 1),
		 *gtt = kfd_alloc(kfd->gpus[0], bytes, 0);
	struct queue queue;
	double start = now();

	fill_pattern(vram, bytes, 1);
	report("fill VRAM by CPU", bytes, start);
	start = now();
	CHECK(has_pattern(vram, bytes, 1));
	report("check VRAM by CPU", bytes, start);
	queue_open(&queue, kfd->gpus[0]);
	start = now();
	queue_copy(&queue, gtt, vram, bytes);
	queue_wait(&queue, event);
	report("copy VRAM to GTT", bytes, start);
	start = now();
	CHECK(has_pattern(gtt, bytes, 1));
	report("first touch and check of GTT by CPU", bytes, start);
	queue_close(&queue);
	kfd_free(vram, bytes);
	kfd_free(gtt, bytes);
}

static int die_running(void)
{
	static struct kfd kfd;
	struct queue queue;
	uint32_t *user;

	kfd_open(&kfd);
	user = kfd_alloc_user(16 << 20);
	queue_open(&queue, kfd.gpus[kfd.num_gpus - 1]);
	for (;;) {
		queue_copy(&queue, user, user + (2 << 20), 8 << 20);
		queue_ring_doorbell(&queue);
	}
	return 0;
}

int main(int argc, char **argv)
{
	static struct kfd kfd;
	int rounds, status;
	pid_t pid;

	sim_write("violations", "0");
	for (rounds = 0; rounds < 3; rounds++) {
		pid = fork();
		CHECK(pid >= 0);
		if (pid == 0)
			_exit(die_running());
		usleep(300000);
		CHECK_INT(waitpid(pid, &status, WNOHANG), 0);
		CHECK_INT(kill(pid, SIGKILL), 0);
		CHECK_INT(waitpid(pid, &status, 0), pid);
	}
	kfd_open(&kfd);
	large(&kfd, (argc > 1 ? strtoull(argv[1], NULL, 0) : 64) << 20, event_new());
	expect_violations(0);
	printf("kfd_large: ok\n");
	return 0;
}
