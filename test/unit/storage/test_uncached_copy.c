// SPDX-License-Identifier: GPL-2.0-only
/* Tests copies past the caches: each size and place of the source, and nothing but these bytes. */
#include "host.h"

#include "storage/uncached_copy.h"

#define SIZE_MAX_TRIED 300
#define GUARD          0xa5

static unsigned char source[SIZE_MAX_TRIED + 64];
/* The target of device memory is whole pages. */
static _Alignas(4096) unsigned char target[4096];

UNIT_TEST(each_size_copies_its_bytes_only)
{
	for (size_t i = 0; i < sizeof(source); i++)
		source[i] = (unsigned char)(i * 7 + 1);
	for (size_t size = 0; size <= SIZE_MAX_TRIED; size++) {
		const unsigned char *from = source + size % 61;

		memset(target, GUARD, sizeof(target));
		uncached_copy_bytes(target + 16, from, size);
		uncached_copy_end();
		assert_memory_equal(target + 16, from, size);
		assert_int_equal(target[15], GUARD);
		assert_int_equal(target[16 + size], GUARD);
	}
}
