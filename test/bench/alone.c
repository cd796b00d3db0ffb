// SPDX-License-Identifier: GPL-2.0-only
/* The limits of the plugin: the copy engine without storage, storage without the copy engine, and
 * the reads and checksums of a restore. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "amdgpu_plugin_util.h"
#include "content/base.h"
#include "content/checksum.h"
#include "content/sdma.h"
#include "content/slots.h"
#include "image/image.h"
#include "methods.h"
#include "staging.h"

#define COPY_TIMEOUT_S 60
#define JOBS_MAX       64
#define THREADS_MAX    32

struct task_of_job {
	pthread_t thread;
	struct content_job *job;
	bool save;
	int (*function)(struct content_job *job, bool save);
	int ret;
};

static void *run_job(void *argument)
{
	struct task_of_job *task = argument;

	task->ret = task->function(task->job, task->save);
	return NULL;
}

int for_all_jobs(struct content_job *jobs, size_t num_jobs, bool save,
		 int (*function)(struct content_job *job, bool save))
{
	struct task_of_job tasks[JOBS_MAX];
	int ret = 0;

	for (size_t i = 0; i < num_jobs; i++) {
		tasks[i] =
			(struct task_of_job){ .job = &jobs[i], .save = save, .function = function };
		if (pthread_create(&tasks[i].thread, NULL, run_job, &tasks[i]))
			abort();
	}
	for (size_t i = 0; i < num_jobs; i++) {
		(void)pthread_join(tasks[i].thread, NULL);
		ret = ret ? ret : tasks[i].ret;
	}
	if (ret < 0)
		(void)fprintf(stderr, "bench: %s\n", strerror(-ret));
	return ret;
}

/* The copies of one GPU. BOs are imported when they are first needed, and released after their last
 * range, as in the plugin. */
struct copier {
	struct content_job *job;
	struct sdma *gpu;
	enum sdma_direction direction;
	uint64_t slot_size;
	struct sdma_bo *imports;
	/* The start of the next range. */
	size_t bo;
	uint64_t offset;
	uint64_t begin;
};

struct range {
	struct sdma_piece *pieces;
	size_t num_pieces;
	/* BOs [first, end) have their last piece here. */
	size_t first, end;
};

static int add_piece(struct copier *copier, struct range *range, uint64_t *at)
{
	const struct content_bo *bo = &copier->job->bos[copier->bo];
	struct sdma_bo *import = &copier->imports[copier->bo];
	uint64_t left = bo->size - copier->offset, room = copier->slot_size - *at;
	uint64_t size = left < room ? left : room;
	int ret = import->bo ? 0 : sdma_bo_import(copier->gpu, bo, import);

	if (ret < 0)
		return ret;
	range->pieces[range->num_pieces++] =
		(struct sdma_piece){ import, copier->offset, *at, size };
	*at += size;
	copier->offset += size;
	if (size < left)
		return 0;
	copier->bo++;
	copier->offset = 0;
	range->end = copier->bo;
	return 0;
}

static int submit_next(struct copier *copier, struct range *range, unsigned int slot)
{
	uint64_t at = copier->begin;
	int ret = 0;

	copier->begin = 0;
	range->num_pieces = 0;
	range->first = range->end = copier->bo;
	while (!ret && at < copier->slot_size && copier->bo < copier->job->num_bos)
		ret = add_piece(copier, range, &at);
	if (ret < 0 || !range->num_pieces)
		return ret;
	return sdma_submit(copier->gpu, slot, copier->direction, range->pieces, range->num_pieces);
}

static int finish(struct copier *copier, struct range *range, unsigned int slot)
{
	int ret = sdma_wait(copier->gpu, slot, COPY_TIMEOUT_S);

	for (; range->first < range->end; range->first++)
		sdma_bo_release(&copier->imports[range->first]);
	return ret;
}

static int copy_all(struct copier *copier, struct range *ranges, unsigned int slots)
{
	unsigned int slot = 0;
	int ret = 0;

	while (!ret && copier->bo < copier->job->num_bos) {
		ret = finish(copier, &ranges[slot], slot);
		if (!ret)
			ret = submit_next(copier, &ranges[slot], slot);
		slot = (slot + 1) % slots;
	}
	for (unsigned int i = 0; !ret && i < slots; i++)
		ret = finish(copier, &ranges[(slot + i) % slots], (slot + i) % slots);
	return ret;
}

static int copy_job(struct content_job *job, bool save)
{
	struct copier copier = { .job = job,
				 .direction = save ? SDMA_BO_TO_SLOT : SDMA_SLOT_TO_BO,
				 .begin = IMAGE_HEADER_SIZE };
	struct range *ranges;
	unsigned int slots;
	int ret;

	staging_slots(&slots, &copier.slot_size);
	copier.imports = calloc(job->num_bos, sizeof(*copier.imports));
	ranges = calloc(slots, sizeof(*ranges));
	for (unsigned int i = 0; i < slots; i++)
		ranges[i].pieces =
			calloc(SDMA_SLOT_PIECES(copier.slot_size), sizeof(struct sdma_piece));
	ret = sdma_open(job->render_minor, slots, copier.slot_size, &copier.gpu);
	if (!ret)
		ret = copy_all(&copier, ranges, slots);
	sdma_close(copier.gpu);
	for (unsigned int i = 0; i < slots; i++)
		free(ranges[i].pieces);
	free(ranges);
	free(copier.imports);
	return ret;
}

int copy_alone_run(struct content_job *jobs, size_t num_jobs, bool save)
{
	return for_all_jobs(jobs, num_jobs, save, copy_job);
}

const struct storage_way storage_ways[] = {
	{ "buffered 256K", 256u << 10, 1, false, false, false, false },
	{ "buffered 4M", 4u << 20, 1, false, false, false, false },
	{ "buffered 4M, 2 threads", 4u << 20, 2, false, false, false, false },
	{ "direct 4M", 4u << 20, 1, true, true, false, false },
	{ "direct 1M, 4 threads", 1u << 20, 4, true, true, false, false },
	{ "direct 4M, 4 threads", 4u << 20, 4, true, true, false, false },
	{ "direct 4M, 8 threads", 4u << 20, 8, true, true, false, false },
	{ "buffered 1M, 8 threads", 1u << 20, 8, false, false, false, false },
	{ "buffered 1M, 16 threads", 1u << 20, 16, false, false, false, false },
	{ "mapped 4M, 4 threads", 4u << 20, 4, false, false, true, false },
	{ "mapped 4M, 8 threads", 4u << 20, 8, false, false, true, false },
	{ "huge 4M, 8 threads", 4u << 20, 8, false, false, true, true },
	{ "huge 4M, 12 threads", 4u << 20, 12, false, false, true, true },
};
const unsigned int num_storage_ways = ARRAY_SIZE(storage_ways);

/* Set before the threads start. */
static const struct storage_way *way;
static bool half_zero;

/* One file, and the threads that share it. */
struct mover {
	int fd;
	bool save, streamed;
	uint64_t size;
	uint64_t next;
	int ret;
};

static int move_mapped(const struct mover *mover, char *memory, uint64_t offset, uint64_t size)
{
	char *file = mmap(NULL, size, mover->save ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED,
			  mover->fd, (off_t)offset);

	if (file == MAP_FAILED)
		return -errno;
	memcpy(mover->save ? file : memory, mover->save ? memory : file, size);
	return munmap(file, size) < 0 ? -errno : 0;
}

/* Makes whole huge pages of the empty part of the file, if the kernel can. */
static void make_huge(char *file, uint64_t size)
{
	for (uint64_t at = 0; size - at >= SDMA_HUGE_PAGE; at += SDMA_HUGE_PAGE) {
		(void)madvise(file + at, (size_t)getpagesize(), MADV_POPULATE_WRITE);
		(void)madvise(file + at, SDMA_HUGE_PAGE, MADV_COLLAPSE);
	}
}

static int move_huge(const struct mover *mover, const char *memory, uint64_t offset, uint64_t size)
{
	char *room =
		mmap(NULL, size + SDMA_HUGE_PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *file;

	if (room == MAP_FAILED)
		return -errno;
	file = mmap(room + -(uintptr_t)room % SDMA_HUGE_PAGE, size, PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_FIXED, mover->fd, (off_t)offset);
	if (file == MAP_FAILED)
		return -errno;
	make_huge(file, size);
	memcpy(file, memory, size);
	return munmap(room, size + SDMA_HUGE_PAGE) < 0 ? -errno : 0;
}

/* @size may exceed the file, which then ends with a whole block. */
static int move_block(const struct mover *mover, char *memory, uint64_t offset, uint64_t size)
{
	uint64_t in_file = mover->size - offset < size ? mover->size - offset : size;

	if (mover->streamed)
		return mover->save ? write_full(mover->fd, memory, in_file)
				   : read_full(mover->fd, memory, in_file);
	if (way->huge && mover->save)
		return move_huge(mover, memory, offset, in_file);
	if (way->mapped)
		return move_mapped(mover, memory, offset, in_file);
	if (mover->save)
		return pwrite_full(mover->fd, memory, way->direct ? size : in_file, offset);
	return pread_up_to(mover->fd, memory, in_file, size, offset);
}

/* The parts of a block that are not zero. */
static int move_data(const struct mover *mover, char *memory, uint64_t offset, uint64_t size)
{
	uint64_t part = half_zero ? STAGING_PERIOD / 2 : size, at = offset, end = offset + size;
	int ret = 0;

	for (; !ret && at < end && at < mover->size; at += part) {
		uint64_t bytes = end - at < part ? end - at : part;

		if (!half_zero || at % STAGING_PERIOD < STAGING_PERIOD / 2)
			ret = move_block(mover, memory, at, bytes);
	}
	return ret;
}

static void *move_some(void *argument)
{
	struct mover *mover = argument;
	char *memory = mmap(NULL, way->block, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	int ret = 0;

	memset(memory, 0x5a, way->block);
	while (!ret) {
		uint64_t offset = __atomic_fetch_add(&mover->next, way->block, __ATOMIC_RELAXED);

		if (offset >= mover->size)
			break;
		ret = move_data(mover, memory, offset, way->block);
	}
	if (ret)
		mover->ret = ret;
	(void)munmap(memory, way->block);
	return NULL;
}

static void set_direct(int fd, bool on)
{
	int flags = fcntl(fd, F_GETFL);

	(void)fcntl(fd, F_SETFL, on ? flags | O_DIRECT : flags & ~O_DIRECT);
}

static int run_movers(struct mover *mover, unsigned int count, void *(*move)(void *argument))
{
	pthread_t threads[THREADS_MAX];

	for (unsigned int i = 1; i < count; i++) {
		if (pthread_create(&threads[i], NULL, move, mover))
			abort();
	}
	(void)move(mover);
	for (unsigned int i = 1; i < count; i++)
		(void)pthread_join(threads[i], NULL);
	return mover->ret;
}

static int move_file(struct mover *mover)
{
	return run_movers(mover, mover->streamed ? 1 : way->threads, move_some);
}

static int run_storage(struct content_job *job, bool save)
{
	uint64_t length = content_size(job->bos, job->num_bos);
	struct mover mover = { job->image_fd,
			       save,
			       job->streamed,
			       length + (save || !job->streamed ? IMAGE_HEADER_SIZE : 0),
			       0,
			       0 };
	int ret;

	if (job->streamed)
		return move_file(&mover);
	if (way->direct)
		set_direct(mover.fd, true);
	if (save && way->reserve && !half_zero)
		(void)fallocate(mover.fd, 0, 0, (off_t)mover.size);
	if (save && way->mapped && ftruncate(mover.fd, (off_t)mover.size) < 0)
		return -errno;
	ret = move_file(&mover);
	if (!ret && save && ftruncate(mover.fd, (off_t)mover.size) < 0)
		ret = -errno;
	if (!ret && save && fdatasync(mover.fd) < 0)
		ret = -errno;
	set_direct(mover.fd, false);
	return ret;
}

int storage_alone_run(struct content_job *jobs, size_t num_jobs, bool save, bool zeros,
		      const struct storage_way *chosen)
{
	way = chosen;
	half_zero = zeros;
	return for_all_jobs(jobs, num_jobs, save, run_storage);
}

/* Set before the threads start. */
static struct {
	unsigned int threads;
	size_t memory;
} reads;

/* As the plugin does, so that the caches still have the bytes for the checksums. */
#define READ_PART (256u << 10)

static void *read_some(void *argument)
{
	struct mover *mover = argument;
	char *memory = slots_map(reads.memory);
	uint64_t at = 0;
	int ret = memory ? 0 : -ENOMEM;

	while (!ret) {
		uint64_t offset = __atomic_fetch_add(&mover->next, READ_PART, __ATOMIC_RELAXED);
		uint64_t size = mover->size - offset < READ_PART ? mover->size - offset : READ_PART;

		if (offset >= mover->size)
			break;
		ret = pread_full(mover->fd, memory + at, size, offset);
		/* The sum is not used, but the compiler cannot know that. */
		if (!ret)
			(void)checksum_pages(memory + at, size / 4096 * 4096, offset / 4096);
		at = at + 2 * READ_PART > reads.memory ? 0 : at + READ_PART;
	}
	if (ret)
		mover->ret = ret;
	if (memory)
		(void)munmap(memory, reads.memory);
	return NULL;
}

static int read_and_sum(struct content_job *job, bool save)
{
	struct mover mover = { .fd = job->image_fd,
			       .size = content_size(job->bos, job->num_bos) + IMAGE_HEADER_SIZE };

	(void)save;
	return run_movers(&mover, reads.threads, read_some);
}

int reads_alone_run(struct content_job *jobs, size_t num_jobs, unsigned int threads, size_t memory)
{
	reads.threads = threads < THREADS_MAX ? threads : THREADS_MAX;
	reads.memory = memory > READ_PART ? memory : READ_PART;
	return for_all_jobs(jobs, num_jobs, false, read_and_sum);
}

/* Sums up the same memory again and again, which is as large as the slots of a dump. */
#define SUMS_MEMORY (2u << 20)
#define SUMS_ROUNDS 256u

static void *sum_up(void *argument)
{
	char *memory = slots_map(SUMS_MEMORY);

	if (!memory)
		abort();
	memset(memory, 0x5a, SUMS_MEMORY);
	for (unsigned int i = 0; i < SUMS_ROUNDS; i++) {
		(void)checksum_pages(memory, SUMS_MEMORY, i);
		for (uint64_t at = 0; at < SUMS_MEMORY; at += BASE_CHUNK)
			(void)base_sum_chunk(memory + at);
	}
	(void)munmap(memory, SUMS_MEMORY);
	return argument;
}

double sums_alone_run(unsigned int threads)
{
	struct mover none = { 0 };
	double begin = now_seconds();

	threads = threads < THREADS_MAX ? threads : THREADS_MAX;
	(void)run_movers(&none, threads, sum_up);
	return (now_seconds() - begin) / threads / SUMS_ROUNDS / SUMS_MEMORY * 1e9;
}
