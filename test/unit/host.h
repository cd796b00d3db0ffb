/* SPDX-License-Identifier: GPL-2.0-only */
/* What every unit test needs: a stand-in for the CRIU that loads the plugin, and a
 * directory of its own that is the image directory too. What is being tested is the
 * business of the test programs. */
#ifndef TEST_UNIT_HOST_H
#define TEST_UNIT_HOST_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <cmocka.h>

#include "../criu_symbols.h"

/* What the stand-in answers, and what it was asked. As new before each test. */
struct unit_criu {
	int image_dir;
	int unused_fd;
	int note_result;
	unsigned int notes;
	unsigned int claims;
	char name[64];
	/* An image of a streamer; NULL: images are files. See streamer.h. */
	int (*open_streamed)(const char *name, int flags);
	/* Sees each line as it is printed; NULL: nobody does. */
	void (*printed)(const char *line);
};

struct unit_criu *unit_criu(void);

/* The id that CRIU's descriptor store gave last. */
int unit_last_stored(void);

/* Fixtures: an empty directory and an empty log before the test; after it the directory goes, and a
 * descriptor that the test has left open is a failure. */
int unit_begin(void **state);
int unit_end(void **state);

#define UNIT_TEST(function) cmocka_unit_test_setup_teardown(function, unit_begin, unit_end)

/* Lines that the plugin has printed, and whether one of them holds all of the texts
 * given (end with NULL). */
size_t unit_count_lines(const char *text);
bool unit_logged(const char *text, ...) __attribute__((sentinel));
void unit_forget_lines(void);
#define assert_logged(...) assert_true(unit_logged(__VA_ARGS__, NULL))

/* What a hook answers when it cannot do what is its own job. EOPNOTSUPP is the same
 * number as ENOTSUP, and to CRIU that is "not mine, ask others": whoever says so of his
 * own files loses them. */
#define assert_fails(result)                             \
	do {                                             \
		int result_ = (result);                  \
                                                         \
		assert_in_range(-result_, 1, 4095);      \
		assert_int_not_equal(result_, -ENOTSUP); \
	} while (0)

/* Descriptors that this process has open. */
size_t unit_count_fds(void);

/* Processes whose parent this one is, zombies too. */
size_t unit_count_children(void);
/* Waits for a child that SIGKILL ends. */
void unit_wait_for_killed(pid_t pid);
/* A child that sleeps until it is ended. */
pid_t unit_start_sleeper(void);
void unit_end_sleeper(pid_t pid);

/* A path below the test's directory; valid until the 8th next call. */
const char *unit_path(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Makes the file (and directories above it). Paths are relative to the test's directory. */
void unit_write(const char *path, const void *bytes, size_t size);
void unit_print(const char *path, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The whole file, in memory of the caller's. */
uint8_t *unit_read(const char *path, size_t *ret_size);
bool unit_exists(const char *path);

/* From here on files may not grow beyond @bytes: writes fail with EFBIG, as on a full disk. */
void unit_limit_files(uint64_t bytes);
void unit_unlimit_files(void);

#endif
