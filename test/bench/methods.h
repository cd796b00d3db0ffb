/* SPDX-License-Identifier: GPL-2.0-only */
/* Other methods to move contents, for comparison with the plugin. All take jobs as content_save()
 * does, move those of all GPUs at once, and end with the bytes on the device. Return 0, or -errno
 * after a line. */
#ifndef TEST_BENCH_METHODS_H
#define TEST_BENCH_METHODS_H

#include <stdbool.h>

#include "content/content.h"

/* The method of CRIU's own plugin: a thread for each GPU copies one BO at a time to a buffer as
 * large as the largest BO, waits, writes, and goes on with the next. A restore reads, copies and
 * waits. */
int reference_run(struct content_job *jobs, size_t num_jobs, bool save);

/* Only the engine: the copies that the plugin submits, with as many slots in flight, and no
 * storage. */
int copy_alone_run(struct content_job *jobs, size_t num_jobs, bool save);

/* Only storage: as many bytes as the image has, in one of several ways. @half_zero: without the
 * second half of each STAGING_PERIOD. */
struct storage_way {
	const char *name;
	size_t block;
	unsigned int threads; /* a file */
	bool direct;
	bool reserve;
	bool mapped;
	/* Of huge pages, for a save. */
	bool huge;
};
#define STORAGE_WAYS_MAX 16
extern const struct storage_way storage_ways[];
extern const unsigned int num_storage_ways;
int storage_alone_run(struct content_job *jobs, size_t num_jobs, bool save, bool half_zero,
		      const struct storage_way *way);

/* What processors and memory must do for a restore, without the engine and without threads that
 * wait for each other: @threads for each file read it to @memory bytes each, again and again, and
 * compute the checksums. */
int reads_alone_run(struct content_job *jobs, size_t num_jobs, unsigned int threads, size_t memory);

/* The checksums of contents and the sums of chunks (option base), by so many threads: seconds for
 * 10^9 bytes. */
double sums_alone_run(unsigned int threads);

/* Calls @function for all jobs in parallel. */
int for_all_jobs(struct content_job *jobs, size_t num_jobs, bool save,
		 int (*function)(struct content_job *job, bool save));

#endif
