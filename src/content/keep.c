// SPDX-License-Identifier: GPL-2.0-only
/* Memory in which contents wait to be written, and the threads that write them. save.c copies
 * the contents, and knows how a range is written. */
#include "content/keep.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "amdgpu_plugin_util.h"
#include "content/keep_part.h"
#include "content/slots.h"
#include "content/staging.h"
#include "kernel/free_memory.h"

/* Each submission lists the pages of its part, so parts are small. A large one makes the fixed cost
 * of a submission small, and of a request to storage. */
#define PART_MAX (2 * SDMA_HUGE_PAGE)
#define PART_MIN (CONTENT_ALIGNMENT + 2 * SLOT_MARGIN)
/* So that the engine and storage are busy at the same time with little memory, too. */
#define PARTS_WANTED 8

/* After so many parts, the free memory of the system is looked at again. */
#define PARTS_OF_STEP 64

#define THREADS_MAX 12u

struct keep_gpu {
	uint32_t minor;
	struct sdma *gpu;
	size_t num_parts;
	/* Under the lock of the keep. */
	pthread_cond_t given;
	struct keep_part *free;
};

struct keep {
	char *memory;
	size_t size;
	size_t part_size;
	struct keep_gpu *gpus;
	size_t num_gpus;
	/* Those of all GPUs, in turns. */
	struct keep_part *parts;
	size_t num_parts;
	/* Some of the parts that were to be prepared could not be. */
	bool is_short;
	pthread_t threads[THREADS_MAX];
	unsigned int num_threads;
	/* Guards the fields below. */
	pthread_mutex_t lock;
	pthread_cond_t queued;
	struct keep_part *first, **last;
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
	struct keep *keep;
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

	return !free_memory_find(&bytes) && bytes >= floor;
}

static int prepare_part(const struct preparation *preparation, size_t index)
{
	struct keep *keep = preparation->keep;
	struct keep_part *part = &keep->parts[index];
	int ret = 0;

	if ((index + 1) % PARTS_OF_STEP == 0 && !is_free(preparation->floor))
		return -ENOMEM;
	ret = make_present(part->memory, keep->part_size);
	return ret < 0 ? ret
		       : sdma_register(part->gpu->gpu, part->memory, keep->part_size, &part->bo);
}

static void *prepare_parts(void *argument)
{
	struct preparation *preparation = argument;
	size_t index;

	while ((index = __atomic_fetch_add(&preparation->next, 1, __ATOMIC_RELAXED)) <
	       __atomic_load_n(&preparation->refused, __ATOMIC_RELAXED)) {
		size_t refused;

		if (!prepare_part(preparation, index))
			continue;
		/* Other threads may have noted another part. */
		refused = __atomic_load_n(&preparation->refused, __ATOMIC_RELAXED);
		while (index < refused &&
		       !__atomic_compare_exchange_n(&preparation->refused, &refused, index, false,
						    __ATOMIC_RELAXED, __ATOMIC_RELAXED))
			;
	}
	return NULL;
}

static void release_bos(struct keep *keep, size_t from)
{
	for (size_t i = from; keep->parts && i < keep->num_parts; i++)
		sdma_bo_release(&keep->parts[i].bo);
}

/* The parts behind the first that was refused go back to the system. */
static void drop_refused(struct keep *keep, size_t refused)
{
	size_t kept = staging_round_up(refused * keep->part_size);

	release_bos(keep, refused);
	keep->is_short = refused < keep->num_parts;
	while (keep->num_parts > refused)
		keep->parts[--keep->num_parts].gpu->num_parts--;
	if (kept < keep->size)
		(void)munmap(keep->memory + kept, keep->size - kept);
	keep->size = kept < keep->size ? kept : keep->size;
}

static void prepare(struct keep *keep, uint64_t floor)
{
	struct preparation preparation = { .keep = keep,
					   .floor = floor,
					   .refused = keep->num_parts };
	pthread_t threads[THREADS_MAX];
	unsigned int count = count_threads(), started = 1;

	while (started < count && !thread_start(&threads[started], prepare_parts, &preparation))
		started++;
	(void)prepare_parts(&preparation);
	while (started > 1)
		(void)pthread_join(threads[--started], NULL);
	drop_refused(keep, preparation.refused);
}

/* The GPUs that can be opened. *@ret_bytes: of all of them. */
static int open_gpus(struct keep *keep, const struct keep_share *shares, size_t count,
		     struct keep_share *opened, uint64_t *ret_bytes)
{
	*ret_bytes = 0;
	keep->gpus = calloc(count + 1, sizeof(*keep->gpus));
	if (!keep->gpus)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		struct keep_gpu *gpu = &keep->gpus[keep->num_gpus];

		if (sdma_open_bare(shares[i].minor, 0, CONTENT_ALIGNMENT, &gpu->gpu) < 0)
			continue;
		(void)pthread_cond_init(&gpu->given, NULL);
		gpu->minor = shares[i].minor;
		opened[keep->num_gpus++] = shares[i];
		*ret_bytes += shares[i].bytes;
	}
	return keep->num_gpus ? 0 : -ENODEV;
}

/* The GPUs take turns, so that each has its part of what can be prepared. */
static void deal_parts(struct keep *keep, const struct keep_share *shares)
{
	size_t wanted = 0, dealt = 0;

	for (size_t i = 0; i < keep->num_gpus; i++)
		wanted += shares[i].bytes / keep->part_size;
	for (size_t turn = 1; dealt < wanted; turn++) {
		for (size_t i = 0; i < keep->num_gpus; i++) {
			struct keep_gpu *gpu = &keep->gpus[i];
			size_t due = shares[i].bytes / keep->part_size * turn / wanted;

			while (gpu->num_parts < due && dealt < wanted) {
				gpu->num_parts++;
				keep->parts[dealt++].gpu = gpu;
			}
		}
	}
}

static int map_parts(struct keep *keep, const struct keep_share *shares, uint64_t bytes)
{
	size_t part = bytes / keep->num_gpus / PARTS_WANTED / CONTENT_ALIGNMENT * CONTENT_ALIGNMENT;

	/* The kernel registers whole pages of its own size. */
	part = staging_round_up(clamp(part, PART_MIN, PART_MAX));
	keep->part_size = part;
	for (size_t i = 0; i < keep->num_gpus; i++)
		keep->num_parts += shares[i].bytes / part;
	if (!keep->num_parts)
		return -ENOMEM;
	keep->size = staging_round_up(keep->num_parts * part);
	keep->memory = staging_map(keep->size);
	keep->parts = calloc(keep->num_parts, sizeof(*keep->parts));
	if (!keep->memory || !keep->parts)
		return -ENOMEM;
	for (size_t i = 0; i < keep->num_parts; i++)
		keep->parts[i].memory = keep->memory + i * part;
	deal_parts(keep, shares);
	return 0;
}

static struct keep *make_keep(void)
{
	struct keep *keep = calloc(1, sizeof(*keep));

	if (!keep)
		return NULL;
	(void)pthread_mutex_init(&keep->lock, NULL);
	(void)pthread_cond_init(&keep->queued, NULL);
	keep->last = &keep->first;
	return keep;
}

static int set_up(struct keep *keep, const struct keep_share *shares, size_t count, uint64_t floor)
{
	_cleanup_free_ struct keep_share *opened = calloc(count + 1, sizeof(*opened));
	uint64_t bytes;
	int ret = opened ? open_gpus(keep, shares, count, opened, &bytes) : -ENOMEM;

	if (!ret)
		ret = is_free(floor) ? map_parts(keep, opened, bytes) : -ENOMEM;
	if (ret < 0)
		return ret;
	prepare(keep, floor);
	return keep->num_parts ? 0 : -ENOMEM;
}

int keep_new(const struct keep_share *shares, size_t count, uint64_t floor, struct keep **ret_keep)
{
	struct keep *keep = make_keep();
	int ret = keep ? set_up(keep, shares, count, floor) : -ENOMEM;

	if (ret < 0) {
		keep_free(keep);
		return ret;
	}
	for (size_t i = keep->num_parts; i-- > 0;)
		keep_give(keep, &keep->parts[i]);
	*ret_keep = keep;
	return 0;
}

uint64_t keep_size(const struct keep *keep)
{
	return keep->num_parts * keep->part_size;
}

bool keep_is_short(const struct keep *keep)
{
	return keep->is_short;
}

size_t keep_part_size(const struct keep *keep)
{
	return keep->part_size;
}

/* A GPU without parts is saved without the keep. */
struct keep_gpu *keep_find_gpu(const struct keep *keep, uint32_t minor)
{
	for (size_t i = 0; i < keep->num_gpus; i++) {
		if (keep->gpus[i].minor == minor && keep->gpus[i].num_parts)
			return &keep->gpus[i];
	}
	return NULL;
}

struct keep_part *keep_take(struct keep *keep, struct keep_gpu *gpu,
			    bool (*is_wanted)(void *argument), void *argument)
{
	struct keep_part *part;

	(void)pthread_mutex_lock(&keep->lock);
	while (!gpu->free && !keep->lost && is_wanted(argument)) {
		keep->was_full = true;
		(void)pthread_cond_broadcast(&keep->queued);
		(void)pthread_cond_wait(&gpu->given, &keep->lock);
	}
	part = keep->lost ? NULL : gpu->free;
	if (part)
		gpu->free = part->next;
	(void)pthread_mutex_unlock(&keep->lock);
	return part;
}

static void wake_all(struct keep *keep)
{
	for (size_t i = 0; i < keep->num_gpus; i++)
		(void)pthread_cond_broadcast(&keep->gpus[i].given);
}

void keep_wake(struct keep *keep)
{
	(void)pthread_mutex_lock(&keep->lock);
	wake_all(keep);
	(void)pthread_mutex_unlock(&keep->lock);
}

void keep_give(struct keep *keep, struct keep_part *part)
{
	struct keep_gpu *gpu = part->gpu;

	(void)pthread_mutex_lock(&keep->lock);
	if (keep->gpus_closed)
		(void)madvise(part->memory, keep->part_size, MADV_DONTNEED);
	part->next = gpu->free;
	gpu->free = part;
	(void)pthread_cond_signal(&gpu->given);
	(void)pthread_mutex_unlock(&keep->lock);
}

void keep_lose(struct keep *keep, int ret, const char *action)
{
	(void)pthread_mutex_lock(&keep->lock);
	if (!keep->lost) {
		keep->lost = ret;
		keep->lost_action = action;
	}
	wake_all(keep);
	(void)pthread_mutex_unlock(&keep->lock);
}

int keep_lost_by(struct keep *keep, const char **ret_action)
{
	int ret;

	(void)pthread_mutex_lock(&keep->lock);
	ret = keep->lost;
	*ret_action = keep->lost_action;
	(void)pthread_mutex_unlock(&keep->lock);
	return ret;
}

void keep_write(struct keep *keep, struct keep_part *part, void (*write)(struct keep_part *part))
{
	part->write = write;
	part->next = NULL;
	(void)pthread_mutex_lock(&keep->lock);
	*keep->last = part;
	keep->last = &part->next;
	(void)pthread_cond_signal(&keep->queued);
	(void)pthread_mutex_unlock(&keep->lock);
}

void keep_begin_copy(struct keep *keep)
{
	(void)pthread_mutex_lock(&keep->lock);
	keep->copying++;
	(void)pthread_mutex_unlock(&keep->lock);
}

void keep_end_copy(struct keep *keep)
{
	(void)pthread_mutex_lock(&keep->lock);
	if (!--keep->copying)
		(void)pthread_cond_broadcast(&keep->queued);
	(void)pthread_mutex_unlock(&keep->lock);
}

/* Called with the lock. Until all is copied, writing would only take bandwidth of the memory from
 * the copy, for which the job stands still. */
static bool may_write(const struct keep *keep)
{
	return !keep->copying || keep->was_full;
}

/* NULL: the threads end. */
static struct keep_part *take_queued(struct keep *keep)
{
	struct keep_part *part;

	(void)pthread_mutex_lock(&keep->lock);
	while (!(keep->first && may_write(keep)) && !keep->ends)
		(void)pthread_cond_wait(&keep->queued, &keep->lock);
	part = keep->first;
	if (part)
		keep->first = part->next;
	if (!keep->first)
		keep->last = &keep->first;
	(void)pthread_mutex_unlock(&keep->lock);
	return part;
}

static void *write_parts(void *argument)
{
	struct keep *keep = argument;
	struct keep_part *part;

	while ((part = take_queued(keep))) {
		part->write(part);
		keep_give(keep, part);
	}
	return NULL;
}

int keep_start(struct keep *keep)
{
	unsigned int count = count_threads();
	int ret = 0;

	while (!ret && keep->num_threads < count) {
		ret = thread_start(&keep->threads[keep->num_threads], write_parts, keep);
		keep->num_threads += !ret;
	}
	return keep->num_threads ? 0 : ret;
}

static void close_gpus(struct keep *keep)
{
	release_bos(keep, 0);
	for (size_t i = 0; i < keep->num_gpus; i++) {
		if (keep->gpus[i].gpu)
			sdma_close(take_ptr(&keep->gpus[i].gpu));
	}
}

void keep_close_gpus(struct keep *keep)
{
	close_gpus(keep);
	(void)pthread_mutex_lock(&keep->lock);
	keep->gpus_closed = true;
	for (size_t i = 0; i < keep->num_gpus; i++) {
		for (struct keep_part *part = keep->gpus[i].free; part; part = part->next)
			(void)madvise(part->memory, keep->part_size, MADV_DONTNEED);
	}
	(void)pthread_mutex_unlock(&keep->lock);
}

static void end_threads(struct keep *keep)
{
	(void)pthread_mutex_lock(&keep->lock);
	keep->ends = true;
	(void)pthread_cond_broadcast(&keep->queued);
	(void)pthread_mutex_unlock(&keep->lock);
	while (keep->num_threads)
		(void)pthread_join(keep->threads[--keep->num_threads], NULL);
}

void keep_free(struct keep *keep)
{
	if (!keep)
		return;
	end_threads(keep);
	close_gpus(keep);
	if (keep->memory && !keep->lost)
		(void)munmap(keep->memory, keep->size);
	for (size_t i = 0; i < keep->num_gpus; i++)
		(void)pthread_cond_destroy(&keep->gpus[i].given);
	(void)pthread_cond_destroy(&keep->queued);
	(void)pthread_mutex_destroy(&keep->lock);
	free(keep->gpus);
	free(keep->parts);
	free(keep);
}
