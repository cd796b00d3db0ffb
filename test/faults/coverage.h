/* SPDX-License-Identifier: GPL-2.0-only */
/* What has come of all injections: coverage.txt has a line for each, and what is wrong
 * is said at once. */
#ifndef TEST_FAULTS_COVERAGE_H
#define TEST_FAULTS_COVERAGE_H

#include "trial.h"

struct coverage;

/* Writes to @path; @verbose: with the output of what is wrong. */
struct coverage *coverage_new(const char *path, bool verbose);
/* What was written is there; the program ends with a line if not. */
void coverage_free(struct coverage *coverage);

void coverage_add(struct coverage *coverage, const struct injection *injection,
		  const struct trial *trial, const struct symbols *symbols);
/* A place that was met, whether it is injected or not. */
void coverage_add_place(struct coverage *coverage, const struct place *place, enum phase phase);
/* Another test, with lines for the file. */
void coverage_add_test(struct coverage *coverage, bool good, const char *lines);

/* By function: places that were met, places injected, injections. */
void coverage_print_calls(const struct coverage *coverage);
size_t coverage_good(const struct coverage *coverage);
size_t coverage_bad(const struct coverage *coverage);

#endif
