/* SPDX-License-Identifier: GPL-2.0-only */
/* /sys/class/kfd/kfd/proc: what it says of a process, of its queues, and of the contexts that
 * CREATE_PROCESS makes (Linux 7.3). */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "accept.h"
#include "raw_kfd.h"

#define PROC "/sys/class/kfd/kfd/proc"
#define MIB  (1u << 20)
/* AMDKFD_IOC_CREATE_PROCESS of Linux 7.3 */
#define CREATE_PROCESS _IO('K', 0x27)

static bool exists(const char *file)
{
	char path[128];

	snprintf(path, sizeof(path), PROC "/%d/%s", getpid(), file);
	return access(path, F_OK) == 0;
}

/* -1: there is no such file. */
static long long read_number(const char *file)
{
	long long number = -1;
	char path[128];
	FILE *stream;

	snprintf(path, sizeof(path), PROC "/%d/%s", getpid(), file);
	stream = fopen(path, "re");
	if (!stream)
		return -1;
	if (fscanf(stream, "%lld", &number) != 1)
		number = -1;
	fclose(stream);
	return number;
}

static long long vram(const struct raw_process *process, const char *directory)
{
	char file[64];

	snprintf(file, sizeof(file), "%svram_%u", directory, process->gpu[0].gpu_id);
	return read_number(file);
}

static int test_vram(void)
{
	struct raw_process process;
	struct raw_bo bo, gtt, import;
	int fd;

	EXPECT(exists(""), false);
	EXPECT(raw_open_acquired(&process), 0);
	EXPECT(vram(&process, ""), 0);
	EXPECT(raw_alloc_mapped(&process, 0, RAW_VRAM, MIB, &bo), 0);
	EXPECT(raw_alloc_mapped(&process, 0, RAW_GTT, MIB, &gtt), 0);
	EXPECT(vram(&process, ""), MIB);
	EXPECT(raw_export(&process, &bo, &fd), 0);
	EXPECT(raw_import(&process, process.gpu[0].gpu_id, fd, bo.address + (1ull << 40), &import),
	       0);
	EXPECT(vram(&process, ""), MIB);
	return 0;
}

static int test_queues(void)
{
	struct kfd_ioctl_destroy_queue_args destroy = { .queue_id = 0 };
	struct raw_process process;
	struct raw_queue queue;

	EXPECT(raw_open_acquired(&process), 0);
	EXPECT(exists("queues"), true);
	EXPECT(raw_create_queue(&process, 0, &queue), 0);
	EXPECT(read_number("queues/0/size"), (long long)queue.ring.size);
	EXPECT(read_number("queues/0/type"), 1); /* KFD_QUEUE_TYPE_SDMA */
	EXPECT(read_number("queues/0/gpuid"), process.gpu[0].gpu_id);
	EXPECT(raw_ioctl(process.kfd, AMDKFD_IOC_DESTROY_QUEUE, &destroy), 0);
	EXPECT(exists("queues/0"), false);
	EXPECT(exists("queues"), true);
	return 0;
}

static long long pasid_of_file(int fd)
{
	char path[64], line[128];
	long long pasid = -1;
	FILE *stream;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	stream = fopen(path, "re");
	while (stream && fgets(line, sizeof(line), stream))
		sscanf(line, "pasid: %lld", &pasid);
	if (stream)
		fclose(stream);
	return pasid;
}

static int test_pasid(void)
{
	struct raw_process process;
	int fd;

	EXPECT(raw_open_acquired(&process), 0);
	EXPECT(raw_open_render(&process.gpu[0], &fd), 0);
	EXPECT_TRUE(read_number("pasid") > 0);
	EXPECT(pasid_of_file(process.render[0]), read_number("pasid"));
	EXPECT_TRUE(pasid_of_file(fd) > 0 && pasid_of_file(fd) != read_number("pasid"));
	return 0;
}

static int new_context(void)
{
	int fd = open("/dev/kfd", O_RDWR | O_CLOEXEC);

	return fd < 0 || ioctl(fd, CREATE_PROCESS, NULL) < 0 ? -errno : fd;
}

/* Opens of /dev/kfd wait for what ends. */
static int close_context(int fd)
{
	close(fd);
	fd = open("/dev/kfd", O_RDWR | O_CLOEXEC);
	return fd < 0 ? -errno : close(fd);
}

static int check_contexts(void)
{
	struct raw_process process, context;
	struct raw_bo bo;
	int other;

	EXPECT(raw_open_acquired(&process), 0);
	EXPECT(read_number("pasid"), 0);
	context = process;
	context.kfd = new_context();
	EXPECT_TRUE(context.kfd >= 0);
	EXPECT(raw_ioctl(context.kfd, CREATE_PROCESS, NULL), -EINVAL);
	other = new_context();
	EXPECT_TRUE(other >= 0);
	EXPECT_TRUE(exists("context_0/queues") && exists("context_1/pasid"));
	EXPECT(raw_open_render(&process.gpu[0], &context.render[0]), 0);
	EXPECT(raw_acquire(&context, process.gpu[0].gpu_id, context.render[0]), 0);
	EXPECT(raw_alloc(&context, process.gpu[0].gpu_id, RAW_VRAM, MIB, NULL, &bo), 0);
	EXPECT(vram(&process, "context_0/"), MIB);
	EXPECT(vram(&process, ""), 0);
	EXPECT(close_context(context.kfd), 0);
	EXPECT_TRUE(!exists("context_0") && exists("context_1"));
	EXPECT(new_context() >= 0, true);
	EXPECT_TRUE(exists("context_0"));
	/* the second ends with the process, while its file is open */
	return 0;
}

static int test_contexts(void)
{
	int ret;

	EXPECT(sim_write("kernel", "7.3"), 0);
	ret = check_contexts();
	EXPECT(sim_write("kernel", "default"), 0);
	return ret;
}

static int test_no_contexts(void)
{
	struct raw_process process;

	EXPECT(raw_open(&process), 0);
	EXPECT(raw_ioctl(process.kfd, CREATE_PROCESS, NULL), -ENOTTY);
	return 0;
}

static const struct accept_test tests[] = {
	{ "procfs_counts_vram_of_the_process", test_vram, false },
	{ "procfs_lists_queues", test_queues, false },
	{ "procfs_has_the_pasid", test_pasid, false },
	{ "procfs_lists_contexts", test_contexts, false },
	{ "procfs_older_kernels_have_no_contexts", test_no_contexts, false },
	{ 0 },
};

const struct accept_group accept_procfs_group = { "procfs", tests };
