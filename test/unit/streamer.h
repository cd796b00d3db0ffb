/* SPDX-License-Identifier: GPL-2.0-only */
/* An image streamer for tests: pipes from and to files in a folder of the test's directory, and the
 * socket connection that shows the plugin that CRIU streams. Each image is captured once and served
 * once. A real streamer may serve images one by one, so the test fails if the plugin opens an image
 * before it has read the previous one to its end.
 *
 * A test program includes this header once. */
#ifndef TEST_UNIT_STREAMER_H
#define TEST_UNIT_STREAMER_H

#include "host.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

/* The folder of the streamer in the test's directory. */
#define STREAMED "streamed/"

#define STREAMS_MAX 64
/* The smallest pipe, so that few bytes are on the way between streamer and reader. */
#define STREAM_ROOM      4096
#define STREAM_TIMEOUT_S 120

struct stream {
	char name[64];
	int file;
	/* The streamer's end of the pipe. */
	int pipe;
	/* While images are served: a copy of the reader's end. */
	int watched;
	pthread_t thread;
};

static struct {
	bool captures;
	/* Both ends of the connection, CRIU's first. */
	int connection[2];
	struct stream streams[STREAMS_MAX];
	size_t num_streams;
	/* The streamer refuses each image; it ends after that many bytes of each image. */
	bool deaf;
	size_t breaks_after;
} streamer;

static inline const char *streamed_path(const char *name)
{
	return unit_path(STREAMED "%s", name);
}

static inline bool is_streamed(const char *name)
{
	char path[128];

	(void)snprintf(path, sizeof(path), STREAMED "%s", name);
	return unit_exists(path);
}

static inline uint8_t *read_streamed(const char *name, size_t *ret_size)
{
	char path[128];

	(void)snprintf(path, sizeof(path), STREAMED "%s", name);
	return unit_read(path, ret_size);
}

static inline void write_streamed(const char *name, const void *bytes, size_t size)
{
	char path[128];

	(void)snprintf(path, sizeof(path), STREAMED "%s", name);
	unit_write(path, bytes, size);
}

static inline void *stream_bytes(void *argument)
{
	struct stream *stream = argument;
	int from = streamer.captures ? stream->pipe : stream->file;
	int to = streamer.captures ? stream->file : stream->pipe;
	size_t left = streamer.breaks_after;
	char bytes[512];
	ssize_t size;

	while (left &&
	       (size = read(from, bytes, left < sizeof(bytes) ? left : sizeof(bytes))) > 0 &&
	       write(to, bytes, (size_t)size) == size)
		left -= (size_t)size;
	(void)close(stream->file);
	(void)close(stream->pipe);
	return NULL;
}

static inline void join_stream(struct stream *stream)
{
	struct timespec end;

	(void)clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += STREAM_TIMEOUT_S;
	if (stream->watched >= 0)
		(void)close(stream->watched);
	stream->watched = -1;
	/* The writer must have closed its end. */
	assert_int_equal(pthread_timedjoin_np(stream->thread, NULL, &end), 0);
}

/* Whether the reader has read all bytes. The streamer may need time to close its end. Bytes that
 * are in the pipe now stay unread, because the reader opens the next image. */
static inline bool is_drained(const struct stream *stream)
{
	struct pollfd end = { stream->watched, POLLIN, 0 };

	if (stream->watched < 0)
		return true;
	(void)poll(&end, 1, STREAM_TIMEOUT_S * 1000);
	return end.revents == POLLHUP;
}

static inline int open_stream(const char *name, int flags)
{
	struct stream *stream = &streamer.streams[streamer.num_streams];
	int ends[2], mine = streamer.captures ? 0 : 1;

	/* CRIU aborts on other flags. */
	assert_int_equal(flags, streamer.captures ? O_WRONLY | O_CREAT | O_TRUNC : O_RDONLY);
	assert_true(streamer.num_streams < STREAMS_MAX);
	assert_null(strchr(name, '/'));
	if (streamer.deaf)
		return -1;
	for (size_t i = 0; !streamer.captures && i < streamer.num_streams; i++) {
		if (!is_drained(&streamer.streams[i]))
			fail_msg("%s is asked for before %s has been read to its end", name,
				 streamer.streams[i].name);
	}
	(void)snprintf(stream->name, sizeof(stream->name), "%s", name);
	stream->file = open(streamed_path(name),
			    streamer.captures ? O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC
					      : O_RDONLY | O_CLOEXEC,
			    0600);
	if (stream->file < 0) {
		assert_false(streamer.captures);
		return -ENOENT;
	}
	if (!streamer.captures)
		(void)unlink(streamed_path(name));
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	(void)fcntl(ends[0], F_SETPIPE_SZ, STREAM_ROOM);
	stream->pipe = ends[mine];
	stream->watched = streamer.captures ? -1 : fcntl(ends[0], F_DUPFD_CLOEXEC, 0);
	streamer.num_streams++;
	assert_int_equal(pthread_create(&stream->thread, NULL, stream_bytes, stream), 0);
	return ends[1 - mine];
}

static inline void connect_streamer(const char *socket_name)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s",
		       unit_path("%s", socket_name));
	assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(listener, 1), 0);
	streamer.connection[0] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(
		connect(streamer.connection[0], (struct sockaddr *)&address, sizeof(address)), 0);
	streamer.connection[1] = accept(listener, NULL, NULL);
	(void)close(listener);
	/* Real streamers remove their socket file too. */
	(void)unlink(address.sun_path);
}

static inline void forget_streamed(void)
{
	DIR *folder = opendir(unit_path(STREAMED));
	struct dirent *entry;

	while (folder && (entry = readdir(folder)))
		(void)unlink(streamed_path(entry->d_name));
	if (folder)
		(void)closedir(folder);
}

/* Makes CRIU stream: to an empty streamer if @captures, else from the captured files. */
static inline void start_streaming(bool captures)
{
	(void)signal(SIGPIPE, SIG_IGN);
	streamer.captures = captures;
	streamer.num_streams = 0;
	streamer.deaf = false;
	streamer.breaks_after = SIZE_MAX;
	if (captures)
		forget_streamed();
	(void)mkdir(unit_path(STREAMED), 0700);
	unit_criu()->open_streamed = open_stream;
	connect_streamer(captures ? "streamer-capture.sock" : "streamer-serve.sock");
}

static inline void stop_streaming(void)
{
	for (size_t i = 0; i < streamer.num_streams; i++)
		join_stream(&streamer.streams[i]);
	streamer.num_streams = 0;
	(void)close(streamer.connection[0]);
	(void)close(streamer.connection[1]);
	unit_criu()->open_streamed = NULL;
}

/* Serves the captured images. */
static inline void turn_stream(void)
{
	stop_streaming();
	start_streaming(false);
}

#endif
