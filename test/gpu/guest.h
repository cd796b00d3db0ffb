/* SPDX-License-Identifier: GPL-2.0-only */
/* The guest's memory, as far as QEMU has given it to the device for DMA. */
#ifndef TEST_GPU_GUEST_H
#define TEST_GPU_GUEST_H

#include <stdint.h>

#define GUEST_MAX_RANGES 64u

struct guest_range {
	uint64_t address, size_bytes;
	uint8_t *memory; /* a mapping that guest_remove() undoes */
};

struct guest {
	struct guest_range ranges[GUEST_MAX_RANGES];
	unsigned int num_ranges;
};

/* 0, or -ENOSPC if the table is full. */
int guest_add(struct guest *guest, const struct guest_range *range);
/* Unmaps all ranges that lie between the two addresses. */
void guest_remove(struct guest *guest, uint64_t address, uint64_t size_bytes);

/* The memory at a physical address. NULL: not all of these bytes are memory of the guest. */
void *guest_at(const struct guest *guest, uint64_t address, uint64_t size_bytes);

#endif
