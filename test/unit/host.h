/* SPDX-License-Identifier: GPL-2.0-only */
/* The parts that all unit tests share: a fake CRIU that loads the plugin, and a directory for each
 * test, which is also the image directory. Tests use the headers that this one includes. */
#ifndef TEST_UNIT_HOST_H
#define TEST_UNIT_HOST_H

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include "amdgpu_plugin_util.h"
#include "criu-amdgpu.pb-c.h"
#include "criu_stub.h"
#include "tests.h"

/* CRIU as the tests see it: criu_stub has its answers, this its inventory of plugins and its log.
 * Both are reset before each test. */
struct unit_criu {
	int note_result;
	unsigned int notes;
	unsigned int claims;
	char name[64];
	/* Called for each line of the log; may be NULL. */
	void (*printed)(const char *line);
};

struct unit_criu *unit_criu(void);

/* Where and how the tests run. A program may change this before its first test. */
struct unit_settings {
	/* The directory in which the directory of a test is made: /tmp. */
	const char *directory;
	/* Lines of the log are not printed, and only the newest are kept. */
	bool quiet;
};

extern struct unit_settings unit_settings;

/* The id that CRIU's descriptor store returned last. */
int unit_last_stored(void);

/* Fixtures. Before a test they create an empty directory and an empty log. After it they remove the
 * directory, and fail the test if it has left a descriptor open. */
int unit_begin(void **state);
int unit_end(void **state);

#define UNIT_TEST(name) TEST_WITH(name, unit_begin, unit_end)

/* The number of log lines that contain @text, and whether one line contains all
 * texts up to NULL. */
size_t unit_count_lines(const char *text);
/* The number of all lines that are errors. */
size_t unit_count_errors(void);
/* Writes the kept lines to standard error. */
void unit_show_lines(void);
bool unit_logged(const char *text, ...) __attribute__((sentinel));
void unit_forget_lines(void);
#define assert_logged(...) assert_true(unit_logged(__VA_ARGS__, NULL))

/* The result of a hook that fails for a file of the plugin. It must not be -ENOTSUP, the same
 * number as -EOPNOTSUPP: CRIU would then ask other plugins, and the file would be lost. */
#define assert_fails(result)                             \
	do {                                             \
		int result_ = (result);                  \
                                                         \
		assert_in_range(-result_, 1, 4095);      \
		assert_int_not_equal(result_, -ENOTSUP); \
	} while (0)

/* The number of open descriptors of this process. */
size_t unit_count_fds(void);

/* The number of children of this process, with zombies. */
size_t unit_count_children(void);
/* Waits for a child that exits. Return: its status. A child that exits with UNIT_REFUSED skips the
 * test: the machine does not allow what the test needs. */
#define UNIT_REFUSED 77
int unit_wait(pid_t pid);
/* Waits for a child, which SIGKILL must have ended. */
void unit_wait_for_killed(pid_t pid);
/* Starts a child that sleeps until unit_end_sleeper(). */
pid_t unit_start_sleeper(void);
void unit_end_sleeper(pid_t pid);

/* The directory of the test. */
const char *unit_directory(void);
/* A path below it. The string is valid for 8 calls. */
const char *unit_path(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Writes a file, and creates its directories. @path is relative to the directory of the test. */
void unit_write(const char *path, const void *bytes, size_t size);
void unit_print(const char *path, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Reads a whole file into memory that the caller frees. */
uint8_t *unit_read(const char *path, size_t *ret_size);
bool unit_exists(const char *path);

void unit_free_kfd(CriuKfd **kfd);
#define _cleanup_kfd_ _cleanup_(unit_free_kfd)

/* Limits the size of files to @bytes until unit_unlimit_files(): writes fail with EFBIG, as on a
 * full disk with ENOSPC. */
void unit_limit_files(uint64_t bytes);
void unit_unlimit_files(void);

#endif
