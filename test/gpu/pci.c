// SPDX-License-Identifier: GPL-2.0-only
#include "pci.h"

#include <linux/pci_regs.h>
#include <string.h>

#include "asic.h"

enum { AT_POWER = 0x48, AT_EXPRESS = 0x50, AT_MSI = 0xa0 };

#define REVISION    2u
#define SPEED_16_GT 4u
#define WIDTH_16    (16u << 4)

static void put(struct pci *pci, unsigned int at, unsigned int size_bytes, uint32_t value,
		uint32_t writable)
{
	memcpy(pci->config + at, &value, size_bytes);
	memcpy(pci->writable + at, &writable, size_bytes);
}

/* A BAR decodes as many high bits as its size leaves. */
static void put_bar(struct pci *pci, unsigned int bar, uint32_t flags, uint64_t size_bytes)
{
	unsigned int at = PCI_BASE_ADDRESS_0 + 4 * bar;
	uint64_t writable = ~(size_bytes - 1);

	put(pci, at, 4, flags, (uint32_t)writable);
	if (flags & PCI_BASE_ADDRESS_MEM_TYPE_64)
		put(pci, at + 4, 4, 0, writable >> 32);
}

static void put_power(struct pci *pci)
{
	put(pci, AT_POWER, 4, PCI_CAP_ID_PM | AT_EXPRESS << 8 | 3u << 16, 0);
	put(pci, AT_POWER + PCI_PM_CTRL, 4, 0, PCI_PM_CTRL_STATE_MASK);
}

/* The driver reads the speed of the link, and whether the bus carries atomic operations. */
static void put_express(struct pci *pci)
{
	put(pci, AT_EXPRESS, 4, PCI_CAP_ID_EXP | AT_MSI << 8 | 2u << 16, 0);
	put(pci, AT_EXPRESS + PCI_EXP_DEVCAP, 4, 0x8fa1, 0);
	put(pci, AT_EXPRESS + PCI_EXP_DEVCTL, 4, 0x2810, 0xffff);
	put(pci, AT_EXPRESS + PCI_EXP_LNKCAP, 4, SPEED_16_GT | WIDTH_16 | 1u << 22 | 3u << 10, 0);
	put(pci, AT_EXPRESS + PCI_EXP_LNKCTL, 4, (SPEED_16_GT | WIDTH_16 | 1u << 12) << 16, 0xffff);
	put(pci, AT_EXPRESS + PCI_EXP_DEVCAP2, 4,
	    PCI_EXP_DEVCAP2_ATOMIC_COMP32 | PCI_EXP_DEVCAP2_ATOMIC_COMP64, 0);
	put(pci, AT_EXPRESS + PCI_EXP_DEVCTL2, 4, 0, 0xffff);
	put(pci, AT_EXPRESS + PCI_EXP_LNKCAP2, 4, 0x1e, 0);
	put(pci, AT_EXPRESS + PCI_EXP_LNKCTL2, 4, SPEED_16_GT, 0xffff);
}

static void put_msi(struct pci *pci)
{
	put(pci, AT_MSI, 4, PCI_CAP_ID_MSI | PCI_MSI_FLAGS_64BIT << 16,
	    (uint32_t)(PCI_MSI_FLAGS_ENABLE | PCI_MSI_FLAGS_QSIZE) << 16);
	put(pci, AT_MSI + PCI_MSI_ADDRESS_LO, 4, 0, ~3u);
	put(pci, AT_MSI + PCI_MSI_ADDRESS_HI, 4, 0, ~0u);
	put(pci, AT_MSI + PCI_MSI_DATA_64, 4, 0, 0xffff);
}

void pci_init(struct pci *pci, const struct asic *asic, uint64_t vram_bytes)
{
	memset(pci, 0, sizeof(*pci));
	put(pci, PCI_VENDOR_ID, 4, ASIC_VENDOR_ID | (uint32_t)asic->device_id << 16, 0);
	put(pci, PCI_COMMAND, 2, 0,
	    PCI_COMMAND_IO | PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER | PCI_COMMAND_PARITY |
		    PCI_COMMAND_SERR | PCI_COMMAND_INTX_DISABLE);
	put(pci, PCI_STATUS, 2, PCI_STATUS_CAP_LIST, 0);
	put(pci, PCI_CLASS_REVISION, 4, asic->class_code << 8 | REVISION, 0);
	put_bar(pci, PCI_BAR_VRAM, PCI_BASE_ADDRESS_MEM_TYPE_64 | PCI_BASE_ADDRESS_MEM_PREFETCH,
		vram_bytes);
	put_bar(pci, PCI_BAR_DOORBELL, PCI_BASE_ADDRESS_MEM_TYPE_64 | PCI_BASE_ADDRESS_MEM_PREFETCH,
		PCI_DOORBELL_BYTES);
	put_bar(pci, PCI_BAR_REGISTERS, 0, asic->register_bytes);
	put(pci, PCI_SUBSYSTEM_VENDOR_ID, 4, ASIC_VENDOR_ID | (uint32_t)asic->subsystem_id << 16,
	    0);
	put(pci, PCI_ROM_ADDRESS, 4, 0, ~(PCI_ROM_BYTES - 1) | PCI_ROM_ADDRESS_ENABLE);
	put(pci, PCI_CAPABILITY_LIST, 1, AT_POWER, 0);
	put(pci, PCI_INTERRUPT_LINE, 2, 1u << 8, 0xff);
	put_power(pci);
	put_express(pci);
	put_msi(pci);
}

void pci_read(const struct pci *pci, uint64_t offset, void *data, uint32_t size_bytes)
{
	memcpy(data, pci->config + offset, size_bytes);
}

void pci_write(struct pci *pci, uint64_t offset, const void *data, uint32_t size_bytes)
{
	const uint8_t *from = data;
	uint32_t i;

	for (i = 0; i < size_bytes; i++) {
		uint8_t writable = pci->writable[offset + i];

		pci->config[offset + i] =
			(pci->config[offset + i] & ~writable) | (from[i] & writable);
	}
}
