/* SPDX-License-Identifier: GPL-2.0-only */
/* The streamer of test/lib for unit tests. Its images are files of the test's directory. A test
 * fails if the plugin breaks a rule of streams. At its end the streamer stops.
 *
 * A test program includes this header once. */
#ifndef TEST_UNIT_STREAMED_H
#define TEST_UNIT_STREAMED_H

#include "host.h"

#include <sys/socket.h>
#include <sys/un.h>

#include "criu/host.h"
#include "streamer.h"

#define STREAMED STREAMER_FOLDER "/"

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

static inline void fail_of_streamer(const char *text)
{
	fail_msg("%s", text);
}

static inline void start_streaming(bool captures)
{
	assert_int_equal(streamer_start(unit_directory(), captures, fail_of_streamer), 0);
	host_find_streamer();
}

static inline void stop_streaming(void)
{
	streamer_stop();
	host_find_streamer();
}

/* Serves the captured images. */
static inline void turn_stream(void)
{
	stop_streaming();
	start_streaming(false);
}

#endif
