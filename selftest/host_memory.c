// SPDX-License-Identifier: GPL-2.0-only
#include "host_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <unistd.h>

#define PAGE_BYTES 4096u
#define HUGE_BYTES (2u << 20)

static void *map_file(int fd, size_t size)
{
	void *memory = MAP_FAILED;

	if (fd < 0)
		return MAP_FAILED;
	if (ftruncate(fd, (off_t)size) == 0)
		memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	return memory;
}

static void *map_anonymous(size_t size, int flags)
{
	return mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_ANONYMOUS | flags, -1, 0);
}

static void *map_memfd(size_t size, int flags)
{
	return map_file(memfd_create("gpu-memory", MFD_CLOEXEC | (unsigned int)flags), size);
}

static void *map_named(size_t size, int flags)
{
	return map_file(open("/run/gpu_files", O_RDWR | O_CLOEXEC | flags, 0600), size);
}

static void *map_unlinked(size_t size, int flags)
{
	char path[] = "/dev/shm/gpu-memory-XXXXXX";
	int fd = mkostemp(path, flags);

	if (fd >= 0)
		(void)unlink(path);
	return map_file(fd, size);
}

static void *map_segment(size_t size, int flags)
{
	int id = shmget(IPC_PRIVATE, size, flags | 0600);

	return id < 0 ? MAP_FAILED : shmat(id, NULL, 0);
}

static const struct kind {
	const char *name;
	void *(*map)(size_t size, int flags);
	int flags;
	size_t unit; /* of its size */
} kinds[] = {
	{ "private", map_anonymous, MAP_PRIVATE, PAGE_BYTES },
	{ "shared", map_anonymous, MAP_SHARED, PAGE_BYTES },
	{ "memfd", map_memfd, 0, PAGE_BYTES },
	{ "huge", map_memfd, MFD_HUGETLB, HUGE_BYTES },
	{ "named", map_named, O_CREAT, PAGE_BYTES },
	{ "unlinked", map_unlinked, O_CLOEXEC, PAGE_BYTES },
	{ "segment", map_segment, IPC_CREAT, PAGE_BYTES },
};

int host_memory_map(const char *kind, size_t *size_bytes, void **ret_address)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		size_t size = (*size_bytes + kinds[i].unit - 1) / kinds[i].unit * kinds[i].unit;
		void *address;

		if (strcmp(kinds[i].name, kind) != 0)
			continue;
		address = kinds[i].map(size, kinds[i].flags);
		if (address == MAP_FAILED)
			return -errno;
		*size_bytes = size;
		*ret_address = address;
		return 0;
	}
	return -EINVAL;
}
