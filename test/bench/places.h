/* SPDX-License-Identifier: GPL-2.0-only */
/* The images of a measurement: files in a directory, or pipes with a thread at the other end. */
#ifndef TEST_BENCH_PLACES_H
#define TEST_BENCH_PLACES_H

#include <stdbool.h>
#include <stddef.h>

#include "content/content.h"

struct places {
	/* NULL: pipes. */
	const char *directory;
	struct stream *streams;
};

/* Gives each job its image_fd: a new file or pipe to save to; the saved file, which is in no cache
 * if it is on a disk; or a pipe that gives as many bytes as the job loads. -errno after a line. */
int places_open(struct places *places, struct content_job *jobs, size_t num_jobs, bool save);
/* Closes them, and waits until the other end has all bytes, which is part of a save to a pipe. */
int places_close(struct places *places, struct content_job *jobs, size_t num_jobs);
/* Removes the files, and waits for the file system. */
void places_remove(const struct places *places, size_t num_jobs);

#endif
