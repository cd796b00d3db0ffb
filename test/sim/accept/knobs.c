// SPDX-License-Identifier: GPL-2.0-only
/*
 * The switches in debugfs: that each changes what a client sees, and that all is as before once it
 * is set back. The faults by ioctl are used by drm_copy.c and criu_self.c. */
#include <dirent.h>
#include <linux/kfd_ioctl.h>
#include <sys/ioctl.h>
#include <time.h>

#include "kfd.h"

#define MIB          (1ull << 20)
#define LIST_HANDLES 0xc0106459u

static int kfd_fd, render_fd;

static int find_fd(const char *prefix)
{
	char path[64], target[64] = "";
	int fd;

	for (fd = 3; fd < 1024; fd++) {
		memset(target, 0, sizeof(target));
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		if (readlink(path, target, sizeof(target) - 1) > 0 &&
		    !strncmp(target, prefix, strlen(prefix)))
			return fd;
	}
	return -1;
}

static int count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int count = 0;

	while (readdir(dir))
		count++;
	closedir(dir);
	return count;
}

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static int criu(struct kfd_ioctl_criu_args *args, uint32_t op)
{
	args->op = op;
	return ioctl(kfd_fd, AMDKFD_IOC_CRIU_OP, args) < 0 ? -errno : 0;
}

static HSAKMT_STATUS try_alloc(struct kfd *kfd, int vram)
{
	HsaMemFlags flags = { .Value = 0 };
	HSAKMT_STATUS status;
	void *memory;

	flags.ui32.HostAccess = 1;
	flags.ui32.NonPaged = 1;
	status = hsaKmtAllocMemory(vram ? kfd->gpus[0] : 0, 4 * MIB, flags, &memory);
	if (status == HSAKMT_STATUS_SUCCESS)
		CHECK_INT(hsaKmtFreeMemory(memory, 4 * MIB), HSAKMT_STATUS_SUCCESS);
	return status;
}

static void test_limits(struct kfd *kfd)
{
	CHECK_INT(try_alloc(kfd, 0), HSAKMT_STATUS_SUCCESS);
	sim_write("system_mem_limit", "1048576");
	CHECK(try_alloc(kfd, 0) != HSAKMT_STATUS_SUCCESS);
	CHECK_INT(try_alloc(kfd, 1), HSAKMT_STATUS_SUCCESS);
	sim_write("system_mem_limit", "68719476736");
	CHECK_INT(try_alloc(kfd, 0), HSAKMT_STATUS_SUCCESS);
	sim_write("vram_limit", "1048576");
	CHECK(try_alloc(kfd, 1) != HSAKMT_STATUS_SUCCESS);
	sim_write("vram_limit", "0");
	CHECK_INT(try_alloc(kfd, 1), HSAKMT_STATUS_SUCCESS);
}

static void test_version(void)
{
	struct kfd_ioctl_get_version_args args;

	CHECK_INT(ioctl(kfd_fd, AMDKFD_IOC_GET_VERSION, &args), 0);
	CHECK_INT(args.minor_version, 18);
	sim_write("kfd_minor", "7");
	CHECK_INT(ioctl(kfd_fd, AMDKFD_IOC_GET_VERSION, &args), 0);
	CHECK_INT(args.minor_version, 7);
	sim_write("kfd_minor", "18");
}

static void test_speed(struct kfd *kfd, HsaEvent *event)
{
	uint8_t *memory = kfd_alloc(kfd->gpus[0], MIB, 1);
	struct queue queue;
	double start;

	queue_open(&queue, kfd->gpus[0]);
	sim_write("engine_bytes_per_s", "1048576");
	start = now();
	queue_copy(&queue, memory, memory + MIB / 2, MIB / 2);
	queue_wait(&queue, event);
	sim_write("engine_bytes_per_s", "0");
	CHECK(now() - start > 0.4);
	queue_close(&queue);
	kfd_free(memory, MIB);
}

/* Only through /proc: a fault would be a signal. */
static void test_invisible(struct kfd *kfd)
{
	uint8_t *memory = kfd_alloc(kfd->gpus[0], MIB, 1);
	int fd = open("/proc/self/mem", O_RDONLY);
	char byte;

	CHECK_INT(pread(fd, &byte, 1, (off_t)memory), 1);
	sim_write("invisible_vram", "1");
	CHECK_INT(pread(fd, &byte, 1, (off_t)memory), -1);
	CHECK_INT(errno, EIO);
	sim_write("invisible_vram", "0");
	CHECK_INT(pread(fd, &byte, 1, (off_t)memory), 1);
	close(fd);
	kfd_free(memory, MIB);
}

static void test_criu(struct kfd *kfd)
{
	static struct kfd_criu_device_bucket devices[64];
	static struct kfd_criu_bo_bucket bos[4096];
	struct kfd_ioctl_criu_args args = { .op = 0 }, small = { .op = 0 };
	void *memory = kfd_alloc(kfd->gpus[0], MIB, 1); /* beside the event page */
	int fds = count_fds();
	double start;

	CHECK_INT(criu(&args, KFD_CRIU_OP_PROCESS_INFO), 0);
	CHECK_INT(criu(&small, KFD_CRIU_OP_UNPAUSE), 0);
	sim_write("bo_record_size", "80");
	sim_write("evict_delay_ms", "100");
	start = now();
	CHECK_INT(criu(&small, KFD_CRIU_OP_PROCESS_INFO), 0);
	CHECK(now() - start > 0.05); /* ticks of an emulated machine are coarse */
	sim_write("evict_delay_ms", "0");
	CHECK_INT(args.priv_data_size - small.priv_data_size, 192 * args.num_bos);
	small.devices = (uint64_t)devices;
	small.bos = (uint64_t)bos;
	small.priv_data = (uint64_t)calloc(1, small.priv_data_size);
	sim_write("faults", "checkpoint:FD 2 -24");
	CHECK_INT(criu(&small, KFD_CRIU_OP_CHECKPOINT), -EMFILE);
	CHECK_INT(count_fds(), fds);
	CHECK_INT(criu(&small, KFD_CRIU_OP_CHECKPOINT), 0);
	CHECK(count_fds() > fds);
	CHECK_INT(criu(&small, KFD_CRIU_OP_UNPAUSE), 0);
	sim_write("bo_record_size", "272");
	sim_write("resume_fail", "5");
	args.pid = (uint32_t)getpid();
	CHECK_INT(criu(&args, KFD_CRIU_OP_RESUME), -EIO);
	sim_write("resume_fail", "0");
	free((void *)small.priv_data);
	kfd_free(memory, MIB);
}

static void test_listing(void)
{
	uint64_t args[2] = { 0, 0 };

	CHECK_INT(ioctl(render_fd, LIST_HANDLES, args), -1);
	CHECK_INT(errno, EINVAL);
	sim_write("list_handles", "1");
	CHECK_INT(ioctl(render_fd, LIST_HANDLES, args), 0);
	CHECK_INT((uint32_t)args[1], 0); /* what KFD handed out has no handle in this file */
	sim_write("list_handles", "0");
}

int main(void)
{
	static struct kfd kfd;
	HsaEvent *event;

	sim_write("violations", "0");
	kfd_open(&kfd);
	event = event_new();
	kfd_fd = find_fd("/dev/kfd");
	render_fd = find_fd("/dev/dri/renderD");
	CHECK(kfd_fd >= 0 && render_fd >= 0);
	test_version();
	test_limits(&kfd);
	test_speed(&kfd, event);
	test_invisible(&kfd);
	test_criu(&kfd);
	test_listing();
	expect_violations(0);
	printf("knobs: ok\n");
	return 0;
}
