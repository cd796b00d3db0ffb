/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the acceptance programs share: a check that ends the program with the place and the errno,
 * access to the simulator's debugfs files, and command buffers built by hand. */
#ifndef ACCEPT_H
#define ACCEPT_H

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SIM_DIR "/sys/kernel/debug/amdgpu_sim/"

#define CHECK(condition)                                                                  \
	do {                                                                              \
		if (!(condition)) {                                                       \
			fprintf(stderr, "%s:%d: not true: %s (errno %d: %s)\n", __FILE__, \
				__LINE__, #condition, errno, strerror(errno));            \
			exit(1);                                                          \
		}                                                                         \
	} while (0)

#define CHECK_INT(value, expected)                                                              \
	do {                                                                                    \
		long check_value = (long)(value), check_expected = (long)(expected);            \
		if (check_value != check_expected) {                                            \
			fprintf(stderr, "%s:%d: %s is %ld, not %ld (errno %d: %s)\n", __FILE__, \
				__LINE__, #value, check_value, check_expected, errno,           \
				strerror(errno));                                               \
			exit(1);                                                                \
		}                                                                               \
	} while (0)

#ifdef SIM_NATIVE
/* The native front end has no debugfs; see amdgpu_sim.h. */
int amdgpu_sim_write(const char *file, const char *text);
int amdgpu_sim_read(const char *file, char *text, size_t size);

static inline long sim_read(const char *name)
{
	char text[4096];

	CHECK(amdgpu_sim_read(name, text, sizeof(text)) >= 0);
	return strtol(text, NULL, 10);
}

static inline void sim_write(const char *name, const char *text)
{
	CHECK_INT(amdgpu_sim_write(name, text), 0);
}
#else
static inline long sim_read(const char *name)
{
	char path[128];
	long value = -1;
	FILE *file;

	snprintf(path, sizeof(path), SIM_DIR "%s", name);
	file = fopen(path, "r");
	CHECK(file);
	CHECK(fscanf(file, "%ld", &value) == 1);
	fclose(file);
	return value;
}

static inline void sim_write(const char *name, const char *text)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), SIM_DIR "%s", name);
	fd = open(path, O_WRONLY);
	CHECK(fd >= 0);
	CHECK(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
}
#endif

/* Expects exactly @count violations since the last call, and forgets them. */
static inline void expect_violations(long count)
{
	CHECK_INT(sim_read("violations"), count);
	sim_write("violations", "0");
}

static inline uint32_t pattern(uint64_t index, uint32_t seed)
{
	uint64_t x = index * 0x9e3779b97f4a7c15ull + seed;

	return (uint32_t)(x ^ x >> 29);
}

static inline void fill_pattern(void *memory, uint64_t bytes, uint32_t seed)
{
	uint32_t *word = memory;
	uint64_t i;

	for (i = 0; i < bytes / 4; i++)
		word[i] = pattern(i, seed);
}

static inline int has_pattern(const void *memory, uint64_t bytes, uint32_t seed)
{
	const uint32_t *word = memory;
	uint64_t i;

	for (i = 0; i < bytes / 4; i++)
		if (word[i] != pattern(i, seed))
			return 0;
	return 1;
}

/* A linear copy of up to 4 MiB; returns the dwords written. */
static inline unsigned put_copy(uint32_t *at, uint64_t dst, uint64_t src, uint32_t bytes)
{
	at[0] = 1;
	at[1] = bytes - 1;
	at[2] = 0;
	at[3] = (uint32_t)src;
	at[4] = (uint32_t)(src >> 32);
	at[5] = (uint32_t)dst;
	at[6] = (uint32_t)(dst >> 32);
	return 7;
}

#endif
