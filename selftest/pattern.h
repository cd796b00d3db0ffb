/* SPDX-License-Identifier: GPL-2.0-only */
/* Position-dependent contents: every 64-bit word is a function of a key and of its index. A byte
 * that has moved, is old, or is from another buffer is therefore detected. The caller assigns the
 * keys. */
#ifndef SELFTEST_PATTERN_H
#define SELFTEST_PATTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pattern {
	uint64_t key;
	/* Most pages hold zeroes: what a sparse image format would like to leave out. */
	bool sparse;
};

struct pattern_mismatch {
	uint64_t offset_bytes;
	uint64_t expected;
	uint64_t got;
};

/* A good 64-bit mix (the finaliser of splitmix64). */
uint64_t pattern_mix(uint64_t x);

/* The key of generation @generation of buffer @id of process number @instance. */
uint64_t pattern_key(uint32_t instance, uint32_t id, uint32_t generation);

/* Fills @size_bytes (a multiple of 8) at @to with what stands at @offset_bytes (a multiple of 4096)
 * of the pattern. */
void pattern_fill(const struct pattern *pattern, uint64_t offset_bytes, void *to,
		  size_t size_bytes);

/* Compares in the same way; -EILSEQ and the first wrong word when they differ. */
int pattern_check(const struct pattern *pattern, uint64_t offset_bytes, const void *at,
		  size_t size_bytes, struct pattern_mismatch *ret_mismatch);

#endif
