/* SPDX-License-Identifier: GPL-2.0-only */
/* Stands between the measured code and libdrm where memory is registered with a GPU (the linker's
 * --wrap), for what the simulator does not do: a driver that pins the memory makes all its pages,
 * and a copy engine that really copies leaves something in them. */
#ifndef TEST_BENCH_STAGING_H
#define TEST_BENCH_STAGING_H

#include <stdbool.h>
#include <stdint.h>

/* In what is saved without being copied, each period begins with data and ends with zeros. */
#define STAGING_PERIOD (1u << 20)

/* Pages of memory registered from now on begin with something else than zero; with @half_zero,
 * those in the first half of each period only. Forgets the peak. */
void staging_begin(bool half_zero);
/* The most memory that was registered at once, of all GPUs together, in bytes. */
uint64_t staging_peak(void);

/* Slots and their size as the engine last asked for them. */
void staging_slots(unsigned int *ret_slots, uint64_t *ret_slot_size);

#endif
