/* SPDX-License-Identifier: GPL-2.0-only */
/* Whether a method moves bytes. Asserts no time. */
#ifndef TEST_BENCH_PROOF_H
#define TEST_BENCH_PROOF_H

#include <stdbool.h>

#include "places.h"

struct content_settings;

/* Makes a CUDA device the copy engine of the simulator. -ENODEV after a line. */
int proof_start_cuda(void);
/* Once by the reference and once by the plugin: loads images of words that all differ, with BOs
 * that hold something else before, and saves them to images that must be the same. With @scribble
 * the BOs hold the same byte before; else the plugin finds the words of the reference in them,
 * which are others. 0 or -errno, after a line. */
int proof_run(struct places *places, struct content_job *jobs, size_t num_jobs,
	      const struct content_settings *settings, bool scribble);

#endif
