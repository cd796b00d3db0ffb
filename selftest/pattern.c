/* SPDX-License-Identifier: GPL-2.0-only */
/* Fills and compares memory with a pattern at the speed of memory, as the machine is emulated.
 * It knows nothing of buffers or GPUs. */
#include "pattern.h"

#include <errno.h>

/* Odd, so that all words of a buffer differ. */
#define PATTERN_STEP       0x9e3779b97f4a7c15ull
#define PATTERN_PAGE       4096
#define PATTERN_PAGE_WORDS (PATTERN_PAGE / 8)
/* Of a sparse pattern, one page in this many holds something. */
#define PATTERN_SPARSE_PAGES 16

uint64_t pattern_mix(uint64_t x)
{
	x ^= x >> 30;
	x *= 0xbf58476d1ce4e5b9ull;
	x ^= x >> 27;
	x *= 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

uint64_t pattern_key(uint32_t instance, uint32_t id, uint32_t generation)
{
	uint64_t key = pattern_mix((uint64_t)instance << 32 | id);

	return pattern_mix(key + (generation + 1) * PATTERN_STEP);
}

static bool pattern_page_is_zero(const struct pattern *pattern, uint64_t page)
{
	return pattern->sparse && (page + pattern->key) % PATTERN_SPARSE_PAGES != 0;
}

static void pattern_fill_words(uint64_t first, uint64_t step, uint64_t *to, size_t words)
{
	size_t i = 0;

	for (; i + 4 <= words; i += 4) {
		to[i] = first;
		to[i + 1] = first + step;
		to[i + 2] = first + 2 * step;
		to[i + 3] = first + 3 * step;
		first += 4 * step;
	}
	for (; i < words; i++, first += step)
		to[i] = first;
}

static bool pattern_equal_words(uint64_t first, uint64_t step, const uint64_t *at, size_t words)
{
	uint64_t wrong = 0;
	size_t i = 0;

	for (; i + 4 <= words; i += 4) {
		wrong |= at[i] ^ first;
		wrong |= at[i + 1] ^ (first + step);
		wrong |= at[i + 2] ^ (first + 2 * step);
		wrong |= at[i + 3] ^ (first + 3 * step);
		first += 4 * step;
	}
	for (; i < words; i++, first += step)
		wrong |= at[i] ^ first;
	return wrong == 0;
}

void pattern_fill(const struct pattern *pattern, uint64_t offset_bytes, void *to, size_t size_bytes)
{
	uint64_t page = offset_bytes / PATTERN_PAGE;
	uint64_t *words = to;

	for (size_t left = size_bytes / 8; left > 0; page++) {
		size_t n = left < PATTERN_PAGE_WORDS ? left : PATTERN_PAGE_WORDS;
		uint64_t first = pattern->key + page * PATTERN_PAGE_WORDS * PATTERN_STEP;

		if (pattern_page_is_zero(pattern, page))
			pattern_fill_words(0, 0, words, n);
		else
			pattern_fill_words(first, PATTERN_STEP, words, n);
		words += n;
		left -= n;
	}
}

static void pattern_find_mismatch(uint64_t first, uint64_t step, const uint64_t *at,
				  struct pattern_mismatch *ret_mismatch)
{
	size_t i = 0;

	while (at[i] == first + i * step)
		i++;
	ret_mismatch->offset_bytes = i * 8;
	ret_mismatch->expected = first + i * step;
	ret_mismatch->got = at[i];
}

int pattern_check(const struct pattern *pattern, uint64_t offset_bytes, const void *at,
		  size_t size_bytes, struct pattern_mismatch *ret_mismatch)
{
	uint64_t page = offset_bytes / PATTERN_PAGE;
	const uint64_t *words = at;

	for (size_t left = size_bytes / 8; left > 0; page++) {
		size_t n = left < PATTERN_PAGE_WORDS ? left : PATTERN_PAGE_WORDS;
		bool zero = pattern_page_is_zero(pattern, page);
		uint64_t first = pattern->key + page * PATTERN_PAGE_WORDS * PATTERN_STEP;

		first = zero ? 0 : first;
		if (!pattern_equal_words(first, zero ? 0 : PATTERN_STEP, words, n)) {
			pattern_find_mismatch(first, zero ? 0 : PATTERN_STEP, words, ret_mismatch);
			ret_mismatch->offset_bytes += page * PATTERN_PAGE;
			return -EILSEQ;
		}
		words += n;
		left -= n;
	}
	return 0;
}
