/* SPDX-License-Identifier: GPL-2.0-only */
/* The parts of each fuzz target: libFuzzer's entry, the environment of a unit test (fuzz_begin() in
 * place of unit_begin()), and a check of promises. A file fuzz_NAME.c is one target; its inputs are
 * in corpus/NAME. */
#ifndef TEST_FUZZ_FUZZ_H
#define TEST_FUZZ_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "host.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* A promise of the plugin. If it is broken, the input is a finding. */
#define promise(condition)                                                               \
	do {                                                                             \
		if (!(condition)) {                                                      \
			(void)fprintf(stderr, "%s:%d: broken: %s\n", __FILE__, __LINE__, \
				      #condition);                                       \
			unit_show_lines();                                               \
			abort();                                                         \
		}                                                                        \
	} while (0)

/* One input: begins with an empty image directory and an empty log, and checks at the end that no
 * descriptor is left. */
void fuzz_begin(void);
void fuzz_end(void);

/* Takes parts of an input from its front. A missing part is zero or empty. */
struct fuzz_input {
	const uint8_t *bytes;
	size_t size;
};

uint64_t fuzz_take_number(struct fuzz_input *input, size_t num_bytes);
/* @size bytes, or as many as are left. They belong to the input. */
const uint8_t *fuzz_take_bytes(struct fuzz_input *input, size_t size, size_t *ret_size);
/* A string of the remaining bytes, up to the first NUL. The caller frees it. */
char *fuzz_take_text(struct fuzz_input *input);

#endif
