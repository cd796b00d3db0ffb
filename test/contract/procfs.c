/* SPDX-License-Identifier: GPL-2.0-only */
/* /sys/class/kfd/kfd/proc: what it says of a process, of its queues, and of the contexts that
 * CREATE_PROCESS makes (Linux 7.3). */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "buffers.h"
#include "contract.h"
#include "criu_op.h"
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

RULE(procfs_counts_vram_of_the_process)
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
	fd = buffer_export(&process, &bo);
	EXPECT(raw_import(&process, process.gpu[0].gpu_id, fd, bo.address + (1ull << 40), &import),
	       0);
	EXPECT(vram(&process, ""), MIB);
	EXPECT(raw_free(&process, &import), 0);
	EXPECT(vram(&process, ""), MIB);
	EXPECT(raw_unmap(&process, &bo, process.gpu[0].gpu_id), 0);
	EXPECT(raw_free(&process, &bo), 0);
	EXPECT(vram(&process, ""), 0);
}

RULE(procfs_lists_queues)
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

RULE(procfs_has_the_pasid)
{
	struct raw_process process;
	int fd;

	EXPECT(raw_open_acquired(&process), 0);
	EXPECT(raw_open_render(&process.gpu[0], &fd), 0);
	if (KERNEL(process_pasid)) {
		EXPECT_TRUE(read_number("pasid") > 0);
		EXPECT(pasid_of_file(process.render[0]), read_number("pasid"));
	} else {
		EXPECT(read_number("pasid"), 0);
		EXPECT_TRUE(pasid_of_file(process.render[0]) > 0);
	}
	EXPECT_TRUE(pasid_of_file(fd) > 0);
	EXPECT_TRUE(pasid_of_file(fd) != pasid_of_file(process.render[0]));
}

static int new_context(void)
{
	int fd = open("/dev/kfd", O_RDWR | O_CLOEXEC);

	return fd < 0 || raw_ioctl(fd, CREATE_PROCESS, NULL) < 0 ? -errno : fd;
}

/* An open of /dev/kfd waits for what ends. */
static int wait_for_ends(void)
{
	int fd = open("/dev/kfd", O_RDWR | O_CLOEXEC);

	return fd < 0 ? -errno : close(fd);
}

static int close_context(int fd)
{
	close(fd);
	return wait_for_ends();
}

static void skip_without_contexts(void)
{
	if (!KERNEL(contexts))
		rule_skip("this kernel has no contexts");
}

RULE(procfs_contexts_exist_or_not)
{
	struct raw_process process;

	EXPECT(raw_open(&process), 0);
	EXPECT(raw_ioctl(process.kfd, CREATE_PROCESS, NULL), KERNEL(contexts) ? 0 : -ENOTTY);
}

/* kfd_process_alloc_id(): the lowest number; kfd_release(): the file ends its context. */
RULE(procfs_lists_contexts)
{
	struct raw_process process;
	int first;

	skip_without_contexts();
	EXPECT(raw_open_acquired(&process), 0);
	first = new_context();
	EXPECT_TRUE(first >= 0);
	EXPECT(raw_ioctl(first, CREATE_PROCESS, NULL), -EINVAL);
	EXPECT_TRUE(new_context() >= 0);
	EXPECT_TRUE(exists("context_0/queues") && exists("context_1/pasid"));
	EXPECT(close_context(first), 0);
	EXPECT_TRUE(!exists("context_0") && exists("context_1"));
	EXPECT_TRUE(new_context() >= 0);
	EXPECT_TRUE(exists("context_0"));
	/* the second ends with the process, while its file is open */
}

/* kfd_ioctl_create_process(), kfd_ioctl_svm(), kfd_ioctl_alloc_memory_of_gpu() */
RULE(procfs_a_context_has_memory_of_its_own_and_no_user_memory)
{
	struct raw_process process, context;
	char *memory = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct kfd_ioctl_svm_attribute access = { .type = KFD_IOCTL_SVM_ATTR_ACCESS };
	struct raw_bo bo, other;

	skip_without_contexts();
	EXPECT(raw_open_acquired(&process), 0);
	access.value = process.gpu[0].gpu_id;
	context = process;
	context.kfd = new_context();
	EXPECT(raw_open_render(&process.gpu[0], &context.render[0]), 0);
	EXPECT(raw_acquire(&context, process.gpu[0].gpu_id, context.render[0]), 0);
	EXPECT(raw_alloc(&process, process.gpu[0].gpu_id, RAW_VRAM, MIB, NULL, &bo), 0);
	EXPECT(raw_alloc(&context, process.gpu[0].gpu_id, RAW_VRAM, 2 * MIB, NULL, &other), 0);
	EXPECT(other.handle, bo.handle);
	EXPECT(vram(&process, ""), MIB);
	EXPECT(vram(&process, "context_0/"), 2 * MIB);
	EXPECT(raw_svm(&context, memory, MIB, KFD_IOCTL_SVM_OP_SET_ATTR, &access, 1), -EOPNOTSUPP);
	EXPECT(raw_alloc(&context, process.gpu[0].gpu_id, RAW_USERPTR, MIB, memory, &other),
	       -EOPNOTSUPP);
	EXPECT(close_context(context.kfd), 0);
	EXPECT(vram(&process, ""), MIB);
}

/* kfd_chardev.c: criu_process_info(), criu_unpause(). By this the plugin tells whether files are of
 * one context. */
RULE(procfs_contexts_are_paused_one_by_one)
{
	struct criu_image *image = criu_image_new();
	struct raw_process process, context;
	int other;

	skip_without_contexts();
	EXPECT(raw_open_acquired(&process), 0);
	other = open("/dev/kfd", O_RDWR | O_CLOEXEC);
	context = process;
	context.kfd = new_context();
	EXPECT(raw_open_render(&process.gpu[0], &context.render[0]), 0);
	EXPECT(raw_acquire(&context, process.gpu[0].gpu_id, context.render[0]), 0);
	EXPECT(criu_process_info(process.kfd, image), 0);
	EXPECT(criu_unpause(context.kfd), -EINVAL);
	EXPECT(criu_unpause(other), 0);
	EXPECT(criu_process_info(context.kfd, image), 0);
	EXPECT(criu_unpause(process.kfd), -EINVAL);
	EXPECT(criu_unpause(context.kfd), 0);
}

static void child_main(struct peer *peer)
{
	struct raw_process process;
	long go;

	EXPECT(raw_open(&process), 0);
	peer_send(peer, 0);
	EXPECT(peer_receive(peer, &go), 0);
}

RULE(procfs_lists_a_child_until_it_ends)
{
	char path[64];
	struct peer child;
	long ready;

	peer_start(child_main, &child);
	snprintf(path, sizeof(path), PROC "/%d", child.pid);
	EXPECT(peer_receive(&child, &ready), 0);
	EXPECT(access(path, F_OK), 0);
	peer_send(&child, 0);
	EXPECT(peer_join(&child), 0);
	EXPECT(wait_for_ends(), 0);
	EXPECT(access(path, F_OK), -1);
}
