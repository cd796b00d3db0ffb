// SPDX-License-Identifier: GPL-2.0-only
/* Memory in which contents wait to be written, and the threads that write them. transfer.c copies
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
#include "kernel/render_node.h"

/* Each submission lists the pages of its part, so parts are small. A large one makes the fixed cost
 * of a submission small, and of a request to storage. */
#define PART_MAX (2 * SDMA_HUGE_PAGE)
#define PART_MIN (CONTENT_ALIGNMENT + 2 * SLOT_MARGIN)
/* So that the engine and storage are busy at the same time with little memory, too. */
#define PARTS_WANTED 8

/* For the unused ends of parts, and for what the job allocates until its queues stop. */
#define ROOM_TO_GROW(bytes) ((bytes) / 32 + PARTS_WANTED * PART_MAX)

#define THREADS_MAX 12u

/* Linux 5.14. */
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

struct keep_gpu {
	uint32_t minor;
	struct sdma *gpu;
	/* One per part. */
	struct sdma_bo *bos;
};

struct keep {
	char *memory;
	size_t size;
	size_t part_size;
	struct keep_gpu *gpus;
	size_t num_gpus;
	struct keep_part *parts;
	size_t num_parts;
	/* Some of the parts that were to be prepared could not be. */
	bool is_short;
	pthread_t threads[THREADS_MAX];
	unsigned int num_threads;
	/* Guards the fields below. */
	pthread_mutex_t lock;
	pthread_cond_t given, queued;
	struct keep_part *free;
	struct keep_part *first, **last;
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

static int prepare_part(struct keep *keep, size_t index)
{
	char *memory = keep->parts[index].memory;
	int ret = make_present(memory, keep->part_size);

	for (size_t i = 0; !ret && i < keep->num_gpus; i++)
		ret = sdma_register(keep->gpus[i].gpu, memory, keep->part_size,
				    &keep->gpus[i].bos[index]);
	return ret;
}

static void *prepare_parts(void *argument)
{
	struct preparation *preparation = argument;
	struct keep *keep = preparation->keep;
	size_t index;

	while ((index = __atomic_fetch_add(&preparation->next, 1, __ATOMIC_RELAXED)) <
	       __atomic_load_n(&preparation->refused, __ATOMIC_RELAXED)) {
		size_t refused;

		if (!prepare_part(keep, index))
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
	for (size_t i = 0; i < keep->num_gpus; i++) {
		for (size_t part = from; keep->gpus[i].bos && part < keep->num_parts; part++)
			sdma_bo_release(&keep->gpus[i].bos[part]);
	}
}

/* The parts behind the first that was refused go back to the system. */
static void drop_refused(struct keep *keep, size_t refused)
{
	size_t kept = staging_round_up(refused * keep->part_size);

	release_bos(keep, refused);
	keep->is_short = refused < keep->num_parts;
	keep->num_parts = refused;
	if (kept < keep->size)
		(void)munmap(keep->memory + kept, keep->size - kept);
	keep->size = kept < keep->size ? kept : keep->size;
}

static void prepare(struct keep *keep)
{
	struct preparation preparation = { .keep = keep, .refused = keep->num_parts };
	pthread_t threads[THREADS_MAX];
	unsigned int count = count_threads(), started = 1;

	while (started < count && !thread_start(&threads[started], prepare_parts, &preparation))
		started++;
	(void)prepare_parts(&preparation);
	while (started > 1)
		(void)pthread_join(threads[--started], NULL);
	drop_refused(keep, preparation.refused);
}

static int open_gpus(struct keep *keep, const uint32_t *minors, size_t num_minors)
{
	keep->gpus = calloc(num_minors + 1, sizeof(*keep->gpus));
	if (!keep->gpus)
		return -ENOMEM;
	for (size_t i = 0; i < num_minors; i++) {
		struct keep_gpu *gpu = &keep->gpus[keep->num_gpus];

		if (sdma_open_bare(minors[i], 0, CONTENT_ALIGNMENT, &gpu->gpu) < 0)
			continue;
		keep->num_gpus++;
		gpu->minor = minors[i];
	}
	return keep->num_gpus ? 0 : -ENODEV;
}

/* Memory that is cleared and registered for no contents only delays the dump. */
static uint64_t limit_to_contents(const struct keep *keep, uint64_t bytes)
{
	uint64_t contents = 0, used;

	for (size_t i = 0; i < keep->num_gpus; i++) {
		if (render_node_find_used(keep->gpus[i].minor, &used) < 0)
			return bytes;
		contents += used;
	}
	contents += ROOM_TO_GROW(contents);
	return bytes < contents ? bytes : contents;
}

static int map_parts(struct keep *keep, uint64_t bytes)
{
	size_t part = bytes / PARTS_WANTED / CONTENT_ALIGNMENT * CONTENT_ALIGNMENT;

	/* The kernel registers whole pages of its own size. */
	part = staging_round_up(clamp(part, PART_MIN, PART_MAX));
	keep->part_size = part;
	keep->num_parts = bytes / part;
	if (!keep->num_parts)
		return -ENOMEM;
	keep->size = staging_round_up(keep->num_parts * part);
	keep->memory = staging_map(keep->size);
	keep->parts = calloc(keep->num_parts, sizeof(*keep->parts));
	if (!keep->memory || !keep->parts)
		return -ENOMEM;
	for (size_t i = 0; i < keep->num_parts; i++)
		keep->parts[i].memory = keep->memory + i * part;
	for (size_t i = 0; i < keep->num_gpus; i++) {
		keep->gpus[i].bos = calloc(keep->num_parts, sizeof(*keep->gpus[i].bos));
		if (!keep->gpus[i].bos)
			return -ENOMEM;
	}
	return 0;
}

static void init_locks(struct keep *keep)
{
	(void)pthread_mutex_init(&keep->lock, NULL);
	(void)pthread_cond_init(&keep->given, NULL);
	(void)pthread_cond_init(&keep->queued, NULL);
	keep->last = &keep->first;
}

int keep_new(uint64_t bytes, const uint32_t *minors, size_t num_minors, struct keep **ret_keep)
{
	struct keep *keep = calloc(1, sizeof(*keep));
	int ret;

	if (!keep)
		return -ENOMEM;
	init_locks(keep);
	ret = open_gpus(keep, minors, num_minors);
	if (!ret)
		ret = map_parts(keep, limit_to_contents(keep, bytes));
	if (!ret)
		prepare(keep);
	if (!ret && !keep->num_parts)
		ret = -ENOMEM;
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

bool keep_has_gpu(const struct keep *keep, uint32_t minor)
{
	for (size_t i = 0; i < keep->num_gpus; i++) {
		if (keep->gpus[i].minor == minor)
			return true;
	}
	return false;
}

const struct sdma_bo *keep_find_bo(const struct keep *keep, const struct keep_part *part,
				   uint32_t minor)
{
	const struct keep_gpu *gpu = keep->gpus;

	while (gpu->minor != minor)
		gpu++;
	return &gpu->bos[part - keep->parts];
}

struct keep_part *keep_take(struct keep *keep, bool (*is_wanted)(void *argument), void *argument)
{
	struct keep_part *part;

	(void)pthread_mutex_lock(&keep->lock);
	while (!keep->free && !keep->lost && is_wanted(argument))
		(void)pthread_cond_wait(&keep->given, &keep->lock);
	part = keep->lost ? NULL : keep->free;
	if (part)
		keep->free = part->next;
	(void)pthread_mutex_unlock(&keep->lock);
	return part;
}

void keep_wake(struct keep *keep)
{
	(void)pthread_mutex_lock(&keep->lock);
	(void)pthread_cond_broadcast(&keep->given);
	(void)pthread_mutex_unlock(&keep->lock);
}

void keep_give(struct keep *keep, struct keep_part *part)
{
	(void)pthread_mutex_lock(&keep->lock);
	if (keep->gpus_closed)
		(void)madvise(part->memory, keep->part_size, MADV_DONTNEED);
	part->next = keep->free;
	keep->free = part;
	(void)pthread_cond_signal(&keep->given);
	(void)pthread_mutex_unlock(&keep->lock);
}

void keep_lose(struct keep *keep, int ret, const char *action)
{
	(void)pthread_mutex_lock(&keep->lock);
	if (!keep->lost) {
		keep->lost = ret;
		keep->lost_action = action;
	}
	(void)pthread_cond_broadcast(&keep->given);
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

/* NULL: the threads end. */
static struct keep_part *take_queued(struct keep *keep)
{
	struct keep_part *part;

	(void)pthread_mutex_lock(&keep->lock);
	while (!keep->first && !keep->ends)
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
		sdma_close(keep->gpus[i].gpu);
		free(keep->gpus[i].bos);
	}
	keep->num_gpus = 0;
}

void keep_close_gpus(struct keep *keep)
{
	close_gpus(keep);
	(void)pthread_mutex_lock(&keep->lock);
	keep->gpus_closed = true;
	for (struct keep_part *part = keep->free; part; part = part->next)
		(void)madvise(part->memory, keep->part_size, MADV_DONTNEED);
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
	(void)pthread_cond_destroy(&keep->queued);
	(void)pthread_cond_destroy(&keep->given);
	(void)pthread_mutex_destroy(&keep->lock);
	free(keep->gpus);
	free(keep->parts);
	free(keep);
}
