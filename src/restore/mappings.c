// SPDX-License-Identifier: GPL-2.0-only
/* Moves device mappings to their new offsets and files while CRIU restores a task's memory. */
#include "restore/mappings.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/kcmp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "amdgpu_plugin_util.h"
#include "criu/log.h"
#include "kernel/kfd_criu.h"
#include "kernel/proc.h"

int mappings_add_bo(struct mappings *table, const struct vma_bo *bo)
{
	table->sorted = false;
	return array_append(&table->bos, &table->num_bos, sizeof(*bo), bo);
}

int mappings_add_file(struct mappings *table, uint32_t saved_minor, int fd)
{
	struct vma_file file = { .saved_minor = saved_minor, .fd = fd };
	int ret = array_append(&table->files, &table->num_files, sizeof(file), &file);

	if (ret < 0)
		(void)close(fd);
	return ret;
}

int mappings_add_gpu(struct mappings *table, uint32_t old_id, uint32_t new_id)
{
	struct vma_gpu gpu = { .old_id = old_id, .new_id = new_id };

	return array_append(&table->gpus, &table->num_gpus, sizeof(gpu), &gpu);
}

/* Closes all but @spared; -1 for none. */
static void close_files(struct mappings *table, int spared)
{
	for (size_t i = 0; i < table->num_files; i++) {
		if (table->files[i].fd != spared)
			(void)close(table->files[i].fd);
	}
	free(table->files);
	table->files = NULL;
	table->num_files = 0;
}

void mappings_done(struct mappings *table)
{
	if (!table)
		return;
	close_files(table, -1);
	free(table->bos);
	free(table->gpus);
	*table = (struct mappings){ 0 };
}

static struct vma_file *find_file(const struct mappings *table, uint32_t saved_minor)
{
	for (size_t i = 0; i < table->num_files; i++) {
		if (table->files[i].saved_minor == saved_minor)
			return &table->files[i];
	}
	return NULL;
}

int mappings_find_file(const struct mappings *table, uint32_t saved_minor)
{
	const struct vma_file *file = find_file(table, saved_minor);

	return file ? file->fd : -1;
}

int mappings_take_file(struct mappings *table, uint32_t saved_minor)
{
	struct vma_file *file = find_file(table, saved_minor);
	int fd = file ? file->fd : -1;

	if (file)
		*file = table->files[--table->num_files];
	return fd;
}

void mappings_note_shared(struct mappings *table, uint32_t saved_minor)
{
	struct vma_file *file = find_file(table, saved_minor);

	if (file)
		file->shared = true;
}

bool mappings_is_shared(const struct mappings *table, uint32_t saved_minor)
{
	const struct vma_file *file = find_file(table, saved_minor);

	return file && file->shared;
}

static bool covers(const struct vma_bo *bo, uint64_t offset)
{
	return offset >= bo->old_offset && offset - bo->old_offset < bo->size;
}

static int compare_addresses(const void *a, const void *b)
{
	const struct vma_bo *one = a, *other = b;

	if (one->addr != other->addr)
		return one->addr < other->addr ? -1 : 1;
	if (one->saved_minor != other->saved_minor)
		return one->saved_minor < other->saved_minor ? -1 : 1;
	return (one->old_offset > other->old_offset) - (one->old_offset < other->old_offset);
}

/* Some tasks have a hundred thousand BOs, and a mapping of each. */
static void sort(struct mappings *table)
{
	if (!table->sorted && table->num_bos)
		qsort(table->bos, table->num_bos, sizeof(*table->bos), compare_addresses);
	table->sorted = true;
}

static size_t first_at(const struct mappings *table, uint64_t addr)
{
	size_t first = 0, end = table->num_bos;

	while (first < end) {
		size_t middle = first + (end - first) / 2;

		if (table->bos[middle].addr < addr)
			first = middle + 1;
		else
			end = middle;
	}
	return first;
}

/* The BO that has this address on its GPU; of several, that of the device. */
static const struct vma_bo *find_at(const struct mappings *table, uint32_t minor, uint64_t addr,
				    uint64_t offset)
{
	const struct vma_bo *found = NULL;

	for (size_t i = first_at(table, addr); i < table->num_bos; i++) {
		const struct vma_bo *bo = &table->bos[i];

		if (bo->addr != addr)
			break;
		if (!covers(bo, offset) || !bo->saved_minor != !minor)
			continue;
		if (bo->saved_minor == minor)
			return bo;
		if (!found)
			found = bo;
	}
	return found;
}

/* The BO whose mapping it is. Programs map BOs where the GPU has them, so the address tells, also
 * where a container has given a render node another name than its number, or another one's. Else
 * the fake offset does, which is unique in a device only. */
static const struct vma_bo *find_bo(const struct mappings *table, uint32_t minor, uint64_t addr,
				    uint64_t offset)
{
	const struct vma_bo *found = find_at(table, minor, addr, offset);

	for (size_t i = 0; !found && i < table->num_bos; i++) {
		const struct vma_bo *bo = &table->bos[i];

		if (bo->saved_minor == minor && covers(bo, offset))
			found = bo;
	}
	return found;
}

/* A mapping of /dev/kfd that has no BO: events of the process, or doorbells of an APU. */
static int move_without_bo(const struct mappings *table, uint64_t offset, uint64_t *ret_new_offset)
{
	uint32_t id = (uint32_t)((offset & KFD_MMAP_GPU_ID_MASK) >> KFD_MMAP_GPU_ID_SHIFT);

	if (offset >> KFD_MMAP_TYPE_SHIFT == KFD_MMAP_EVENTS) {
		*ret_new_offset = offset;
		return 0;
	}
	for (size_t i = 0; i < table->num_gpus; i++) {
		if (table->gpus[i].old_id != id)
			continue;
		*ret_new_offset = (offset & ~KFD_MMAP_GPU_ID_MASK) |
				  (uint64_t)table->gpus[i].new_id << KFD_MMAP_GPU_ID_SHIFT;
		return 0;
	}
	return -EINVAL;
}

struct target {
	uint32_t saved_minor;
	uint64_t offset;
};

static int find_target(const struct mappings *table, uint32_t minor, uint64_t addr, uint64_t offset,
		       struct target *ret_target)
{
	const struct vma_bo *bo = find_bo(table, minor, addr, offset);

	ret_target->saved_minor = minor;
	if (!bo && minor == 0 && !move_without_bo(table, offset, &ret_target->offset))
		return 0;
	if (!bo && mappings_find_file(table, minor) < 0)
		return -ENOTSUP;
	if (!bo)
		return log_error(-EINVAL,
				 "mapping 0x%" PRIx64 ": no BO of the image has offset 0x%" PRIx64,
				 addr, offset);
	/* The kernel maps a BO from its very start only. */
	if (bo->old_offset != offset && minor)
		return log_error(-EINVAL,
				 "mapping 0x%" PRIx64 ": begins inside a BO (offset 0x%" PRIx64
				 " of BO at 0x%" PRIx64 "), which cannot be mapped again",
				 addr, offset - bo->old_offset, bo->addr);
	ret_target->saved_minor = bo->saved_minor;
	ret_target->offset = bo->new_offset + (offset - bo->old_offset);
	return 0;
}

/* Their numbers; -EMFILE and the like. */
static int find_free_fds(int any_fd, int free_fds[static VMA_FREE_FDS])
{
	int from = 0, ret = 0;

	for (size_t i = 0; !ret && i < VMA_FREE_FDS; i++) {
		free_fds[i] = fcntl(any_fd, F_DUPFD_CLOEXEC, from);
		if (free_fds[i] < 0)
			ret = -errno;
		else
			(void)close(free_fds[i]);
		from = free_fds[i] + 1;
	}
	return ret;
}

static bool are_free(const int free_fds[static VMA_FREE_FDS])
{
	for (size_t i = 0; i < VMA_FREE_FDS; i++) {
		if (fcntl(free_fds[i], F_GETFD) >= 0)
			return false;
	}
	return true;
}

/* CRIU takes one descriptor for a run of neighbouring mappings of one file, the first it is given,
 * and never closes those given for the rest. A run ends with another file: one of ours has another
 * path; one of CRIU's own was opened since, and took the lowest free number, or the next one, as
 * what is opened twice keeps the second; or CRIU has closed what it was given. */
static bool run_goes_on(const struct mappings *table, const char *path)
{
	return table->run_path == path && are_free(table->run_free_fds) &&
	       fcntl(table->run_fd, F_GETFD) >= 0;
}

/* The task's own descriptor of the open file @file, all of which have lower numbers. Where the task
 * has closed its, @file itself. */
static int own_descriptor(int file)
{
	pid_t self = getpid();

	for (int fd = 0; fd < file; fd++) {
		if (fcntl(fd, F_GETFD) >= 0 &&
		    syscall(SYS_kcmp, self, self, KCMP_FILE, fd, file) == 0)
			return fd;
	}
	return file;
}

static int descriptor_for(struct mappings *table, const char *path, int file, int *ret_fd)
{
	int free_fds[VMA_FREE_FDS], fd, ret;

	if (table->host_copies) {
		*ret_fd = own_descriptor(file);
		return 0;
	}
	if (run_goes_on(table, path)) {
		*ret_fd = table->run_fd;
		return 0;
	}
	fd = fd_dup_above(file, file + 1);
	if (fd < 0)
		return fd;
	ret = find_free_fds(file, free_fds);
	if (ret < 0) {
		(void)close(fd);
		return ret;
	}
	table->run_path = path;
	table->run_fd = fd;
	memcpy(table->run_free_fds, free_fds, sizeof(free_fds));
	*ret_fd = fd;
	return 0;
}

int mappings_update(struct mappings *table, const char *path, uint64_t addr, uint64_t old_offset,
		    uint64_t *ret_new_offset, int *ret_fd)
{
	int minor = proc_device_of_path(path);
	struct target target = { 0 };
	int file, fd, ret;

	if (minor < 0)
		return -ENOTSUP;
	sort(table);
	ret = find_target(table, (uint32_t)minor, addr, old_offset, &target);
	if (ret < 0)
		return ret;
	file = mappings_find_file(table, target.saved_minor);
	ret = file < 0 ? -EBADF : descriptor_for(table, path, file, &fd);
	if (ret < 0)
		return log_error(ret, "mapping 0x%" PRIx64 ": cannot give out %s", addr, path);

	/* Nothing of ours may be left open when the task runs, and no hook comes after the last.
	 * Where there is none, the restore unit has seen to that. */
	if (table->num_left > 0 && --table->num_left == 0)
		close_files(table, fd);
	*ret_new_offset = target.offset;
	*ret_fd = fd;
	return 0;
}
