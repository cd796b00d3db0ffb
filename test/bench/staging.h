/* SPDX-License-Identifier: GPL-2.0-only */
/* Stands between the measured code and libdrm where memory is registered with a GPU (the linker's
 * --wrap). It does what the simulator does not do: a driver that pins the memory makes all its
 * pages, and a real copy engine writes to them. */
#ifndef TEST_BENCH_STAGING_H
#define TEST_BENCH_STAGING_H

#include <stdbool.h>
#include <stdint.h>

/* Data that is saved without a copy has periods, each with data first and zeros after. */
#define STAGING_PERIOD (1u << 20)

/* Pages of memory registered from now on begin with a word other than zero; with @half_zero, only
 * those in the first half of each period. Resets the peak. */
void staging_begin(bool half_zero);
/* The most memory that was registered at the same time, of all GPUs together, in bytes. */
uint64_t staging_peak(void);

/* The number of slots and their size, as the engine last requested them. */
void staging_slots(unsigned int *ret_slots, uint64_t *ret_slot_size);

#endif
