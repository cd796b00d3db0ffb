// SPDX-License-Identifier: GPL-2.0-only
/* Tests the default of the staging memory. */
#include <errno.h>

#include "host.h"

#include "content/staging.h"
#include "kernel/free_memory.h"

#define MIB 1048576ull
#define GIB (1024 * MIB)

static uint64_t free_bytes;

/* The plugin's call comes here. */
int __wrap_free_memory_find(uint64_t *ret_bytes);
int __wrap_free_memory_find(uint64_t *ret_bytes)
{
	if (!free_bytes)
		return -EIO;
	*ret_bytes = free_bytes;
	return 0;
}

UNIT_TEST(staging_memory_grows_and_shrinks_with_the_free_memory)
{
	static const struct {
		uint64_t free, staging;
	} rows[] = {
		{ 256 * GIB, 48 * MIB }, { 20 * GIB, 20 * MIB }, { 8 * GIB, 8 * MIB },
		{ GIB, 8 * MIB },        { 512 * MIB, 8 * MIB }, { 64 * MIB, MIB },
		{ 0, 8 * MIB },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		free_bytes = rows[i].free;
		assert_int_equal(staging_choose(), rows[i].staging);
	}
}
