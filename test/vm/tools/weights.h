/* SPDX-License-Identifier: GPL-2.0-only */
/* Writes numbers and random weights to the file of a model, which is always the same. Included by a
 * tool once. */
#ifndef TEST_VM_TOOLS_WEIGHTS_H
#define TEST_VM_TOOLS_WEIGHTS_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static FILE *out;
static uint64_t random_state = 0x9e3779b97f4a7c15;

static void put(const void *data, size_t size)
{
	if (fwrite(data, size, 1, out) != 1) {
		perror("cannot write the model");
		exit(1);
	}
}

#define PUT(type, ...) put(&(type){ __VA_ARGS__ }, sizeof(type))

/* Evenly distributed between -1 and 1, by xorshift. */
static float next_random(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (float)(int32_t)(random_state >> 32) / 2147483648.f;
}

#endif
