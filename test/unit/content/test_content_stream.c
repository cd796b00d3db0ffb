// SPDX-License-Identifier: GPL-2.0-only
/* Tests contents in streams: their order, and an end that closes early. */
#include "drm_calls.h"

#include "content_set.h"

#include <pthread.h>

/* The other end of a pipe: drain() reads at most @size bytes, and feed() writes @size bytes. */
struct peer {
	pthread_t thread;
	int fd;
	uint8_t *bytes;
	size_t size;
};

static void *drain(void *argument)
{
	struct peer *peer = argument;
	size_t limit = peer->size;
	ssize_t got = 1;

	for (peer->size = 0; got > 0 && peer->size < limit; peer->size += (size_t)got)
		got = read(peer->fd, peer->bytes + peer->size, limit - peer->size);
	(void)close(peer->fd);
	return NULL;
}

static void *feed(void *argument)
{
	struct peer *peer = argument;

	(void)write_full(peer->fd, peer->bytes, peer->size);
	(void)close(peer->fd);
	return NULL;
}

static void make_peer(struct peer *peer, int fd, size_t size)
{
	*peer = (struct peer){ .fd = fd, .size = size, .bytes = malloc(size + 1) };
	assert_non_null(peer->bytes);
}

static void open_pipe(int ends[2])
{
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
}

/* Saves to a pipe whose other end takes @limit bytes; the bytes are the caller's. */
static int save_to_stream(struct set *set, struct peer *peer, size_t limit)
{
	int ends[2], ret;

	open_pipe(ends);
	make_peer(peer, ends[0], limit);
	assert_int_equal(thread_start(&peer->thread, drain, peer), 0);
	(void)close(set->job.image_fd);
	set->job.image_fd = ends[1];
	set->job.streamed = true;
	ret = content_save(&set->job, 1, &settings);
	(void)close(ends[1]);
	set->job.image_fd = -1;
	(void)pthread_join(peer->thread, NULL);
	return ret;
}

#define TEST(name) TEST_WITH(name, drm_calls_begin, drm_calls_end)

TEST(streams_are_written_in_order)
{
	_cleanup_set_ struct set *set = make_set(mixed);
	struct peer peer;
	uint64_t length = image_size(set) - HEADER, at = HEADER;

	fill(set);
	assert_int_equal(save_to_stream(set, &peer, image_size(set) + 1), 0);
	assert_int_equal(peer.size, image_size(set));
	assert_memory_equal(peer.bytes, &length, HEADER);
	for (size_t i = 0; i < set->num_bos; i++) {
		assert_true(are_filled((const void *)(peer.bytes + at), i, set->bos[i].size));
		at += set->bos[i].size;
	}
	assert_true(set->job.has_checksums);
	free(peer.bytes);
}

/* No SIGPIPE ends the writer. */
TEST(a_stream_without_a_reader_is_an_error)
{
	static const size_t limits[] = { 0, 1, 4 * PAGE, MIB };

	for (size_t i = 0; i < ARRAY_SIZE(limits); i++) {
		_cleanup_set_ struct set *set = make_set(mixed);
		struct peer peer;

		fill(set);
		assert_int_equal(save_to_stream(set, &peer, limits[i]), -EPIPE);
		assert_logged("Error (amdgpu_plugin): ", "GPU 0x0100", "image");
		free(peer.bytes);
	}
}

/* Loads from a pipe that gives the first @size bytes of the contents. */
static int load_from_stream(struct set *set, size_t size)
{
	struct peer peer;
	int ends[2], ret;

	write_image(set);
	open_pipe(ends);
	make_peer(&peer, ends[1], size);
	assert_int_equal(pread_full(set->job.image_fd, peer.bytes, size, HEADER), 0);
	assert_int_equal(thread_start(&peer.thread, feed, &peer), 0);
	(void)close(set->job.image_fd);
	set->job.image_fd = ends[0];
	set->job.streamed = true;
	ret = content_load(&set->job, 1, &settings);
	(void)close(ends[0]);
	set->job.image_fd = -1;
	(void)pthread_join(peer.thread, NULL);
	free(peer.bytes);
	return ret;
}

TEST(streams_are_read_in_order)
{
	_cleanup_set_ struct set *set = make_set(mixed);

	assert_int_equal(load_from_stream(set, image_size(set) - HEADER), 0);
	assert_true(bos_are_filled(set));
}

TEST(a_stream_that_ends_early_fails_the_load)
{
	static const size_t missing[] = { 1, PAGE, MIB, 3 * MIB };

	for (size_t i = 0; i < ARRAY_SIZE(missing); i++) {
		_cleanup_set_ struct set *set = make_set(mixed);

		unit_forget_lines();
		assert_int_equal(load_from_stream(set, image_size(set) - HEADER - missing[i]),
				 -EIO);
		assert_logged("Error (amdgpu_plugin): ", "GPU 0x0100", "image");
	}
}
