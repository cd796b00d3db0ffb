/* SPDX-License-Identifier: GPL-2.0-only */
/* The results of all injections. coverage.txt has a line for each. Failures are printed at once. */
#ifndef TEST_FAULTS_COVERAGE_H
#define TEST_FAULTS_COVERAGE_H

#include "trial.h"

struct coverage;

/* Writes to @path. @verbose: prints the output of failures. */
struct coverage *coverage_new(const char *path, bool verbose);
/* All results are in the file; otherwise the program ends with a line. */
void coverage_free(struct coverage *coverage);

void coverage_add(struct coverage *coverage, const struct injection *injection,
		  const struct trial *trial, const struct symbols *symbols);
/* Adds a call site that was met, injected or not. */
void coverage_add_place(struct coverage *coverage, const struct place *place, enum phase phase);
/* Adds another test, with lines for the file. */
void coverage_add_test(struct coverage *coverage, bool good, const char *lines);

/* Prints for each function the numbers of call sites met and injected, and of injections. */
void coverage_print_calls(const struct coverage *coverage);
size_t coverage_good(const struct coverage *coverage);
size_t coverage_bad(const struct coverage *coverage);

#endif
