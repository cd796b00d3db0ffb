/* SPDX-License-Identifier: GPL-2.0-only */
/* What every fuzz target needs: libFuzzer's entry, the surroundings of a unit test (unit_begin() is
 * fuzz_begin() here), and a way to say that a promise is broken. One target a file, fuzz_NAME.c; its
 * inputs are in corpus/NAME. */
#ifndef TEST_FUZZ_FUZZ_H
#define TEST_FUZZ_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "host.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* A promise of the plugin's: without it, the input is a finding. */
#define promise(condition)                                                               \
	do {                                                                             \
		if (!(condition)) {                                                      \
			(void)fprintf(stderr, "%s:%d: broken: %s\n", __FILE__, __LINE__, \
				      #condition);                                       \
			unit_show_lines();                                               \
			abort();                                                         \
		}                                                                        \
	} while (0)

/* One input: an empty image directory and an empty log at its begin, and no descriptor more at its
 * end than there were. */
void fuzz_begin(void);
void fuzz_end(void);

/* Takes parts of an input from its front. A part that is not there is zero or empty. */
struct fuzz_input {
	const uint8_t *bytes;
	size_t size;
};

uint64_t fuzz_take_number(struct fuzz_input *input, size_t num_bytes);
/* @size bytes, or as many as are left; they are the input's. */
const uint8_t *fuzz_take_bytes(struct fuzz_input *input, size_t size, size_t *ret_size);
/* A string of all that is left, ended by its first NUL if it has one. The caller's. */
char *fuzz_take_text(struct fuzz_input *input);

#endif
