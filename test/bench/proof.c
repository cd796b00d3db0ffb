// SPDX-License-Identifier: GPL-2.0-only
/* See the header. The contents of BOs are seen only through images, because the CPU cannot reach
 * the memory of a real device. */
#include "proof.h"

#include <dlfcn.h>
#include <endian.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "amdgpu_plugin_util.h"
#include "client.h"
#include "image/image.h"
#include "methods.h"
#include "simulator.h"

#define BLOCK   (1u << 20)
#define THREADS 8
#define GARBAGE "0xee"

static int complain(int ret, const char *what)
{
	if (ret < 0)
		(void)fprintf(stderr, "bench: proof: %s: %s\n", what, strerror(-ret));
	return ret;
}

/* The word of the contents at @index. */
static uint64_t word(size_t job, uint64_t index)
{
	uint64_t mixed = (index + 1) * 0x9e3779b97f4a7c15 ^ job * 0xff51afd7ed558ccd;

	return mixed ^ mixed >> 29;
}

static void make_block(size_t job, uint64_t offset, uint64_t *words)
{
	for (uint64_t i = 0; i < BLOCK / sizeof(*words); i++)
		words[i] = word(job, offset / sizeof(*words) + i);
}

/* The blocks of an image, for several threads. */
struct walk {
	size_t job;
	int fd;
	uint64_t size, next;
	int (*step)(int fd, uint64_t offset, uint64_t size, const void *expected);
	int ret;
};

static int write_block(int fd, uint64_t offset, uint64_t size, const void *expected)
{
	return pwrite_full(fd, expected, size, IMAGE_HEADER_SIZE + offset);
}

static int check_block(int fd, uint64_t offset, uint64_t size, const void *expected)
{
	_cleanup_free_ void *block = malloc(BLOCK);
	int ret = block ? pread_full(fd, block, size, IMAGE_HEADER_SIZE + offset) : -ENOMEM;

	return ret < 0 ? ret : memcmp(block, expected, size) ? -EBADMSG : 0;
}

static void *walk_blocks(void *argument)
{
	uint64_t *words = malloc(BLOCK);
	struct walk *walk = argument;
	uint64_t offset;
	int ret = words ? 0 : -ENOMEM;

	while (!ret &&
	       (offset = __atomic_fetch_add(&walk->next, BLOCK, __ATOMIC_RELAXED)) < walk->size) {
		uint64_t left = walk->size - offset;

		make_block(walk->job, offset, words);
		ret = walk->step(walk->fd, offset, left < BLOCK ? left : BLOCK, words);
	}
	if (ret)
		walk->ret = ret;
	free(words);
	return NULL;
}

static int for_all_blocks(struct walk *walk)
{
	pthread_t threads[THREADS];

	for (size_t i = 0; i < THREADS; i++) {
		if (pthread_create(&threads[i], NULL, walk_blocks, walk))
			abort();
	}
	for (size_t i = 0; i < THREADS; i++)
		(void)pthread_join(threads[i], NULL);
	return walk->ret;
}

/* The words of the plugin are not those of the reference. */
static int for_all_images(struct places *places, struct content_job *jobs, size_t num_jobs,
			  bool write, bool by_plugin)
{
	int ret = places_open(places, jobs, num_jobs, write);
	int closed;

	for (size_t i = 0; !ret && i < num_jobs; i++) {
		uint64_t size = content_size(jobs[i].bos, jobs[i].num_bos), length = htole64(size);
		struct walk walk = { .job = 2 * i + by_plugin,
				     .fd = jobs[i].image_fd,
				     .size = size,
				     .step = write ? write_block : check_block };

		ret = write ? pwrite_full(walk.fd, &length, sizeof(length), 0) : 0;
		if (!ret)
			ret = for_all_blocks(&walk);
	}
	closed = places_close(places, jobs, num_jobs);
	return ret ? ret : closed;
}

/* @settings: NULL: by the reference. */
static int move(struct places *places, struct content_job *jobs, size_t num_jobs,
		const struct content_settings *settings, bool save)
{
	int ret = places_open(places, jobs, num_jobs, save), closed;

	for (size_t i = 0; i < num_jobs; i++)
		jobs[i].has_checksums = false;
	if (!ret && settings)
		ret = (save ? content_save : content_load)(jobs, num_jobs, settings);
	else if (!ret)
		ret = reference_run(jobs, num_jobs, save);
	closed = places_close(places, jobs, num_jobs);
	return ret ? ret : closed;
}

static int prove(struct places *places, struct content_job *jobs, size_t num_jobs,
		 const struct content_settings *settings, bool scribble)
{
	int ret = complain(for_all_images(places, jobs, num_jobs, true, settings), "make an image");

	if (!ret && scribble)
		ret = complain(simulator_write("cuda_scribble", GARBAGE), "fill BOs");
	if (!ret)
		ret = complain(move(places, jobs, num_jobs, settings, false), "load");
	places_remove(places, num_jobs);
	if (!ret)
		ret = complain(move(places, jobs, num_jobs, settings, true), "save");
	if (!ret)
		ret = complain(for_all_images(places, jobs, num_jobs, false, settings),
			       settings ? "what the plugin loaded and saved"
					: "what the reference loaded and saved");
	places_remove(places, num_jobs);
	return ret;
}

int proof_run(struct places *places, struct content_job *jobs, size_t num_jobs,
	      const struct content_settings *settings, bool scribble)
{
	int ret = prove(places, jobs, num_jobs, NULL, scribble);

	return ret ? ret : prove(places, jobs, num_jobs, settings, scribble);
}

int proof_start_cuda(void)
{
	int (*write)(const char *, const char *) = dlsym(RTLD_DEFAULT, "amdgpu_sim_write");
	char name[128];

	if (!write || write("cuda", "1") < 0 || simulator_read("cuda", name, sizeof(name)) < 0) {
		(void)fprintf(stderr, "bench: skipped: no CUDA device is here\n");
		return -ENODEV;
	}
	(void)fprintf(stderr, "bench: the copy engine is that of %s", name);
	return 0;
}
