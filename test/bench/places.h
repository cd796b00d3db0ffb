/* SPDX-License-Identifier: GPL-2.0-only */
/* Where images are while they are measured: files in a directory, or pipes with somebody
 * at the other end. */
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

/* Gives each job its image_fd: a new file or pipe to save to, or the file of before, which is
 * in no cache if it is on a disk, or a pipe that gives as many bytes as there are to load.
 * -errno after a line. */
int places_open(struct places *places, struct content_job *jobs, size_t num_jobs, bool save);
/* Closes them, and ends when the other end has got all: that is part of saving to a pipe. */
int places_close(struct places *places, struct content_job *jobs, size_t num_jobs);
/* Removes the files, and waits until the file system has done with them. */
void places_remove(const struct places *places, size_t num_jobs);
/* The path of the file of @job. */
void places_path(const struct places *places, size_t job, char *ret_path, size_t size);

#endif
