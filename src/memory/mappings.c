// SPDX-License-Identifier: GPL-2.0-only
/* Tells CRIU the new offset and file of each device mapping of a task. gpu_files.c opens and keeps
 * the files. */
#include "memory/mappings.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "amdgpu_plugin_util.h"
#include "criu/log.h"
#include "kernel/kfd.h"
#include "kernel/proc.h"
#include "memory/gpu_files.h"

int mappings_add_bo(struct mappings *mappings, const struct mapped_bo *bo)
{
	mappings->sorted = false;
	return array_append(&mappings->bos, &mappings->num_bos, sizeof(*bo), bo);
}

int mappings_add_gpu(struct mappings *mappings, const struct mapped_gpu *gpu)
{
	return array_append(&mappings->gpus, &mappings->num_gpus, sizeof(*gpu), gpu);
}

void mappings_done(struct mappings *mappings)
{
	free(mappings->bos);
	free(mappings->gpus);
	*mappings = (struct mappings){ 0 };
}

/* The distance of @offset from the start of @bo. The gpu_ids in offsets of /dev/kfd do not count: a
 * mapping may have the id that the process knows, and its BO another one. */
static uint64_t distance(const struct mapped_bo *bo, uint64_t offset)
{
	if (bo->saved_minor)
		return offset - bo->old_offset;
	return (offset & ~KFD_MMAP_GPU_ID_MASK) - (bo->old_offset & ~KFD_MMAP_GPU_ID_MASK);
}

static bool covers(const struct mapped_bo *bo, uint64_t offset)
{
	return distance(bo, offset) < bo->size;
}

static int compare_addresses(const void *a, const void *b)
{
	const struct mapped_bo *one = a, *other = b;

	return ORDER(one->addr, other->addr) ?: ORDER(one->saved_minor, other->saved_minor)
					     ?: ORDER(one->old_offset, other->old_offset);
}

/* Some tasks have a hundred thousand BOs and map each of them. */
static void sort_by_address(struct mappings *mappings)
{
	if (!mappings->sorted && mappings->num_bos)
		qsort(mappings->bos, mappings->num_bos, sizeof(*mappings->bos), compare_addresses);
	mappings->sorted = true;
}

static size_t first_at(const struct mappings *mappings, uint64_t addr)
{
	const struct mapped_bo wanted = { .addr = addr };

	return lower_bound(&wanted, mappings->bos, mappings->num_bos, sizeof(wanted),
			   compare_addresses);
}

/* The BO with this address on its GPU. If there are several, prefers the BO of device @minor. */
static const struct mapped_bo *find_at(const struct mappings *mappings, uint32_t minor,
				       uint64_t addr, uint64_t offset)
{
	const struct mapped_bo *found = NULL;

	for (size_t i = first_at(mappings, addr); i < mappings->num_bos; i++) {
		const struct mapped_bo *bo = &mappings->bos[i];

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

/* The BO of a mapping. Programs map a BO at its GPU address, so the address identifies the BO. This
 * also works in a container where the name of a render node does not have the node's minor. For
 * other mappings the offset identifies the BO, but offsets are unique only within a device. Those
 * of /dev/kfd identify a GPU only, which move_without_bo() finds. */
static const struct mapped_bo *find_bo(const struct mappings *mappings, uint32_t minor,
				       uint64_t addr, uint64_t offset)
{
	const struct mapped_bo *found = find_at(mappings, minor, addr, offset);

	for (size_t i = 0; minor && !found && i < mappings->num_bos; i++) {
		const struct mapped_bo *bo = &mappings->bos[i];

		if (bo->saved_minor == minor && covers(bo, offset))
			found = bo;
	}
	return found;
}

/* For mappings of /dev/kfd that have no BO at their address: the event page of the process, and
 * doorbells of an APU. Which kernel made the offset is unknown, so its id may be that of two GPUs.
 */
static int move_without_bo(const struct mappings *mappings, uint64_t offset,
			   uint64_t *ret_new_offset)
{
	uint32_t id = (uint32_t)((offset & KFD_MMAP_GPU_ID_MASK) >> KFD_MMAP_GPU_ID_SHIFT);
	const struct mapped_gpu *found = NULL;

	if (offset >> KFD_MMAP_TYPE_SHIFT == KFD_MMAP_EVENTS) {
		*ret_new_offset = offset;
		return 0;
	}
	for (size_t i = 0; i < mappings->num_gpus; i++) {
		if (mappings->gpus[i].old_id != id && mappings->gpus[i].user_id != id)
			continue;
		if (found)
			return -EINVAL;
		found = &mappings->gpus[i];
	}
	if (!found)
		return -EINVAL;
	*ret_new_offset = kfd_mmap_offset_of(offset, found->new_id);
	return 0;
}

struct target {
	uint32_t saved_minor;
	uint64_t offset;
};

static int find_target(const struct mappings *mappings, uint32_t minor, uint64_t addr,
		       uint64_t offset, struct target *ret_target)
{
	const struct mapped_bo *bo = find_bo(mappings, minor, addr, offset);

	ret_target->saved_minor = minor;
	if (!bo && minor == 0 && !move_without_bo(mappings, offset, &ret_target->offset))
		return 0;
	if (!bo && gpu_files_find(mappings->files, minor) < 0)
		return -ENOTSUP;
	if (!bo)
		return log_error(-EINVAL,
				 "mapping 0x%" PRIx64 ": no BO of the image has offset 0x%" PRIx64,
				 addr, offset);
	/* The kernel maps a BO only from its start. */
	if (bo->old_offset != offset && minor)
		return log_error(-EINVAL,
				 "mapping 0x%" PRIx64 ": begins inside a BO (offset 0x%" PRIx64
				 " of BO at 0x%" PRIx64 "), which the kernel cannot map again",
				 addr, offset - bo->old_offset, bo->addr);
	ret_target->saved_minor = bo->saved_minor;
	ret_target->offset = bo->new_offset + distance(bo, offset);
	return 0;
}

/* Finds the lowest free descriptor numbers by duplicating @fd. */
static int find_free_fds(int fd, int free_fds[static RUN_FREE_FDS])
{
	int from = 0, ret = 0;

	for (size_t i = 0; !ret && i < RUN_FREE_FDS; i++) {
		free_fds[i] = fcntl(fd, F_DUPFD_CLOEXEC, from);
		if (free_fds[i] < 0)
			ret = -errno;
		else
			(void)close(free_fds[i]);
		from = free_fds[i] + 1;
	}
	return ret;
}

/* Whether CRIU's open_shmem() (criu/shmem.c) may have opened @fd: for an anonymous shared mapping
 * it makes a memfd without name and without seals, or opens the file of another task's mapping. */
static bool is_shared_memory(int fd)
{
	char path[32], name[32];
	ssize_t length;

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	length = readlink(path, name, sizeof(name) - 1);
	name[length < 0 ? 0 : length] = '\0';
	if (!strcmp(name, "/dev/zero (deleted)"))
		return true;
	return !strcmp(name, "/memfd: (deleted)") && fcntl(fd, F_GET_SEALS) == F_SEAL_SEAL;
}

/* Whether open_filemap() may have taken one of the numbers. It takes the lowest free one, or the
 * one after it. *@ret_shared: how many numbers open_shmem() has taken. */
static bool may_have_changed(const int free_fds[static RUN_FREE_FDS], size_t *ret_shared)
{
	size_t shared = 0;

	for (size_t i = 0; i < RUN_FREE_FDS; i++) {
		if (fcntl(free_fds[i], F_GETFD) < 0)
			continue;
		if (!is_shared_memory(free_fds[i]))
			return true;
		shared++;
	}
	*ret_shared = shared;
	return shared + 2 > RUN_FREE_FDS;
}

/* Whether CRIU still maps with the descriptor that the plugin returned last.
 *
 * CRIU's open_vmas() opens the mappings of a task in order. For a device mapping, open_filemap()
 * (criu/files-reg.c) calls this hook. It keeps the descriptor in its static variable ctx, but only
 * if the file or its flags differ from those of the mapping before. Otherwise it maps with the
 * descriptor in ctx, and never closes the new one. The new one would then stay open in the task.
 *
 * The plugin cannot read ctx. It concludes that ctx has changed from one of these:
 * - @path is another string: CRIU asks about another file.
 * - A number that was free is in use: open_filemap() has opened another file for a mapping without
 *   hook. That file has the lowest free number. For a memfd, memfd_open() may open it twice, and
 *   CRIU keeps the second descriptor. Shared memory does not count: open_shmem() takes the lowest
 *   free number, too, and keeps it, but does not touch ctx.
 * - The descriptor is closed. */
static bool run_goes_on(struct mappings_run *run, const char *path)
{
	size_t shared;

	if (run->path != path || may_have_changed(run->free_fds, &shared) ||
	    fcntl(run->fd, F_GETFD) < 0)
		return false;
	return !shared || find_free_fds(run->fd, run->free_fds) == 0;
}

/* The task's own descriptor of the open file @file, or @file if the task has closed it. The task's
 * descriptors have lower numbers. */
static int own_descriptor(int file)
{
	for (int fd = 0; fd < file; fd++) {
		if (fd_is_same(fd, file) > 0)
			return fd;
	}
	return file;
}

static int choose_descriptor(struct mappings *mappings, const char *path, int file, int *ret_fd)
{
	struct mappings_run run = { .path = path };
	int ret;

	if (mappings->host_copies) {
		*ret_fd = own_descriptor(file);
		return 0;
	}
	if (run_goes_on(&mappings->run, path)) {
		*ret_fd = mappings->run.fd;
		return 0;
	}
	run.fd = fd_dup_above(file, file + 1);
	if (run.fd < 0)
		return run.fd;
	ret = find_free_fds(file, run.free_fds);
	if (ret < 0) {
		(void)close(run.fd);
		return ret;
	}
	mappings->run = run;
	*ret_fd = run.fd;
	return 0;
}

int mappings_update(struct mappings *mappings, const char *path, uint64_t addr, uint64_t old_offset,
		    uint64_t *ret_new_offset, int *ret_fd)
{
	int minor = proc_device_of_path(path);
	struct target target = { 0 };
	int file, fd, ret;

	if (minor < 0)
		return -ENOTSUP;
	sort_by_address(mappings);
	ret = find_target(mappings, (uint32_t)minor, addr, old_offset, &target);
	if (ret < 0)
		return ret;
	file = gpu_files_find(mappings->files, target.saved_minor);
	ret = file < 0 ? -EBADF : choose_descriptor(mappings, path, file, &fd);
	if (ret < 0)
		return log_error(ret, "mapping 0x%" PRIx64 ": cannot duplicate a descriptor of %s",
				 addr, path);

	/* No hook runs after the last mapping. A file still open then would belong to the task. */
	if (mappings->num_pending > 0 && --mappings->num_pending == 0)
		gpu_files_close(mappings->files, fd);
	*ret_new_offset = target.offset;
	*ret_fd = fd;
	return 0;
}
