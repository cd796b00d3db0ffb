// SPDX-License-Identifier: GPL-2.0-only
/* Files, pipes, and the threads at the other ends of pipes. */
#include "places.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "image/image.h"

#define STREAM_BLOCK (1u << 20)

/* The other end of a pipe. */
struct stream {
	pthread_t thread;
	int fd;
	uint64_t bytes;
	bool ended_early;
};

static int complain(int ret, const char *what)
{
	(void)fprintf(stderr, "bench: %s: %s\n", what, strerror(-ret));
	return ret;
}

/* Reads all bytes and drops them. */
static void *take_all(void *argument)
{
	struct stream *stream = argument;
	char *block = malloc(STREAM_BLOCK);
	ssize_t got;

	while ((got = read(stream->fd, block, STREAM_BLOCK)) > 0)
		stream->bytes -= (uint64_t)got;
	stream->ended_early = stream->bytes != 0;
	free(block);
	return NULL;
}

static void *give_all(void *argument)
{
	struct stream *stream = argument;
	char *block = malloc(STREAM_BLOCK);
	ssize_t put = 1;

	memset(block, 0x5a, STREAM_BLOCK);
	while (stream->bytes && put > 0) {
		put = write(stream->fd, block,
			    stream->bytes < STREAM_BLOCK ? stream->bytes : STREAM_BLOCK);
		stream->bytes -= put > 0 ? (uint64_t)put : 0;
	}
	stream->ended_early = stream->bytes != 0;
	free(block);
	return NULL;
}

static int open_stream(struct content_job *job, bool save, struct stream *stream)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	/* as programs do that receive streams from CRIU */
	(void)fcntl(ends[0], F_SETPIPE_SZ, STREAM_BLOCK);
	job->image_fd = ends[save];
	job->streamed = true;
	*stream = (struct stream){
		.fd = ends[!save],
		.bytes = content_size(job->bos, job->num_bos) + (save ? IMAGE_HEADER_SIZE : 0),
	};
	return -pthread_create(&stream->thread, NULL, save ? take_all : give_all, stream);
}

static void path_of(const struct places *places, size_t job, char *ret_path, size_t size)
{
	(void)snprintf(ret_path, size, "%s/pages-%zu.img", places->directory, job);
}

static int open_file(const struct places *places, size_t index, struct content_job *job, bool save)
{
	char path[4096];

	path_of(places, index, path, sizeof(path));
	job->streamed = false;
	job->image_fd =
		open(path, O_CLOEXEC | (save ? O_RDWR | O_CREAT | O_TRUNC : O_RDONLY), 0600);
	if (job->image_fd < 0)
		return complain(-errno, path);
	if (!save)
		(void)posix_fadvise(job->image_fd, 0, 0, POSIX_FADV_DONTNEED);
	return 0;
}

int places_open(struct places *places, struct content_job *jobs, size_t num_jobs, bool save)
{
	int ret = 0;

	places->streams = calloc(num_jobs, sizeof(*places->streams));
	for (size_t i = 0; !ret && i < num_jobs; i++) {
		if (places->directory)
			ret = open_file(places, i, &jobs[i], save);
		else
			ret = open_stream(&jobs[i], save, &places->streams[i]);
	}
	return ret;
}

int places_close(struct places *places, struct content_job *jobs, size_t num_jobs)
{
	int ret = 0;

	for (size_t i = 0; i < num_jobs; i++) {
		struct stream *stream = &places->streams[i];

		(void)close(jobs[i].image_fd);
		jobs[i].image_fd = -1;
		if (places->directory)
			continue;
		(void)pthread_join(stream->thread, NULL);
		(void)close(stream->fd);
		if (stream->ended_early)
			ret = complain(-EIO, "a stream had too few bytes, or too many");
	}
	free(places->streams);
	places->streams = NULL;
	return ret;
}

void places_remove(const struct places *places, size_t num_jobs)
{
	char path[4096];
	int fd;

	if (!places->directory)
		return;
	for (size_t i = 0; i < num_jobs; i++) {
		path_of(places, i, path, sizeof(path));
		(void)unlink(path);
	}
	fd = open(places->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return;
	(void)syncfs(fd);
	(void)close(fd);
}
