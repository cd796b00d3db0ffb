/* SPDX-License-Identifier: GPL-2.0-only */
/* Sets of GPUs (or CPU nodes) of one machine, by their index there: the mapper's arithmetic. Fixed
 * in size, so that a set can be copied and thrown away. */
#ifndef AMDGPU_PLUGIN_MAP_GPU_SET_H
#define AMDGPU_PLUGIN_MAP_GPU_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Four times what the largest machines have. */
#define GPU_SET_MAX   256
#define GPU_SET_WORDS (GPU_SET_MAX / 64)

struct gpu_set {
	uint64_t words[GPU_SET_WORDS];
};

static inline bool set_has(const struct gpu_set *set, size_t index)
{
	return set->words[index / 64] >> (index % 64) & 1;
}

static inline void set_add(struct gpu_set *set, size_t index)
{
	set->words[index / 64] |= 1ULL << (index % 64);
}

static inline void set_remove(struct gpu_set *set, size_t index)
{
	set->words[index / 64] &= ~(1ULL << (index % 64));
}

static inline struct gpu_set set_of(size_t index)
{
	struct gpu_set set = { 0 };

	set_add(&set, index);
	return set;
}

static inline struct gpu_set set_of_first(size_t count)
{
	struct gpu_set set = { 0 };

	for (size_t i = 0; i < count; i++)
		set_add(&set, i);
	return set;
}

static inline size_t set_count(const struct gpu_set *set)
{
	size_t count = 0;

	for (size_t i = 0; i < GPU_SET_WORDS; i++)
		count += (size_t)__builtin_popcountll(set->words[i]);
	return count;
}

static inline bool set_is_empty(const struct gpu_set *set)
{
	uint64_t any = 0;

	for (size_t i = 0; i < GPU_SET_WORDS; i++)
		any |= set->words[i];
	return !any;
}

static inline bool set_equal(const struct gpu_set *a, const struct gpu_set *b)
{
	uint64_t differing = 0;

	for (size_t i = 0; i < GPU_SET_WORDS; i++)
		differing |= a->words[i] ^ b->words[i];
	return !differing;
}

static inline struct gpu_set set_and(const struct gpu_set *a, const struct gpu_set *b)
{
	struct gpu_set both;

	for (size_t i = 0; i < GPU_SET_WORDS; i++)
		both.words[i] = a->words[i] & b->words[i];
	return both;
}

static inline struct gpu_set set_without(const struct gpu_set *a, const struct gpu_set *b)
{
	struct gpu_set rest;

	for (size_t i = 0; i < GPU_SET_WORDS; i++)
		rest.words[i] = a->words[i] & ~b->words[i];
	return rest;
}

static inline void set_add_all(struct gpu_set *set, const struct gpu_set *more)
{
	for (size_t i = 0; i < GPU_SET_WORDS; i++)
		set->words[i] |= more->words[i];
}

/* The lowest index from @from on, or GPU_SET_MAX. */
static inline size_t set_next(const struct gpu_set *set, size_t from)
{
	for (size_t i = from / 64; i < GPU_SET_WORDS; i++) {
		uint64_t word = set->words[i];

		if (i == from / 64)
			word &= ~0ULL << (from % 64);
		if (word)
			return i * 64 + (size_t)__builtin_ctzll(word);
	}
	return GPU_SET_MAX;
}

#define set_for_each(index, set)                                       \
	for (size_t index = set_next((set), 0); (index) < GPU_SET_MAX; \
	     (index) = set_next((set), (index) + 1))

#endif
