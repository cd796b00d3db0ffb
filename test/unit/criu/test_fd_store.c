// SPDX-License-Identifier: GPL-2.0-only
/* CRIU's descriptor store after a restore that has failed. */
#include "host.h"

#include <poll.h>
#include <sys/socket.h>

#include "criu/host.h"

/* Returns the end of a pipe whose other end only the store has. */
static int store_pipe(void)
{
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	assert_true(host_store_fd(ends[1]) >= 0);
	(void)close(ends[1]);
	return ends[0];
}

static bool is_kept(int pipe_end)
{
	struct pollfd closed = { .fd = pipe_end };

	return poll(&closed, 1, 0) == 0;
}

UNIT_TEST(an_emptied_store_keeps_nothing)
{
	int ends[3];

	assert_int_equal(criu_stub_open_store(), 0);
	for (size_t i = 0; i < ARRAY_SIZE(ends); i++)
		ends[i] = store_pipe();
	(void)close(host_fetch_fd(2)); /* Reading at an offset must not change what is dropped. */
	for (size_t i = 0; i < ARRAY_SIZE(ends); i++)
		assert_true(is_kept(ends[i]));
	host_empty_store(host_find_store());
	for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
		assert_false(is_kept(ends[i]));
		(void)close(ends[i]);
	}
}

UNIT_TEST(an_emptied_store_takes_nothing)
{
	assert_int_equal(criu_stub_open_store(), 0);
	host_empty_store(host_find_store());
	assert_int_equal(host_store_fd(STDIN_FILENO), -EIO);
}

UNIT_TEST(other_sockets_are_not_the_store)
{
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair), 0);
	assert_int_equal(host_find_store(), -ENOENT);
	host_empty_store(-ENOENT);
	assert_int_equal(send(pair[0], "", 1, MSG_DONTWAIT), 1);
	(void)close(pair[0]);
	(void)close(pair[1]);
}
