/* SPDX-License-Identifier: GPL-2.0-only */
/* Which process may make which call on /dev/kfd: dispatch, the owner rule, capabilities and the
 * order of errors. The other files test the calls themselves. */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "contract.h"
#include "raw_kfd.h"

static int drop_capabilities(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { 0 };

	return syscall(SYS_capset, &header, data) < 0 ? -errno : 0;
}

static int get_version(int kfd)
{
	struct kfd_ioctl_get_version_args args = { 0 };

	return raw_ioctl(kfd, AMDKFD_IOC_GET_VERSION, &args);
}

static int criu_op(int kfd, uint32_t op)
{
	struct kfd_ioctl_criu_args args = { .op = op };

	return raw_ioctl(kfd, AMDKFD_IOC_CRIU_OP, &args);
}

RULE(kfd_version_is_at_least_1_8)
{
	struct kfd_ioctl_get_version_args args = { 0 };
	struct raw_process process;

	EXPECT(raw_open(&process), 0);
	EXPECT(raw_ioctl(process.kfd, AMDKFD_IOC_GET_VERSION, &args), 0);
	EXPECT(args.major_version, 1);
	EXPECT_TRUE(args.minor_version >= 8);
}

RULE(kfd_node_is_minor_0_of_its_own_class)
{
	struct stat device;

	EXPECT(stat("/dev/kfd", &device), 0);
	EXPECT_TRUE(S_ISCHR(device.st_mode));
	EXPECT(device.st_rdev & 0xff, 0);
	EXPECT(access("/sys/class/kfd/kfd/topology", F_OK), 0);
	EXPECT(access("/sys/devices/virtual/kfd/kfd/topology", F_OK), 0);
}

RULE(kfd_dispatches_by_number_and_any_size)
{
	struct raw_process process;
	char room[256] = { 0 };

	EXPECT(raw_open(&process), 0);
	EXPECT(raw_ioctl(process.kfd, _IOWR('K', 0x00, uint64_t), room), -ENOTTY);
	EXPECT(raw_ioctl(process.kfd, _IOWR('K', 0x7f, uint64_t), room), -ENOTTY);
	/* Only the number counts, not the letter or the direction. */
	EXPECT(raw_ioctl(process.kfd, _IOR('X', 0x01, uint64_t), room), 0);
	/* A caller's structure that is longer or shorter than the kernel's is no error. */
	EXPECT(raw_ioctl(process.kfd, _IOC(_IOC_READ, 'K', 0x01, 64), room), 0);
	EXPECT(raw_ioctl(process.kfd, _IOC(_IOC_READ, 'K', 0x01, 4), room), 0);
	EXPECT(raw_ioctl(process.kfd, AMDKFD_IOC_CREATE_QUEUE, NULL), -EFAULT);
}

static struct raw_process inherited;

static void child_is_refused(struct peer *peer)
{
	(void)peer;
	EXPECT(get_version(inherited.kfd), -EBADF);
	EXPECT(criu_op(inherited.kfd, KFD_CRIU_OP_PROCESS_INFO), -EBADF);
	/* Its own open makes it a KFD process; the inherited file stays the parent's. */
	EXPECT_TRUE(open("/dev/kfd", O_RDWR | O_CLOEXEC) >= 0);
	EXPECT(get_version(inherited.kfd), -EBADF);
}

RULE(kfd_of_the_parent_is_ebadf_in_the_child)
{
	EXPECT(raw_open(&inherited), 0);
	peer_run(child_is_refused);
	EXPECT(get_version(inherited.kfd), 0);
}

static void child_without_capability(struct peer *peer)
{
	(void)peer;
	EXPECT(drop_capabilities(), 0);
	/* Not the owner comes before not capable. */
	EXPECT(criu_op(inherited.kfd, KFD_CRIU_OP_PROCESS_INFO), -EBADF);
}

RULE(kfd_errors_are_ebadf_then_eacces_then_efault)
{
	EXPECT(raw_open(&inherited), 0);
	peer_run(child_without_capability);
	EXPECT(raw_ioctl(inherited.kfd, AMDKFD_IOC_CRIU_OP, NULL), -EFAULT);
	EXPECT(drop_capabilities(), 0);
	EXPECT(raw_ioctl(inherited.kfd, AMDKFD_IOC_CRIU_OP, NULL), -EACCES);
	for (uint32_t op = 0; op < 5; op++)
		EXPECT(criu_op(inherited.kfd, op), -EACCES);
	EXPECT(get_version(inherited.kfd), 0);
}

RULE(kfd_second_open_is_the_same_process)
{
	struct raw_process process;
	struct raw_bo bo;
	int kfd;

	EXPECT(raw_open_acquired(&process), 0);
	EXPECT(raw_alloc(&process, process.gpu[0].gpu_id, RAW_VRAM, 4096, NULL, &bo), 0);
	/* A second file is the same KFD process; closing the first loses nothing. */
	kfd = open("/dev/kfd", O_RDWR | O_CLOEXEC);
	EXPECT_TRUE(kfd >= 0);
	EXPECT(close(process.kfd), 0);
	process.kfd = kfd;
	EXPECT(raw_free(&process, &bo), 0);
}

RULE(kfd_acquire_vm_takes_one_file_per_gpu)
{
	struct raw_process process;
	int first, second, kfd;

	EXPECT(raw_open(&process), 0);
	EXPECT(raw_open_render(&process.gpu[0], &first), 0);
	EXPECT(raw_open_render(&process.gpu[0], &second), 0);
	kfd = process.kfd;
	EXPECT(raw_acquire(&process, 0, first), -EINVAL);
	EXPECT(raw_acquire(&process, 0xffff1, first), -EINVAL);
	EXPECT(raw_acquire(&process, process.gpu[0].gpu_id, 9999), -EINVAL);
	EXPECT(raw_acquire(&process, process.gpu[0].gpu_id, kfd), -EINVAL);
	EXPECT(raw_acquire(&process, process.gpu[0].gpu_id, first), 0);
	EXPECT(raw_acquire(&process, process.gpu[0].gpu_id, first), 0);
	EXPECT(raw_acquire(&process, process.gpu[0].gpu_id, second), -EBUSY);
}

RULE(kfd_mmap_refuses_wrong_offsets_and_sizes)
{
	struct raw_process process;
	struct raw_bo bo = { .size = 4096 };

	EXPECT(raw_open_acquired(&process), 0);
	bo.address = mmap(NULL, 65536, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	bo.mmap_offset = 0;
	EXPECT(raw_mmap(process.kfd, &bo), -ENODEV);
	bo.mmap_offset = 3ull << 62 | 0x3ffull << 46;
	bo.size = RAW_DOORBELL_BYTES;
	EXPECT(raw_mmap(process.kfd, &bo), -ENODEV);
	bo.mmap_offset = 3ull << 62 | (uint64_t)process.gpu[0].gpu_id << 46;
	bo.size = 4096;
	EXPECT(raw_mmap(process.kfd, &bo), -EINVAL);
	bo.mmap_offset = 2ull << 62;
	bo.size = 65536;
	EXPECT(raw_mmap(process.kfd, &bo), -EINVAL);
}
