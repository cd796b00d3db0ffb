// SPDX-License-Identifier: GPL-2.0-only
/* Mappings of this process, with and without a file that has a name. */
#include "host.h"

#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>

#include "kernel/unnamed_files.h"

#define SIZE 0x4000

static void *map(int fd, int protection, int flags)
{
	void *memory;

	if (fd >= 0)
		assert_int_equal(ftruncate(fd, SIZE), 0);
	memory = mmap(NULL, SIZE, protection, flags, fd, 0);
	assert_true(memory != MAP_FAILED);
	if (fd >= 0)
		(void)close(fd);
	return memory;
}

/* Whether the memory counts, and if so the whole mapping is found by one page of it. */
static bool is_found(void *memory)
{
	const struct proc_range page = { (uintptr_t)memory + 0x1000, (uintptr_t)memory + 0x2000 };
	struct proc_range found = { 0 };
	int ret = unnamed_files_find(getpid(), &page, 1, &found);

	assert_true(ret >= 0);
	assert_int_equal(found.start, ret ? (uintptr_t)memory : 0);
	assert_int_equal(found.end, ret ? (uintptr_t)memory + SIZE : 0);
	(void)munmap(memory, SIZE);
	return ret;
}

static int open_file(const char *name, bool keep_name, bool has_other_name)
{
	int fd = open(unit_path(name), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	if (has_other_name)
		assert_int_equal(link(unit_path(name), unit_path("other")), 0);
	if (!keep_name)
		assert_int_equal(unlink(unit_path(name)), 0);
	return fd;
}

UNIT_TEST(memfds_and_unlinked_files_count)
{
	assert_true(is_found(map(memfd_create("a (deleted) name", MFD_CLOEXEC),
				 PROT_READ | PROT_WRITE, MAP_SHARED)));
	assert_true(
		is_found(map(open_file("file", false, false), PROT_READ | PROT_WRITE, MAP_SHARED)));
}

UNIT_TEST(files_with_a_name_do_not_count)
{
	assert_false(
		is_found(map(open_file("file", true, false), PROT_READ | PROT_WRITE, MAP_SHARED)));
	/* CRIU makes a name for it. */
	assert_false(
		is_found(map(open_file("file", false, true), PROT_READ | PROT_WRITE, MAP_SHARED)));
}

UNIT_TEST(memory_that_nothing_writes_does_not_count)
{
	assert_false(is_found(map(memfd_create("read", MFD_CLOEXEC), PROT_READ, MAP_SHARED)));
	assert_false(is_found(
		map(memfd_create("private", MFD_CLOEXEC), PROT_READ | PROT_WRITE, MAP_PRIVATE)));
}

/* CRIU saves them when all tasks are saved. */
UNIT_TEST(anonymous_shared_memory_does_not_count)
{
	int id = shmget(IPC_PRIVATE, SIZE, IPC_CREAT | 0600);
	void *segment = shmat(id, NULL, 0);

	assert_int_equal(shmctl(id, IPC_RMID, NULL), 0);
	assert_true(segment != (void *)-1);
	assert_false(is_found(segment));
	assert_false(is_found(map(-1, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS)));
}

static uint64_t largest(void)
{
	uint64_t bytes;

	assert_int_equal(unnamed_files_largest(getpid(), &bytes), 0);
	return bytes;
}

UNIT_TEST(the_largest_unlinked_file_is_told)
{
	void *memfd = map(memfd_create("large", MFD_CLOEXEC), PROT_READ | PROT_WRITE, MAP_SHARED);
	void *small, *large;

	(void)memset(memfd, 1, SIZE);
	assert_int_equal(largest(), 0);
	small = map(open_file("small", false, false), PROT_READ | PROT_WRITE, MAP_SHARED);
	*(char *)small = 1;
	large = map(open_file("large", false, false), PROT_READ | PROT_WRITE, MAP_SHARED);
	(void)memset(large, 1, SIZE);
	assert_int_equal(largest(), SIZE);
	(void)munmap(large, SIZE);
	assert_in_range(largest(), 1, SIZE - 1);
	(void)munmap(small, SIZE);
	(void)munmap(memfd, SIZE);
}

UNIT_TEST(a_process_that_has_ended_is_told)
{
	const struct proc_range page = { 0x1000, 0x2000 };
	struct proc_range found;
	uint64_t bytes;

	assert_int_equal(unnamed_files_largest(0x7fffffff, &bytes), -ESRCH);
	assert_int_equal(unnamed_files_find(0x7fffffff, &page, 1, &found), -ESRCH);
}
