/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef TEST_BENCH_SMOKE_H
#define TEST_BENCH_SMOKE_H

/* Moves the bytes of small workloads to images in @directory and back, in each way that the
 * benchmark measures, and compares images and BOs. Prints a line a failure and at last "N passed, N
 * failed"; 0 if none failed. */
int smoke(const char *directory);

#endif
