// SPDX-License-Identifier: GPL-2.0-only
/* The bytes of buffers, in single pages of the front end, and copies between them, page by page. An
 * untouched page takes no memory: it reads as the buffer's background, and a copy of zeros to it
 * leaves it untouched. */
#include "bo.h"

/* One side of an access: finds the memory of a page number. */
struct access {
	struct sim_bo *bo;
	bool write;
	struct sim_pin *pin; /* user pages held, or NULL */
	u64 first;           /* the number of the first of them */
	u64 last_wanted;     /* no later page is needed */
	int error;           /* the error of the last request for a page */
};

static u64 chunk_count(const struct sim_bo *bo)
{
	return (bo->size / SIM_PAGE_SIZE + SIM_BO_CHUNK - 1) / SIM_BO_CHUNK;
}

void sim_bo_data_done(struct sim_bo *bo)
{
	u64 i, j, pages = 0;

	for (i = 0; bo->chunks && i < chunk_count(bo); i++) {
		if (!bo->chunks[i])
			continue;
		for (j = 0; j < SIM_BO_CHUNK; j++) {
			if (!bo->chunks[i][j])
				continue;
			sim_os_page_free(bo->chunks[i][j]);
			pages++;
		}
		sim_os_free(bo->chunks[i]);
	}
	sim_os_free(bo->chunks);
	bo->chunks = NULL;
	sim_count(bo->gpu->sim, SIM_COUNT_PAGES, -(s64)pages);
}

int sim_bo_data_init(struct sim_bo *bo)
{
	bo->chunks = sim_os_alloc(chunk_count(bo) * sizeof(*bo->chunks));
	return bo->chunks ? 0 : -ENOMEM;
}

static void **chunk_get(struct sim_bo *bo, u64 number, bool create)
{
	void **chunk = __atomic_load_n(&bo->chunks[number], __ATOMIC_ACQUIRE);

	if (chunk || !create)
		return chunk;
	chunk = sim_os_alloc(SIM_BO_CHUNK * sizeof(*chunk));
	if (chunk)
		__atomic_store_n(&bo->chunks[number], chunk, __ATOMIC_RELEASE);
	return chunk;
}

/* @whole: the caller overwrites the whole page, so its old contents do not matter. */
static void *page_create(struct sim_bo *bo, u64 index, bool whole)
{
	void **chunk, *page = NULL;

	sim_lock(&bo->lock);
	chunk = chunk_get(bo, index / SIM_BO_CHUNK, true);
	if (!chunk)
		goto out;
	page = chunk[index % SIM_BO_CHUNK];
	if (page)
		goto out;
	page = sim_os_page_alloc();
	if (!page)
		goto out;
	if (!whole)
		memcpy(page, bo->background, SIM_PAGE_SIZE);
	__atomic_store_n(&chunk[index % SIM_BO_CHUNK], page, __ATOMIC_RELEASE);
	sim_count(bo->gpu->sim, SIM_COUNT_PAGES, 1);
out:
	sim_unlock(&bo->lock);
	return page;
}

static void *page_lookup(struct sim_bo *bo, u64 index)
{
	void **chunk;

	if (bo->kind != SIM_BO_MEMORY || index >= bo->size / SIM_PAGE_SIZE)
		return NULL;
	chunk = chunk_get(bo, index / SIM_BO_CHUNK, false);
	return chunk ? __atomic_load_n(&chunk[index % SIM_BO_CHUNK], __ATOMIC_ACQUIRE) : NULL;
}

static void *page_get(struct sim_bo *bo, u64 index, bool whole)
{
	void *page = page_lookup(bo, index);

	if (page || bo->kind != SIM_BO_MEMORY || index >= bo->size / SIM_PAGE_SIZE)
		return page;
	return page_create(bo, index, whole);
}

void *sim_bo_page(struct sim_bo *bo, u64 index, bool create)
{
	bo = sim_bo_storage(bo);
	return create ? page_get(bo, index, false) : page_lookup(bo, index);
}

static const void *background(struct sim_bo *bo)
{
	return sim_bo_storage(bo)->background;
}

static int access_open(struct access *access, struct sim_bo *bo, u64 offset, u64 size, bool write)
{
	memset(access, 0, sizeof(*access));
	if (offset > bo->size || size > bo->size - offset || bo->kind == SIM_BO_IO)
		return -EFAULT;
	if (write && bo->user_readonly)
		return -EFAULT;
	access->bo = bo;
	access->write = write;
	access->last_wanted = size ? (offset + size - 1) / SIM_PAGE_SIZE : 0;
	if (bo->kind != SIM_BO_USERPTR)
		return 0;
	access->pin = sim_os_alloc(sizeof(*access->pin));
	return access->pin ? 0 : -ENOMEM;
}

static void access_close(struct access *access)
{
	if (!access->pin)
		return;
	if (access->pin->count)
		sim_os_mm_unpin(access->pin);
	sim_os_free(access->pin);
	access->pin = NULL;
}

static void *user_page(struct access *access, u64 index)
{
	struct sim_pin *pin = access->pin;
	u64 addr = (access->bo->user_addr & ~(SIM_PAGE_SIZE - 1)) + index * SIM_PAGE_SIZE;
	u32 count;

	if (pin->count && index >= access->first && index < access->first + pin->count)
		return pin->page[index - access->first];
	if (pin->count)
		sim_os_mm_unpin(pin);
	pin->count = 0;
	count = (u32)min(access->last_wanted - index + 1, (u64)SIM_PIN_PAGES);
	access->error = sim_os_mm_pin(access->bo->mm, addr, count, access->write, pin);
	if (access->error < 0) {
		pin->count = 0;
		return NULL;
	}
	access->first = index;
	return pin->page[0];
}

static const void *readable_page(struct access *access, u64 index)
{
	const void *page;

	if (access->pin)
		return user_page(access, index);
	page = sim_bo_page(access->bo, index, false);
	return page ? page : background(access->bo);
}

static void *writable_page(struct access *access, u64 index, bool whole)
{
	return access->pin ? user_page(access, index)
			   : page_get(sim_bo_storage(access->bo), index, whole);
}

/* The error of the last request for a page. */
static int lost_page(const struct access *access)
{
	return access->error ? access->error : -ENOMEM;
}

/* How many of @size bytes are in the page of @offset. */
static u64 in_page(u64 offset, u64 size)
{
	return min(size, SIM_PAGE_SIZE - offset % SIM_PAGE_SIZE);
}

int sim_bo_read(struct sim_bo *bo, u64 offset, void *data, u64 size)
{
	struct access src;
	u8 *to = data;
	int ret;

	ret = access_open(&src, bo, offset, size, false);
	while (ret == 0 && size) {
		u64 bytes = in_page(offset, size);
		const u8 *page = readable_page(&src, offset / SIM_PAGE_SIZE);

		if (!page) {
			ret = lost_page(&src);
			break;
		}
		memcpy(to, page + offset % SIM_PAGE_SIZE, bytes);
		to += bytes;
		offset += bytes;
		size -= bytes;
	}
	access_close(&src);
	return ret;
}

int sim_bo_write(struct sim_bo *bo, u64 offset, const void *data, u64 size)
{
	struct access dst;
	const u8 *from = data;
	int ret;

	ret = access_open(&dst, bo, offset, size, true);
	while (ret == 0 && size) {
		u64 bytes = in_page(offset, size);
		u8 *page = writable_page(&dst, offset / SIM_PAGE_SIZE, bytes == SIM_PAGE_SIZE);

		if (!page) {
			ret = lost_page(&dst);
			break;
		}
		memcpy(page + offset % SIM_PAGE_SIZE, from, bytes);
		from += bytes;
		offset += bytes;
		size -= bytes;
	}
	access_close(&dst);
	return ret;
}

int sim_bo_exchange(struct sim_bo *bo, u64 offset, u32 bytes, u64 *expected, u64 desired)
{
	struct access dst;
	u8 *page;
	int ret;

	ret = access_open(&dst, bo, offset, bytes, true);
	if (ret == 0) {
		page = writable_page(&dst, offset / SIM_PAGE_SIZE, false);
		if (page)
			sim_exchange(page + offset % SIM_PAGE_SIZE, bytes, expected, desired);
		else
			ret = lost_page(&dst);
	}
	access_close(&dst);
	return ret;
}

/* Whether the copy would write zeros to an untouched page that reads as zero. */
static bool nothing_to_do(struct access *dst, u64 index, const void *from)
{
	const void *zero = dst->bo->gpu->sim->zero_page;

	return from == zero && !dst->pin && background(dst->bo) == zero &&
	       !sim_bo_page(dst->bo, index, false);
}

static int copy_in_page(struct access *dst, u64 dst_offset, struct access *src, u64 src_offset,
			u64 bytes)
{
	const u8 *from = readable_page(src, src_offset / SIM_PAGE_SIZE);
	u8 *to;

	if (!from)
		return lost_page(src);
	if (nothing_to_do(dst, dst_offset / SIM_PAGE_SIZE, from))
		return 0;
	to = writable_page(dst, dst_offset / SIM_PAGE_SIZE, bytes == SIM_PAGE_SIZE);
	if (!to)
		return lost_page(dst);
	/* A copy may overlap itself. The engine goes from low to high addresses. */
	memmove(to + dst_offset % SIM_PAGE_SIZE, from + src_offset % SIM_PAGE_SIZE, bytes);
	return 0;
}

int sim_bo_copy(struct sim_bo *dst_bo, u64 dst_offset, struct sim_bo *src_bo, u64 src_offset,
		u64 size)
{
	struct access dst, src;
	int ret;

	ret = access_open(&src, src_bo, src_offset, size, false);
	if (ret < 0)
		return ret;
	ret = access_open(&dst, dst_bo, dst_offset, size, true);
	while (ret == 0 && size) {
		u64 bytes = min(in_page(src_offset, size), in_page(dst_offset, size));

		ret = copy_in_page(&dst, dst_offset, &src, src_offset, bytes);
		src_offset += bytes;
		dst_offset += bytes;
		size -= bytes;
	}
	access_close(&dst);
	access_close(&src);
	return ret;
}

static void fill_words(u8 *to, u32 pattern, u64 bytes)
{
	u64 i;

	for (i = 0; i < bytes; i += sizeof(pattern))
		memcpy(to + i, &pattern, sizeof(pattern));
}

int sim_bo_fill(struct sim_bo *bo, u64 offset, u32 pattern, u64 size)
{
	struct access dst;
	int ret;

	ret = access_open(&dst, bo, offset, size, true);
	while (ret == 0 && size) {
		u64 bytes = in_page(offset, size);
		u8 *page = writable_page(&dst, offset / SIM_PAGE_SIZE, bytes == SIM_PAGE_SIZE);

		if (!page) {
			ret = lost_page(&dst);
			break;
		}
		fill_words(page + offset % SIM_PAGE_SIZE, pattern, bytes);
		offset += bytes;
		size -= bytes;
	}
	access_close(&dst);
	return ret;
}
