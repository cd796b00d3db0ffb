/* SPDX-License-Identifier: GPL-2.0-only */
/* The benchmark's methods with small workloads, as a test. */
#ifndef TEST_BENCH_SMOKE_H
#define TEST_BENCH_SMOKE_H

/* Moves the bytes of small workloads to images in @directory and back, by each method of the
 * benchmark, and compares images and BOs. Prints a line for each failure, and at the end "N passed,
 * N failed". 0: none failed. */
int smoke(const char *directory);

#endif
