// SPDX-License-Identifier: GPL-2.0-only
#include "storage/uncached_copy.h"

#include <string.h>

#ifdef __SSE2__

#include <emmintrin.h>

/* The bytes of a step: a line of the cache, which leaves the processor as a whole. */
#define LINE 64u

bool uncached_copy_exists(void)
{
	return true;
}

static void copy_line(__m128i *to, const __m128i *from)
{
	__m128i first = _mm_loadu_si128(from), second = _mm_loadu_si128(from + 1);
	__m128i third = _mm_loadu_si128(from + 2), fourth = _mm_loadu_si128(from + 3);

	_mm_stream_si128(to, first);
	_mm_stream_si128(to + 1, second);
	_mm_stream_si128(to + 2, third);
	_mm_stream_si128(to + 3, fourth);
}

void uncached_copy_bytes(void *to, const void *from, size_t size)
{
	size_t lines = size / LINE * LINE;

	for (size_t at = 0; at < lines; at += LINE)
		copy_line((__m128i *)((char *)to + at), (const __m128i *)((const char *)from + at));
	memcpy((char *)to + lines, (const char *)from + lines, size - lines);
}

/* The processor may delay such stores past later ones. */
void uncached_copy_end(void)
{
	_mm_sfence();
}

#else

bool uncached_copy_exists(void)
{
	return false;
}

void uncached_copy_bytes(void *to, const void *from, size_t size)
{
	memcpy(to, from, size);
}

void uncached_copy_end(void)
{
}

#endif
