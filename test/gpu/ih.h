/* SPDX-License-Identifier: GPL-2.0-only */
/* The interrupt handler (vega20_ih.c): a ring of entries in the guest's memory, and an MSI. Only
 * ring 0 is modelled; the others are for retried faults. */
#ifndef TEST_GPU_IH_H
#define TEST_GPU_IH_H

#include <stdbool.h>
#include <stdint.h>

#include "memory.h"

struct ih_entry {
	uint8_t client; /* enum soc15_ih_clientid */
	uint8_t source, ring;
	struct space space; /* its VMID names the process, by way of the table of PASIDs */
	uint32_t data[4];
};

/* A lost interrupt is a violation, and so is an interrupt that overwrites an entry before the
 * driver has read it. */
void ih_post(struct gpu *gpu, const struct ih_entry *entry);
/* Whether the doorbell is that of the read pointer; then it is taken. */
bool ih_take_doorbell(struct gpu *gpu, uint32_t doorbell, uint64_t value);
/* The PASID of interrupts of a VMID, of the hubs of an XCC and of its AID. */
void ih_set_pasid(struct gpu *gpu, unsigned int xcc, unsigned int vmid, uint16_t pasid);
uint16_t ih_pasid_of(const struct gpu *gpu, const struct space *space);

#endif
