/* SPDX-License-Identifier: GPL-2.0-only */
/* Sets of GPUs of one machine, and of groups of them: a uint64_t in which bit i stands for index i.
 * The operators &, | and & ~ give the intersection, the union and the difference. */
#ifndef AMDGPU_PLUGIN_MAP_GPU_SET_H
#define AMDGPU_PLUGIN_MAP_GPU_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* KFD gives a process no more GPUs (MAX_GPU_INSTANCE in kfd_priv.h). */
#define GPU_SET_MAX 64

/* @index: below GPU_SET_MAX. */
static inline bool set_has(uint64_t set, size_t index)
{
	return set >> index & 1;
}

/* @index: below GPU_SET_MAX. */
static inline uint64_t set_of(size_t index)
{
	return 1ULL << index;
}

static inline uint64_t set_of_first(size_t count)
{
	return count < GPU_SET_MAX ? (1ULL << count) - 1 : ~0ULL;
}

static inline size_t set_count(uint64_t set)
{
	return (size_t)__builtin_popcountll(set);
}

/* The lowest index from @from on, or GPU_SET_MAX. */
static inline size_t set_next(uint64_t set, size_t from)
{
	uint64_t rest = from < GPU_SET_MAX ? set & ~0ULL << from : 0;

	return rest ? (size_t)__builtin_ctzll(rest) : GPU_SET_MAX;
}

/* The body may change @set: later indices are looked up in the changed set. */
#define set_for_each(index, set)                                     \
	for (size_t index = set_next(set, 0); (index) < GPU_SET_MAX; \
	     (index) = set_next(set, (index) + 1))

#endif
