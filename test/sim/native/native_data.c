// SPDX-License-Identifier: GPL-2.0-only
/* Stores the bytes of buffers in memory files. The kernel copies between file and program in one
 * step, and reports EFAULT for unmapped memory. Unwritten pages take no memory. */
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include "abi_drm.h"
#include "native.h"
#include "native_cuda.h"

#define BOUNCE_BYTES (256u << 10)
#define PROBE_BYTES  64u

int sim_bo_data_init(struct sim_bo *sim_bo)
{
	struct native_bo *bo = native_bo_of(sim_bo);
	struct native *native = native_get();
	char name[64];
	int fd;

	(void)snprintf(name, sizeof(name), NATIVE_BO_NAME, sim_bo->gpu->gpu_id, sim_bo->domains,
		       sim_bo->background == native->sim.poison_page, sim_bo->kfd_flags,
		       (unsigned long long)bo->offset);
	fd = native_fd_memory(name, sim_bo->size);
	if (fd < 0)
		return -ENOMEM;
	if (native_cuda_bo_init(bo) < 0) {
		(void)NATIVE_REAL(close)(fd);
		return -ENOMEM;
	}
	bo->fd = fd;
	native_bo_enter(native, bo);
	return 0;
}

void sim_bo_data_done(struct sim_bo *sim_bo)
{
	struct native_bo *bo = native_bo_of(sim_bo);

	if (bo->map)
		(void)NATIVE_REAL(munmap)(bo->map, sim_bo->size);
	(void)NATIVE_REAL(close)(bo->fd);
}

static bool is_poisoned(const struct sim_bo *bo)
{
	return bo->background == bo->gpu->sim->poison_page;
}

/* Finds the end of the written part that contains @offset. The file searches page by page for it,
 * so the result is cached. */
static u64 written_until(struct native_bo *bo, u64 offset)
{
	u64 end;

	sim_lock(&bo->written_lock);
	if (offset < bo->written_from || offset >= bo->written_to) {
		off_t hole = NATIVE_REAL(lseek)(bo->fd, (off_t)offset, SEEK_HOLE);

		bo->written_from = offset;
		bo->written_to = hole < 0 ? bo->bo.size : (u64)hole;
	}
	end = bo->written_to;
	sim_unlock(&bo->written_lock);
	return end;
}

static bool is_known(struct native_bo *bo, u64 offset)
{
	bool known;

	sim_lock(&bo->written_lock);
	known = offset >= bo->written_from && offset < bo->written_to;
	sim_unlock(&bo->written_lock);
	return known;
}

/* Finds the next written part of [@offset, @end); false: there is none. */
static bool find_data(struct native_bo *bo, u64 offset, u64 end, u64 *ret_start, u64 *ret_end)
{
	off_t start = is_known(bo, offset) ? (off_t)offset
					   : NATIVE_REAL(lseek)(bo->fd, (off_t)offset, SEEK_DATA);

	if (start < 0 || (u64)start >= end)
		return false;
	*ret_start = (u64)start;
	*ret_end = min(end, written_until(bo, (u64)start));
	return true;
}

static bool is_untouched(struct native_bo *bo, u64 offset, u64 end)
{
	u64 start, stop;

	return !find_data(bo, offset, end, &start, &stop);
}

static int read_all(const struct native_bo *bo, u64 offset, void *data, u64 size)
{
	u8 *to = data;

	while (size) {
		ssize_t got = pread(bo->fd, to, size, (off_t)offset);

		if (got <= 0)
			return got < 0 && errno == EINTR ? -EAGAIN : -EFAULT;
		to += got;
		offset += (u64)got;
		size -= (u64)got;
	}
	return 0;
}

static int write_all(const struct native_bo *bo, u64 offset, const void *data, u64 size)
{
	const u8 *from = data;

	while (size) {
		ssize_t put = pwrite(bo->fd, from, size, (off_t)offset);

		if (put <= 0)
			return put < 0 && errno == ENOSPC ? -ENOMEM : -EFAULT;
		from += put;
		offset += (u64)put;
		size -= (u64)put;
	}
	return 0;
}

/* Writes the background pattern to each page of [@at, @end) that was never written. */
static int poison_gaps(struct native_bo *bo, u64 at, u64 end)
{
	u64 start, stop;
	int ret = 0;

	while (ret == 0 && at < end) {
		if (!find_data(bo, at, end, &start, &stop))
			start = stop = end;
		for (; ret == 0 && at < start; at += SIM_PAGE_SIZE)
			ret = write_all(bo, at, bo->bo.background, SIM_PAGE_SIZE);
		at = stop;
	}
	return ret;
}

/* Searches for a hole, not for data. Behind the last written page, a search for data would scan a
 * hole up to the buffer's end. */
static int poison_page(struct native_bo *bo, u64 page)
{
	if (written_until(bo, page) > page)
		return 0;
	return write_all(bo, page, bo->bo.background, SIM_PAGE_SIZE);
}

/* Fills the first and the last page, because the coming write covers only a part of each. */
static int poison_ends(struct native_bo *bo, u64 offset, u64 size)
{
	u64 first = offset & ~(SIM_PAGE_SIZE - 1), last = (offset + size) & ~(SIM_PAGE_SIZE - 1);
	int ret = 0;

	if (offset != first)
		ret = poison_page(bo, first);
	if (ret == 0 && offset + size != last)
		ret = poison_page(bo, last);
	return ret;
}

/* While unwritten pages get their poison, no other thread may write, in this process or in a
 * process with a descriptor. */
static void lock_gaps(struct native_bo *bo)
{
	sim_lock(&bo->bo.lock);
	(void)flock(bo->fd, LOCK_EX);
}

static void unlock_gaps(struct native_bo *bo)
{
	(void)flock(bo->fd, LOCK_UN);
	sim_unlock(&bo->bo.lock);
}

int native_bo_prepare_cpu(struct native_bo *bo, u64 offset, u64 size)
{
	int ret = 0;

	/* The file has none of the bytes. */
	if (bo->device_memory)
		return -ENXIO;
	if (!is_poisoned(&bo->bo))
		return 0;
	lock_gaps(bo);
	ret = poison_gaps(bo, offset,
			  min(offset + size + SIM_PAGE_SIZE - 1, bo->bo.size) &
				  ~(SIM_PAGE_SIZE - 1));
	unlock_gaps(bo);
	return ret;
}

/* Fills the gaps that read as poison, after the whole range was read. */
static void fill_gaps(struct native_bo *bo, u64 offset, u8 *data, u64 size)
{
	int value = *(const u8 *)bo->bo.background;
	u64 at = offset, end = offset + size, start, stop;

	while (find_data(bo, at, end, &start, &stop)) {
		memset(data + (at - offset), value, start - at);
		at = stop;
	}
	memset(data + (at - offset), value, end - at);
}

static int memory_read(struct native_bo *bo, u64 offset, void *data, u64 size)
{
	int ret;

	if (bo->device_memory)
		return native_cuda_read(bo, offset, data, size);
	ret = read_all(bo, offset, data, size);
	if (ret == 0 && is_poisoned(&bo->bo))
		fill_gaps(bo, offset, data, size);
	return ret;
}

static bool is_zero(const u8 *data, u64 size)
{
	static const u8 zeros[PROBE_BYTES];
	u64 probe = min(size, (u64)PROBE_BYTES);

	return memcmp(data, zeros, probe) == 0 &&
	       (size == probe || memcmp(data, data + probe, size - probe) == 0);
}

/* True if the whole range is mapped. */
static bool is_mapped(const void *data, u64 size)
{
	uintptr_t first = (uintptr_t)data & ~(SIM_PAGE_SIZE - 1);

	return msync((void *)first, (uintptr_t)data + size - first, MS_ASYNC) == 0;
}

/* The size of the next piece of @data, up to the end of a buffer page, that is all zeros, or that
 * has other bytes in each page. */
static u64 find_run(u64 offset, const u8 *data, u64 size, bool *ret_zero)
{
	u64 run = 0;

	while (run < size) {
		u64 bytes = min(size - run, SIM_PAGE_SIZE - (offset + run) % SIM_PAGE_SIZE);
		bool zero = is_zero(data + run, bytes);

		if (run && zero != *ret_zero)
			break;
		*ret_zero = zero;
		run += bytes;
	}
	return run;
}

/* Zeros need no write where the buffer was never written. */
static int write_sparse(struct native_bo *bo, u64 offset, const u8 *data, u64 size)
{
	int ret = 0;

	while (ret == 0 && size) {
		bool zero = false;
		u64 run = find_run(offset, data, size, &zero);

		if (!zero || !is_untouched(bo, offset, offset + run))
			ret = write_all(bo, offset, data, run);
		offset += run;
		data += run;
		size -= run;
	}
	return ret;
}

static int memory_write(struct native_bo *bo, u64 offset, const void *data, u64 size)
{
	int ret;

	if (!is_mapped(data, size))
		return -EFAULT;
	if (bo->device_memory)
		return native_cuda_write(bo, offset, data, size);
	if (!is_poisoned(&bo->bo))
		return write_sparse(bo, offset, data, size);
	lock_gaps(bo);
	ret = poison_ends(bo, offset, size);
	if (ret == 0)
		ret = write_all(bo, offset, data, size);
	unlock_gaps(bo);
	return ret;
}

static void *user_at(const struct sim_bo *bo, u64 offset)
{
	return (void *)(uintptr_t)(bo->user_addr + offset);
}

static int check(struct sim_bo *bo, u64 offset, u64 size, bool write)
{
	if (offset > bo->size || size > bo->size - offset || bo->kind == SIM_BO_IO)
		return -EFAULT;
	if (write && bo->user_readonly)
		return -EFAULT;
	if (bo->kind == SIM_BO_USERPTR && !sim_os_is_owner())
		return -ESRCH;
	return 0;
}

static struct native_bo *memory_of(struct sim_bo *bo)
{
	return native_bo_of(sim_bo_storage(bo));
}

int sim_bo_read(struct sim_bo *bo, u64 offset, void *data, u64 size)
{
	int ret = check(bo, offset, size, false);

	if (ret < 0 || !size)
		return ret;
	if (bo->kind == SIM_BO_MEMORY)
		return memory_read(memory_of(bo), offset, data, size);
	if (!is_mapped(user_at(bo, offset), size))
		return -EFAULT;
	memcpy(data, user_at(bo, offset), size);
	return 0;
}

int sim_bo_write(struct sim_bo *bo, u64 offset, const void *data, u64 size)
{
	int ret = check(bo, offset, size, true);

	if (ret < 0 || !size)
		return ret;
	if (bo->kind == SIM_BO_MEMORY)
		return memory_write(memory_of(bo), offset, data, size);
	if (!is_mapped(user_at(bo, offset), size))
		return -EFAULT;
	memcpy(user_at(bo, offset), data, size);
	return 0;
}

/* Copies from low to high addresses, in steps as small as a page where the ranges overlap. */
static int copy_memory(struct sim_bo *dst, u64 dst_offset, struct sim_bo *src, u64 src_offset,
		       u64 size)
{
	u64 step = min(size, memory_of(dst) == memory_of(src) ? SIM_PAGE_SIZE : (u64)BOUNCE_BYTES);
	void *bounce = malloc(step);
	int ret = bounce ? 0 : -ENOMEM;

	while (ret == 0 && size) {
		u64 bytes = min(size, step);

		ret = memory_read(memory_of(src), src_offset, bounce, bytes);
		if (ret == 0)
			ret = memory_write(memory_of(dst), dst_offset, bounce, bytes);
		src_offset += bytes;
		dst_offset += bytes;
		size -= bytes;
	}
	free(bounce);
	return ret;
}

static int copy_user(struct sim_bo *dst, u64 dst_offset, struct sim_bo *src, u64 src_offset,
		     u64 size)
{
	if (!is_mapped(user_at(dst, dst_offset), size) ||
	    !is_mapped(user_at(src, src_offset), size))
		return -EFAULT;
	memmove(user_at(dst, dst_offset), user_at(src, src_offset), size);
	return 0;
}

int sim_bo_copy(struct sim_bo *dst, u64 dst_offset, struct sim_bo *src, u64 src_offset, u64 size)
{
	int ret = check(src, src_offset, size, false);

	if (ret == 0)
		ret = check(dst, dst_offset, size, true);
	if (ret < 0 || !size)
		return ret;
	if (dst->kind == SIM_BO_USERPTR && src->kind == SIM_BO_USERPTR)
		return copy_user(dst, dst_offset, src, src_offset, size);
	if (dst->kind == SIM_BO_USERPTR && memory_of(src)->device_memory)
		return native_cuda_copy_to_user(native_bo_of(dst), dst_offset, memory_of(src),
						src_offset, size);
	if (src->kind == SIM_BO_USERPTR && memory_of(dst)->device_memory)
		return native_cuda_copy_from_user(memory_of(dst), dst_offset, native_bo_of(src),
						  src_offset, size);
	if (dst->kind == SIM_BO_USERPTR)
		return memory_read(memory_of(src), src_offset, user_at(dst, dst_offset), size);
	if (src->kind == SIM_BO_USERPTR)
		return memory_write(memory_of(dst), dst_offset, user_at(src, src_offset), size);
	return copy_memory(dst, dst_offset, src, src_offset, size);
}

void *sim_bo_page(struct sim_bo *bo, u64 index)
{
	struct native_bo *storage = memory_of(bo);
	char *map;

	if (storage->bo.kind != SIM_BO_MEMORY || index >= bo->size / SIM_PAGE_SIZE)
		return NULL;
	if (native_bo_prepare_cpu(storage, index * SIM_PAGE_SIZE, SIM_PAGE_SIZE) < 0)
		return NULL;
	sim_lock(&storage->bo.lock);
	if (!storage->map) {
		map = NATIVE_REAL(mmap)(NULL, storage->bo.size, PROT_READ | PROT_WRITE, MAP_SHARED,
					storage->fd, 0);
		storage->map = map == MAP_FAILED ? NULL : map;
	}
	map = storage->map;
	sim_unlock(&storage->bo.lock);
	return map ? map + index * SIM_PAGE_SIZE : NULL;
}

static void exchange(void *at, u32 bytes, u64 *expected, u64 desired)
{
	u32 low = (u32)*expected;

	if (bytes == 8) {
		(void)__atomic_compare_exchange_n((u64 *)at, expected, desired, false,
						  __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
		return;
	}
	(void)__atomic_compare_exchange_n((u32 *)at, &low, (u32)desired, false, __ATOMIC_ACQ_REL,
					  __ATOMIC_ACQUIRE);
	*expected = low;
}

int sim_bo_exchange(struct sim_bo *bo, u64 offset, u32 bytes, u64 *expected, u64 desired)
{
	int ret = check(bo, offset, bytes, true);
	u8 *at;

	if (ret < 0)
		return ret;
	if (bo->kind == SIM_BO_MEMORY) {
		at = sim_bo_page(bo, offset / SIM_PAGE_SIZE);
		if (!at)
			return -ENOMEM;
		at += offset % SIM_PAGE_SIZE;
	} else {
		at = user_at(bo, offset);
		if (!is_mapped(at, bytes))
			return -EFAULT;
	}
	exchange(at, bytes, expected, desired);
	return 0;
}
