/* SPDX-License-Identifier: GPL-2.0-only */
/* Files in memory that stand for the render files of this process, and a script that answers the
 * driver's calls for GEM handles. Included by a test program once. Its functions replace fstat(),
 * ioctl(), mmap() and syscall() of the C library. */
#ifndef TEST_UNIT_GEM_DRIVER_H
#define TEST_UNIT_GEM_DRIVER_H

#include "host.h"

#include <amdgpu_drm.h>
#include <dlfcn.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

#include "kernel/render_node.h"

#define FILES    3
#define HANDLES  4
#define OBJECTS  3
#define MAPPINGS 8

/* The calls that can fail. */
enum call { NO_CALL, LIST_HANDLES, GEM_MMAP, HANDLE_TO_FD, MAPPING_INFO, METADATA, CREATE_INFO };

/* The last begins inside the first. */
static const uint64_t offsets[OBJECTS] = { 0x100000, 0x200000, 0x101000 };

struct handle {
	uint32_t number;
	unsigned int object;
	/* Of another PCI device. */
	bool is_import;
	/* The CPU may not map the object. */
	bool is_private;
	struct render_metadata metadata;
	struct render_mapping mappings[MAPPINGS];
	uint32_t num_mappings;
};

static struct {
	struct file {
		int fd;
		ino_t inode;
		uint32_t minor;
		/* mmap() accepts this offset. */
		uint64_t mappable;
		struct handle handles[HANDLES];
		uint32_t num_handles;
	} files[FILES];
	size_t num_files;
	int dmabufs[OBJECTS];
	/* Before Linux 6.18: it lists neither handles nor mappings. */
	bool is_old;
	enum call failing;
	/* The first calls of that kind that succeed. */
	unsigned int good;
	long failing_syscall;
	int error;
} driver;

static inline struct file *file_of(int fd)
{
	struct stat stat;

	if (fd < 0 || fstatat(fd, "", &stat, AT_EMPTY_PATH) < 0)
		return NULL;
	for (size_t i = 0; i < driver.num_files; i++) {
		if (driver.files[i].inode == stat.st_ino)
			return &driver.files[i];
	}
	return NULL;
}

int fstat(int fd, struct stat *stat)
{
	const struct file *file = file_of(fd);

	if (fstatat(fd, "", stat, AT_EMPTY_PATH) < 0)
		return -1;
	if (file) {
		stat->st_mode = S_IFCHR | 0600;
		stat->st_rdev = makedev(226, file->minor);
	}
	return 0;
}

long syscall(long number, ...)
{
	static long (*next)(long, ...);
	va_list arguments;
	long a[6];

	va_start(arguments, number);
	for (size_t i = 0; i < ARRAY_SIZE(a); i++)
		a[i] = va_arg(arguments, long);
	va_end(arguments);
	if (number == driver.failing_syscall) {
		errno = driver.error;
		return -1;
	}
	if (!next)
		next = (long (*)(long, ...))(uintptr_t)dlsym(RTLD_NEXT, "syscall");
	return next(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

void *mmap(void *address, size_t size, int protection, int flags, int fd, off_t offset)
{
	const struct file *file = file_of(fd);

	if (file && file->mappable != (uint64_t)offset) {
		errno = EACCES;
		return MAP_FAILED;
	}
	return (void *)syscall(SYS_mmap, address, size, protection, flags, fd, offset);
}

static inline int fail_with(enum call call)
{
	if (driver.failing != call)
		return 0;
	if (driver.good) {
		driver.good--;
		return 0;
	}
	return driver.error;
}

static inline struct handle *look_up(struct file *file, uint32_t number)
{
	for (size_t i = 0; i < file->num_handles; i++) {
		if (file->handles[i].number == number)
			return &file->handles[i];
	}
	return NULL;
}

static inline struct handle *find_handle(struct file *file, uint32_t number)
{
	struct handle *handle = look_up(file, number);

	assert_non_null(handle);
	return handle;
}

/* As amdgpu_gem_list_handles_ioctl(): the number, and the entries if they have room. */
static inline int list_handles(const struct file *file, uint64_t *args)
{
	struct render_gem *gems = (struct render_gem *)(uintptr_t)args[0];
	uint32_t room;

	if (driver.is_old)
		return EINVAL;
	memcpy(&room, &args[1], sizeof(room));
	for (uint32_t i = 0; room >= file->num_handles && i < file->num_handles; i++)
		gems[i] = (struct render_gem){
			.handle = file->handles[i].number,
			.flags = file->handles[i].is_import ? RENDER_GEM_IS_IMPORT : 0,
		};
	memcpy(&args[1], &file->num_handles, sizeof(room));
	return fail_with(LIST_HANDLES);
}

static inline int tell_offset(struct file *file, union drm_amdgpu_gem_mmap *args)
{
	const struct handle *handle = find_handle(file, args->in.handle);

	args->out.addr_ptr = offsets[handle->object];
	return handle->is_private ? EPERM : fail_with(GEM_MMAP);
}

static inline int export(struct file *file, struct drm_prime_handle *args)
{
	args->fd = dup(driver.dmabufs[find_handle(file, args->handle)->object]);
	if (!fail_with(HANDLE_TO_FD))
		return 0;
	(void)close(args->fd);
	return driver.error;
}

/* struct drm_amdgpu_gem_op of Linux 6.18, whose third 64-bit word begins with the number. */
static inline int tell_mappings(struct file *file, uint64_t *args)
{
	struct render_mapping *entries = (struct render_mapping *)(uintptr_t)args[1];
	const struct handle *handle = find_handle(file, (uint32_t)args[0]);
	uint32_t room;

	if (driver.is_old)
		return EINVAL;
	memcpy(&room, &args[2], sizeof(room));
	if (handle->num_mappings && room >= handle->num_mappings)
		memcpy(entries, handle->mappings, handle->num_mappings * sizeof(*entries));
	memcpy(&args[2], &handle->num_mappings, sizeof(room));
	return fail_with(MAPPING_INFO);
}

/* As amdgpu_gem_op_ioctl() of all kernels. */
static inline int tell_info(struct file *file, const uint64_t *args)
{
	if (!look_up(file, (uint32_t)args[0]))
		return ENOENT;
	memset((void *)(uintptr_t)args[1], 0, sizeof(struct drm_amdgpu_gem_create_in));
	return fail_with(CREATE_INFO);
}

static inline int tell_metadata(struct file *file, struct drm_amdgpu_gem_metadata *args)
{
	const struct render_metadata *metadata = &find_handle(file, args->handle)->metadata;

	assert_int_equal(args->op, AMDGPU_GEM_METADATA_OP_GET_METADATA);
	args->data.flags = metadata->flags;
	args->data.tiling_info = metadata->tiling;
	args->data.data_size_bytes = metadata->size;
	memcpy(args->data.data, metadata->data, sizeof(args->data.data));
	return fail_with(METADATA);
}

static inline int answer(struct file *file, unsigned long request, void *argument)
{
	switch (_IOC_NR(request)) {
	case DRM_COMMAND_BASE + 0x19:
		return list_handles(file, argument);
	case DRM_COMMAND_BASE + DRM_AMDGPU_GEM_MMAP:
		return tell_offset(file, argument);
	case DRM_COMMAND_BASE + DRM_AMDGPU_GEM_METADATA:
		return tell_metadata(file, argument);
	case DRM_COMMAND_BASE + DRM_AMDGPU_GEM_OP:
		if (*(uint64_t *)argument >> 32 == AMDGPU_GEM_OP_GET_GEM_CREATE_INFO)
			return tell_info(file, argument);
		assert_int_equal(*(uint64_t *)argument >> 32, 2);
		return tell_mappings(file, argument);
	default:
		assert_int_equal(request, DRM_IOCTL_PRIME_HANDLE_TO_FD);
		return export(file, argument);
	}
}

int ioctl(int fd, unsigned long request, ...)
{
	struct file *file = file_of(fd);
	va_list arguments;
	void *argument;

	va_start(arguments, request);
	argument = va_arg(arguments, void *);
	va_end(arguments);
	assert_non_null(file);
	errno = answer(file, request, argument);
	return errno ? -1 : 0;
}

static inline struct file *open_render(uint32_t minor)
{
	struct file *file = &driver.files[driver.num_files];
	struct stat stat;

	file->fd = memfd_create("render", MFD_CLOEXEC);
	assert_int_equal(ftruncate(file->fd, 0x400000), 0);
	assert_int_equal(fstatat(file->fd, "", &stat, AT_EMPTY_PATH), 0);
	file->inode = stat.st_ino;
	file->minor = minor;
	driver.num_files++;
	return file;
}

static inline struct handle *add_handle(struct file *file, uint32_t number, unsigned int object)
{
	struct handle *handle = &file->handles[file->num_handles++];

	*handle = (struct handle){ .number = number, .object = object };
	return handle;
}

static inline void add_metadata(struct handle *handle, const char *text)
{
	handle->metadata = (struct render_metadata){ .flags = 5, .tiling = 7 };
	handle->metadata.size = (uint32_t)strlen(text);
	memcpy(handle->metadata.data, text, strlen(text));
}

static inline void add_mapping(struct handle *handle, uint64_t addr, uint64_t size, uint64_t offset,
			       uint64_t flags)
{
	handle->mappings[handle->num_mappings++] =
		(struct render_mapping){ addr, size, offset, flags };
}

#endif
