// SPDX-License-Identifier: GPL-2.0-only
/* Memory in which contents wait to be written, and the threads that write them. save.c copies
 * the contents, and knows how a range is written. */
#include "content/pool.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "amdgpu_plugin_util.h"
#include "content/pool_part.h"
#include "content/slots.h"
#include "kernel/cgroup.h"

/* Each submission lists the pages of its part, so parts are small. A large one makes the fixed cost
 * of a submission small, and of a request to storage. */
#define PART_MAX (2 * SDMA_HUGE_PAGE)
#define PART_MIN (CONTENT_ALIGNMENT + 2 * SLOT_MARGIN)
/* So that the engine and storage are busy at the same time with little memory, too. */
#define PARTS_WANTED 8

/* After so many parts, the free memory of the system is looked at again. */
#define PARTS_OF_STEP 64

#define THREADS_MAX 12u

struct pool_gpu {
	/* What it is to have. */
	struct pool_share share;
	struct sdma *gpu;
	size_t num_parts;
	/* Under the lock of the pool. */
	pthread_cond_t given;
	struct pool_part *free;
};

struct pool {
	char *memory;
	size_t size;
	size_t part_size;
	struct pool_gpu *gpus;
	size_t num_gpus;
	/* Those of all GPUs, in turns. */
	struct pool_part *parts;
	size_t num_parts;
	/* Some of the parts that were to be prepared could not be. */
	bool is_short;
	pthread_t threads[THREADS_MAX];
	unsigned int num_threads;
	/* Guards the fields below. */
	pthread_mutex_t lock;
	pthread_cond_t queued;
	struct pool_part *first, **last;
	/* GPUs whose contents are being copied. */
	unsigned int copying;
	/* A copy has had to wait for a part. */
	bool was_full;
	bool gpus_closed, ends;
	/* The error after which the memory is lost, or 0. */
	int lost;
	const char *lost_action;
};

static unsigned int count_threads(void)
{
	size_t processors = usable_processors();

	return processors && processors < THREADS_MAX ? (unsigned int)processors : THREADS_MAX;
}

/* While the memory is prepared: the next part, and the first that a GPU or the system refused. */
struct preparation {
	struct pool *pool;
	uint64_t floor;
	size_t next, refused;
};

static int make_present(char *memory, size_t size)
{
	if (!madvise(memory, size, MADV_POPULATE_WRITE))
		return 0;
	if (errno != EINVAL)
		return -errno;
	for (size_t at = 0; at < size; at += CONTENT_ALIGNMENT)
		((volatile char *)memory)[at] = 0;
	return 0;
}

static bool is_free(uint64_t floor)
{
	uint64_t bytes = 0;

	return !cgroup_find_memory(&bytes) && bytes >= floor;
}

static int prepare_part(const struct preparation *preparation, size_t index)
{
	struct pool *pool = preparation->pool;
	struct pool_part *part = &pool->parts[index];
	int ret = 0;

	if ((index + 1) % PARTS_OF_STEP == 0 && !is_free(preparation->floor))
		return -ENOMEM;
	ret = make_present(part->memory, pool->part_size);
	return ret < 0 ? ret
		       : sdma_register(part->gpu->gpu, part->memory, pool->part_size, &part->bo);
}

static void *prepare_parts(void *argument)
{
	struct preparation *preparation = argument;
	size_t index;

	while ((index = __atomic_fetch_add(&preparation->next, 1, __ATOMIC_RELAXED)) <
	       __atomic_load_n(&preparation->refused, __ATOMIC_RELAXED)) {
		if (!prepare_part(preparation, index))
			continue;
		/* Other threads may have noted another part. */
		HOLD(&preparation->pool->lock);
		if (index < preparation->refused)
			__atomic_store_n(&preparation->refused, index, __ATOMIC_RELAXED);
	}
	return NULL;
}

static void release_bos(struct pool *pool, size_t from)
{
	for (size_t i = from; pool->parts && i < pool->num_parts; i++)
		sdma_bo_release(&pool->parts[i].bo);
}

/* The parts behind the first that was refused go back to the system. */
static void drop_refused(struct pool *pool, size_t refused)
{
	size_t kept = slots_round_up(refused * pool->part_size);

	release_bos(pool, refused);
	pool->is_short = refused < pool->num_parts;
	while (pool->num_parts > refused)
		pool->parts[--pool->num_parts].gpu->num_parts--;
	if (kept < pool->size)
		(void)munmap(pool->memory + kept, pool->size - kept);
	pool->size = kept < pool->size ? kept : pool->size;
}

static void prepare(struct pool *pool, uint64_t floor)
{
	struct preparation preparation = { .pool = pool,
					   .floor = floor,
					   .refused = pool->num_parts };
	pthread_t threads[THREADS_MAX];
	unsigned int count = count_threads(), started = 1;

	while (started < count && !thread_start(&threads[started], prepare_parts, &preparation))
		started++;
	(void)prepare_parts(&preparation);
	while (started > 1)
		(void)pthread_join(threads[--started], NULL);
	drop_refused(pool, preparation.refused);
}

/* The GPUs that can be opened. */
static int open_gpus(struct pool *pool, const struct pool_share *shares, size_t count)
{
	pool->gpus = calloc(count + 1, sizeof(*pool->gpus));
	if (!pool->gpus)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		struct pool_gpu *gpu = &pool->gpus[pool->num_gpus];

		if (sdma_open_bare(shares[i].minor, 0, CONTENT_ALIGNMENT, &gpu->gpu) < 0)
			continue;
		(void)pthread_cond_init(&gpu->given, NULL);
		gpu->share = shares[i];
		pool->num_gpus++;
	}
	return pool->num_gpus ? 0 : -ENODEV;
}

/* The GPUs take turns, so that each has its part of what can be prepared. */
static void deal_parts(struct pool *pool)
{
	size_t dealt = 0;

	for (size_t turn = 1; dealt < pool->num_parts; turn++) {
		for (size_t i = 0; i < pool->num_gpus; i++) {
			struct pool_gpu *gpu = &pool->gpus[i];
			size_t due = gpu->share.bytes / pool->part_size * turn / pool->num_parts;

			while (gpu->num_parts < due && dealt < pool->num_parts) {
				gpu->num_parts++;
				pool->parts[dealt++].gpu = gpu;
			}
		}
	}
}

static int map_parts(struct pool *pool)
{
	uint64_t bytes = 0;
	size_t part;

	for (size_t i = 0; i < pool->num_gpus; i++)
		bytes += pool->gpus[i].share.bytes;
	part = bytes / pool->num_gpus / PARTS_WANTED / CONTENT_ALIGNMENT * CONTENT_ALIGNMENT;
	/* The kernel registers whole pages of its own size. */
	part = slots_round_up(clamp(part, PART_MIN, PART_MAX));
	pool->part_size = part;
	for (size_t i = 0; i < pool->num_gpus; i++)
		pool->num_parts += pool->gpus[i].share.bytes / part;
	if (!pool->num_parts)
		return -ENOMEM;
	pool->size = slots_round_up(pool->num_parts * part);
	pool->memory = slots_map(pool->size);
	pool->parts = calloc(pool->num_parts, sizeof(*pool->parts));
	if (!pool->memory || !pool->parts)
		return -ENOMEM;
	for (size_t i = 0; i < pool->num_parts; i++)
		pool->parts[i].memory = pool->memory + i * part;
	deal_parts(pool);
	return 0;
}

static struct pool *make_pool(void)
{
	struct pool *pool = calloc(1, sizeof(*pool));

	if (!pool)
		return NULL;
	(void)pthread_mutex_init(&pool->lock, NULL);
	(void)pthread_cond_init(&pool->queued, NULL);
	pool->last = &pool->first;
	return pool;
}

static int set_up(struct pool *pool, const struct pool_share *shares, size_t count, uint64_t floor)
{
	int ret = open_gpus(pool, shares, count);

	if (!ret)
		ret = is_free(floor) ? map_parts(pool) : -ENOMEM;
	if (ret < 0)
		return ret;
	prepare(pool, floor);
	return pool->num_parts ? 0 : -ENOMEM;
}

int pool_new(const struct pool_share *shares, size_t count, uint64_t floor, struct pool **ret_pool)
{
	struct pool *pool = make_pool();
	int ret = pool ? set_up(pool, shares, count, floor) : -ENOMEM;

	if (ret < 0) {
		pool_free(pool);
		return ret;
	}
	for (size_t i = pool->num_parts; i-- > 0;)
		pool_give(pool, &pool->parts[i]);
	*ret_pool = pool;
	return 0;
}

uint64_t pool_size(const struct pool *pool)
{
	return pool->num_parts * pool->part_size;
}

bool pool_is_short(const struct pool *pool)
{
	return pool->is_short;
}

size_t pool_part_size(const struct pool *pool)
{
	return pool->part_size;
}

/* A GPU without parts is saved without the pool. */
struct pool_gpu *pool_find_gpu(const struct pool *pool, uint32_t minor)
{
	for (size_t i = 0; i < pool->num_gpus; i++) {
		if (pool->gpus[i].share.minor == minor && pool->gpus[i].num_parts)
			return &pool->gpus[i];
	}
	return NULL;
}

struct pool_part *pool_take(struct pool *pool, struct pool_gpu *gpu,
			    bool (*is_wanted)(void *argument), void *argument)
{
	struct pool_part *part;

	HOLD(&pool->lock);
	while (!gpu->free && !pool->lost && is_wanted(argument)) {
		pool->was_full = true;
		(void)pthread_cond_broadcast(&pool->queued);
		(void)pthread_cond_wait(&gpu->given, &pool->lock);
	}
	part = pool->lost ? NULL : gpu->free;
	if (part)
		gpu->free = part->next;
	return part;
}

static void wake_all(struct pool *pool)
{
	for (size_t i = 0; i < pool->num_gpus; i++)
		(void)pthread_cond_broadcast(&pool->gpus[i].given);
}

void pool_wake(struct pool *pool)
{
	HOLD(&pool->lock);
	wake_all(pool);
}

void pool_give(struct pool *pool, struct pool_part *part)
{
	struct pool_gpu *gpu = part->gpu;

	HOLD(&pool->lock);
	if (pool->gpus_closed)
		(void)madvise(part->memory, pool->part_size, MADV_DONTNEED);
	part->next = gpu->free;
	gpu->free = part;
	(void)pthread_cond_signal(&gpu->given);
}

void pool_lose(struct pool *pool, int ret, const char *action)
{
	HOLD(&pool->lock);
	if (!pool->lost) {
		pool->lost = ret;
		pool->lost_action = action;
	}
	wake_all(pool);
}

int pool_lost_by(struct pool *pool, const char **ret_action)
{
	HOLD(&pool->lock);
	*ret_action = pool->lost_action;
	return pool->lost;
}

void pool_write(struct pool *pool, struct pool_part *part, void (*write)(struct pool_part *part))
{
	part->write = write;
	part->next = NULL;
	HOLD(&pool->lock);
	*pool->last = part;
	pool->last = &part->next;
	(void)pthread_cond_signal(&pool->queued);
}

void pool_begin_copy(struct pool *pool)
{
	HOLD(&pool->lock);
	pool->copying++;
}

void pool_end_copy(struct pool *pool)
{
	HOLD(&pool->lock);
	if (!--pool->copying)
		(void)pthread_cond_broadcast(&pool->queued);
}

/* Called with the lock. Until all is copied, writing would only take bandwidth of the memory from
 * the copy, for which the job stands still. */
static bool may_write(const struct pool *pool)
{
	return !pool->copying || pool->was_full;
}

/* NULL: the threads end. */
static struct pool_part *take_queued(struct pool *pool)
{
	struct pool_part *part;

	HOLD(&pool->lock);
	while (!(pool->first && may_write(pool)) && !pool->ends)
		(void)pthread_cond_wait(&pool->queued, &pool->lock);
	part = pool->first;
	if (part)
		pool->first = part->next;
	if (!pool->first)
		pool->last = &pool->first;
	return part;
}

static void *write_parts(void *argument)
{
	struct pool *pool = argument;
	struct pool_part *part;

	while ((part = take_queued(pool))) {
		part->write(part);
		pool_give(pool, part);
	}
	return NULL;
}

int pool_start(struct pool *pool)
{
	unsigned int count = count_threads();
	int ret = 0;

	while (!ret && pool->num_threads < count) {
		ret = thread_start(&pool->threads[pool->num_threads], write_parts, pool);
		pool->num_threads += !ret;
	}
	return pool->num_threads ? 0 : ret;
}

static void close_gpus(struct pool *pool)
{
	release_bos(pool, 0);
	for (size_t i = 0; i < pool->num_gpus; i++) {
		if (pool->gpus[i].gpu)
			sdma_close(take_ptr(&pool->gpus[i].gpu));
	}
}

void pool_close_gpus(struct pool *pool)
{
	close_gpus(pool);
	HOLD(&pool->lock);
	pool->gpus_closed = true;
	for (size_t i = 0; i < pool->num_gpus; i++) {
		for (struct pool_part *part = pool->gpus[i].free; part; part = part->next)
			(void)madvise(part->memory, pool->part_size, MADV_DONTNEED);
	}
}

static void end_threads(struct pool *pool)
{
	(void)pthread_mutex_lock(&pool->lock);
	pool->ends = true;
	(void)pthread_cond_broadcast(&pool->queued);
	(void)pthread_mutex_unlock(&pool->lock);
	while (pool->num_threads)
		(void)pthread_join(pool->threads[--pool->num_threads], NULL);
}

void pool_free(struct pool *pool)
{
	if (!pool)
		return;
	end_threads(pool);
	close_gpus(pool);
	if (pool->memory && !pool->lost)
		(void)munmap(pool->memory, pool->size);
	for (size_t i = 0; i < pool->num_gpus; i++)
		(void)pthread_cond_destroy(&pool->gpus[i].given);
	(void)pthread_cond_destroy(&pool->queued);
	(void)pthread_mutex_destroy(&pool->lock);
	free(pool->gpus);
	free(pool->parts);
	free(pool);
}
