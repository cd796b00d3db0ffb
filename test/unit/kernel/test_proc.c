// SPDX-License-Identifier: GPL-2.0-only
/* Device paths, vpids, tracees and mappings, as /proc has them. */
#include "host.h"

#include <linux/userfaultfd.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

#include "kernel/proc.h"

UNIT_TEST(device_paths_are_recognised)
{
	static const struct {
		const char *path;
		int device;
	} cases[] = {
		{ "/dev/kfd", 0 },
		{ "kfd", 0 },
		{ "/tmp/jail/dev/kfd", 0 },
		{ "/dev/dri/renderD128", 128 },
		{ "renderD191", 191 },
		{ "/dev/dri/renderD255", 255 },
		{ "", -ENOENT },
		{ "/", -ENOENT },
		{ "/dev/", -ENOENT },
		{ "/dev/kfd/", -ENOENT },
		{ "/dev/kfd0", -ENOENT },
		{ "/dev/KFD", -ENOENT },
		{ "/dev/dri/renderD", -ENOENT },
		{ "/dev/dri/renderD0", -ENOENT },
		{ "/dev/dri/renderD128 (deleted)", -ENOENT },
		{ "/dev/dri/renderD128.bak", -ENOENT },
		{ "/dev/dri/renderD-128", -ENOENT },
		{ "/dev/dri/renderD4294967424", -ENOENT },
		{ "/dev/dri/renderD99999999999999999999", -ENOENT },
		{ "/dev/dri/card0", -ENOENT },
		{ "/dev/dri/renderD128/x", -ENOENT },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		print_message("case \"%s\"\n", cases[i].path);
		assert_int_equal(proc_device_of_path(cases[i].path), cases[i].device);
	}
}

UNIT_TEST(an_unused_pid_is_no_process)
{
	pid_t pid = 42;

	assert_int_equal(proc_vpid(0, &pid), -ESRCH);
	assert_int_equal(proc_vpid(0x7fffffff, &pid), -ESRCH);
	assert_int_equal(pid, 42);
	assert_true(proc_is_missing(4194304));
	assert_false(proc_is_missing(getpid()));
}

UNIT_TEST(the_first_process_of_a_pid_namespace_has_vpid_1)
{
	int wait_here[2];
	pid_t helper, inner;
	char byte;

	assert_int_equal(pipe(wait_here), 0);
	/* unshare() moves only children, so the helper forks one. */
	helper = fork();
	if (!helper) {
		if (unshare(CLONE_NEWPID) < 0)
			_exit(UNIT_REFUSED);
		inner = fork();
		if (!inner) {
			_exit(read(wait_here[0], &byte, 1) < 0);
		}
		pid_t vpid = -1;
		int ret = proc_vpid(inner, &vpid);

		(void)kill(inner, SIGKILL);
		(void)waitpid(inner, NULL, 0);
		_exit(ret == 0 && vpid == 1 ? 0 : 1);
	}
	(void)close(wait_here[0]);
	assert_int_equal(unit_wait(helper), 0);
	(void)close(wait_here[1]);
}

UNIT_TEST(only_tracees_are_found)
{
	pid_t tracee = unit_start_sleeper(), other = unit_start_sleeper(), found = 42;

	assert_int_equal(proc_find_tracee(tracee, &found), -ESRCH);
	assert_int_equal(found, 42);
	assert_int_equal(ptrace(PTRACE_SEIZE, tracee, 0, PTRACE_O_EXITKILL), 0);
	assert_int_equal(proc_find_tracee(tracee, &found), 0);
	assert_int_equal(found, tracee);
	assert_int_equal(proc_find_tracee(other, &found), -ESRCH);
	unit_end_sleeper(tracee);
	unit_end_sleeper(other);
}

static void *map_part(const char *path, size_t pages, off_t offset)
{
	_cleanup_close_ int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	void *address;

	assert_true(fd >= 0);
	/* A shared mapping of /dev/zero would be one of shared memory. */
	address = mmap(NULL, pages * 4096, PROT_READ, MAP_PRIVATE, fd, offset);
	assert_true(address != MAP_FAILED);
	return address;
}

static const struct proc_mapping *find(const struct proc_mapping *mappings, size_t count,
				       const void *address)
{
	for (size_t i = 0; i < count; i++) {
		if (mappings[i].start == (uintptr_t)address)
			return &mappings[i];
	}
	return NULL;
}

UNIT_TEST(only_mappings_of_character_devices_are_listed)
{
	void *device = map_part("/dev/zero", 3, 0x5000);
	void *file = map_part(unit_path("renderD130"), 1, 0);
	const struct proc_mapping *mapping;
	_cleanup_free_ struct proc_mapping *mappings = NULL;
	size_t count;

	assert_int_equal(proc_list_mappings(getpid(), &mappings, &count), 0);
	assert_int_equal(count, 1);
	mapping = find(mappings, count, device);
	assert_non_null(mapping);
	assert_int_equal(mapping->end - mapping->start, 3 * 4096);
	assert_int_equal(mapping->offset, 0x5000);
	assert_int_equal(mapping->device, makedev(1, 5));
	assert_null(find(mappings, count, file));
	(void)munmap(device, 3 * 4096);
	(void)munmap(file, 4096);
}

/* The other process has another shared mapping at the same address. */
UNIT_TEST(processes_that_share_a_mapping_are_found)
{
	const size_t size = (size_t)sysconf(_SC_PAGESIZE);
	void *memory = mmap(NULL, size, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t shares = unit_start_sleeper(), other;
	struct pid_list list;

	assert_true(memory != MAP_FAILED);
	(void)munmap(memory, size);
	assert_true(mmap(memory, size, PROT_READ, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
		    memory);
	other = shares;
	shares = unit_start_sleeper();
	assert_int_equal(proc_list_sharers(memory, size, &list), 0);
	assert_int_equal(list.count, 2);
	assert_true((list.pids[0] == shares && list.pids[1] == getpid()) ||
		    (list.pids[0] == getpid() && list.pids[1] == shares));
	pid_list_done(&list);
	assert_int_equal(proc_list_sharers((char *)memory + size, size, &list), -ENOENT);
	(void)munmap(memory, size);
	unit_end_sleeper(shares);
	unit_end_sleeper(other);
}

/* As CRIU's restorer makes it with --lazy-pages. */
UNIT_TEST(memory_that_a_userfaultfd_fills_is_found)
{
	size_t size = (size_t)sysconf(_SC_PAGESIZE);
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	_cleanup_close_ int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	struct uffdio_register missing = {
		.range = { (uintptr_t)memory, size },
		.mode = UFFDIO_REGISTER_MODE_MISSING,
	};

	assert_ptr_not_equal(memory, MAP_FAILED);
	assert_int_equal(proc_has_lazy_memory(getpid()), 0);
	if (fd < 0 || ioctl(fd, UFFDIO_API, &(struct uffdio_api){ .api = UFFD_API }) < 0)
		skip();
	assert_int_equal(ioctl(fd, UFFDIO_REGISTER, &missing), 0);
	assert_int_equal(proc_has_lazy_memory(getpid()), 1);
	assert_int_equal(ioctl(fd, UFFDIO_UNREGISTER, &missing.range), 0);
	assert_int_equal(proc_has_lazy_memory(getpid()), 0);
	assert_int_equal(munmap(memory, size), 0);
}

/* Pages 0 to 5; page 3 is missing, and page 1 has other rights than its neighbours. */
UNIT_TEST(ranges_that_are_not_mapped_are_found)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *memory = mmap(NULL, 6 * page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const struct {
		size_t first, end;
		int missing;
	} cases[] = {
		{ 0, 3, 0 }, { 1, 2, 0 }, { 4, 6, 0 }, { 3, 4, 1 },
		{ 2, 4, 1 }, { 0, 6, 1 }, { 3, 6, 1 },
	};
	uint64_t start = (uintptr_t)memory;

	assert_ptr_not_equal(memory, MAP_FAILED);
	assert_int_equal(mprotect(memory + page, page, PROT_NONE), 0);
	assert_int_equal(munmap(memory + 3 * page, page), 0);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		/* Others, which are there, on both sides. */
		struct proc_range ranges[] = {
			{ start + 5 * page, start + 6 * page },
			{ start + cases[i].first * page, start + cases[i].end * page },
			{ start, start + page },
		};
		struct proc_range found = { 0 };

		print_message("case %zu\n", i);
		assert_int_equal(proc_find_unmapped(getpid(), ranges, 3, &found), cases[i].missing);
		if (cases[i].missing)
			assert_true(found.start == start + 3 * page &&
				    found.end == start + 4 * page);
	}
	assert_int_equal(munmap(memory, 6 * page), 0);
}

UNIT_TEST(beyond_the_last_mapping_there_is_nothing)
{
	struct proc_range range = { UINT64_MAX - 4096, UINT64_MAX };
	struct proc_range found;

	assert_int_equal(proc_find_unmapped(getpid(), &range, 1, &found), 1);
	assert_int_equal(proc_find_unmapped(1 << 30, &range, 1, &found), -ESRCH);
}
