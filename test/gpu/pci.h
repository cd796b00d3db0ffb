/* SPDX-License-Identifier: GPL-2.0-only */
/* The PCI configuration space: one function with power management, PCI Express and MSI. */
#ifndef TEST_GPU_PCI_H
#define TEST_GPU_PCI_H

#include <stdint.h>

#define PCI_CONFIG_BYTES   4096u
#define PCI_DOORBELL_BYTES (2u << 20)
#define PCI_ROM_BYTES      (64u << 10)

enum { PCI_BAR_VRAM = 0, PCI_BAR_DOORBELL = 2, PCI_BAR_REGISTERS = 5 };

struct pci {
	uint8_t config[PCI_CONFIG_BYTES];
	uint8_t writable[PCI_CONFIG_BYTES]; /* the bits that software may change */
};

struct asic;

/* @vram_bytes: the size of BAR 0, a power of two. */
void pci_init(struct pci *pci, const struct asic *asic, uint64_t vram_bytes);
/* The caller has checked the range. */
void pci_read(const struct pci *pci, uint64_t offset, void *data, uint32_t size_bytes);
void pci_write(struct pci *pci, uint64_t offset, const void *data, uint32_t size_bytes);

#endif
