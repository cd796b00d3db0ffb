/* SPDX-License-Identifier: GPL-2.0-only */
/* A VBIOS image with the tables that amdgpu reads, and without code. */
#ifndef TEST_GPU_VBIOS_H
#define TEST_GPU_VBIOS_H

#include <stdint.h>

struct asic;

/* @rom: PCI_ROM_BYTES, zeroed. */
void vbios_make(const struct asic *asic, uint8_t *rom);

#endif
