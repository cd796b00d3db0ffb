/* SPDX-License-Identifier: GPL-2.0-only */
/* The kernel "march" of test/data/kernels: four waves that exchange values through LDS in each
 * round. What it depends on between two rounds is in registers and LDS alone. */
#ifndef SELFTEST_MARCH_H
#define SELFTEST_MARCH_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define MARCH_ITEMS   256u
#define MARCH_ENDLESS UINT32_MAX

struct march_arguments {
	uint64_t cells, control; /* addresses */
};

/* Of the kernel's loop, which ends when @rounds has reached @wanted. */
struct march_control {
	volatile uint32_t rounds, wanted, starts;
};

/* The rounds of a loop: those of the environment, or MARCH_ENDLESS: until a verification changes
 * @wanted. */
static inline uint32_t march_wanted(void)
{
	const char *rounds = getenv("MARCH_ROUNDS");

	return rounds && *rounds ? (uint32_t)strtoul(rounds, NULL, 10) : MARCH_ENDLESS;
}

static inline uint64_t march_first(uint32_t item)
{
	return (item + 1) * 0x9e3779b97f4a7c15ull;
}

/* What the cells are after @rounds. */
static inline void march_compute(uint32_t rounds, uint64_t *cells)
{
	uint64_t before[MARCH_ITEMS];

	for (uint32_t i = 0; i < MARCH_ITEMS; i++)
		cells[i] = march_first(i);
	for (uint32_t round = 0; round < rounds; round++) {
		memcpy(before, cells, sizeof(before));
		for (uint32_t i = 0; i < MARCH_ITEMS; i++)
			cells[i] = before[i ^ 65] * 6364136223846793005ull + round;
	}
}

#endif
