/* SPDX-License-Identifier: GPL-2.0-only */
/* Registers by the names that amdgpu gives them, and what differs between the two chips: the MI210
 * (Aldebaran, gfx90a) and the MI300X (gfx942). The headers are those of the kernel's source
 * package. A register is the number of its dword in the register space, as in the driver. Names
 * that are not in struct asic mean the same register on both chips; asic_mi300x.c checks this. */
#ifndef TEST_GPU_ASIC_H
#define TEST_GPU_ASIC_H

#include <stddef.h>
#include <stdint.h>

#define __maybe_unused __attribute__((unused))
#include <aldebaran_ip_offset.h>
#include <asic_reg/gc/gc_9_0_offset.h>
#include <asic_reg/gc/gc_9_0_sh_mask.h>
#include <asic_reg/mmhub/mmhub_1_7_offset.h>
#include <asic_reg/mp/mp_13_0_2_offset.h>
#include <asic_reg/nbio/nbio_7_4_offset.h>
#include <asic_reg/oss/osssys_4_2_0_offset.h>
#include <asic_reg/oss/osssys_4_2_0_sh_mask.h>
#include <asic_reg/sdma/sdma_4_4_0_offset.h>
#include <asic_reg/sdma/sdma_4_4_0_sh_mask.h>

#define ASIC_JOIN_(a, b) a##b
#define ASIC_JOIN(a, b)  ASIC_JOIN_(a, b)
/* REG(GC, mmCP_HQD_ACTIVE): the first part names the block that the register belongs to. */
#define REG(block, name) (ASIC_JOIN(block##_BASE__INST0_SEG, name##_BASE_IDX) + name)
/* FIELD(value, CP_HQD_PQ_CONTROL, QUEUE_SIZE) */
#define FIELD(value, reg, field) (((value)&reg##__##field##_MASK) >> reg##__##field##__SHIFT)

#define ASIC_VENDOR_ID 0x1002u
/* Where video memory begins in the GPU's own address space. The driver reads it from a register. */
#define ASIC_FB_BASE 0x8000000000ull
#define ASIC_VMIDS   16u
/* Hundreds of MHz: KFD tells user space the rate in the VBIOS, rounded to 100 MHz. */
#define ASIC_CLOCK_HZ 100000000ull

/* The most that a chip has. An accelerator complex (XCC) is a command processor with its compute
 * units; two of them and four copy engines share the MMHUB of an I/O die (AID). */
#define ASIC_XCCS         8u
#define ASIC_SDMA_ENGINES 16u
/* Registers of instance n of a block lie n times this further than those of instance 0. */
#define ASIC_INSTANCE_SHIFT 16u

/* Pairs of registers; those of VMID n lie 2 n further. */
struct asic_hub {
	unsigned int instances;
	uint32_t directory, start, end;
	uint32_t fb_base, fb_top;
	uint32_t agp_bottom, agp_top, agp_base;
	uint32_t fault_status, fault_address;
	uint32_t invalidate_request, invalidate_acknowledge, invalidate_semaphore;
	uint8_t client; /* enum soc15_ih_clientid */
	const char *name;
};

#define ASIC_HUB(block, prefix)                                                 \
	.directory = REG(block, prefix##VM_CONTEXT0_PAGE_TABLE_BASE_ADDR_LO32), \
	.start = REG(block, prefix##VM_CONTEXT0_PAGE_TABLE_START_ADDR_LO32),    \
	.end = REG(block, prefix##VM_CONTEXT0_PAGE_TABLE_END_ADDR_LO32),        \
	.fb_base = REG(block, prefix##MC_VM_FB_LOCATION_BASE),                  \
	.fb_top = REG(block, prefix##MC_VM_FB_LOCATION_TOP),                    \
	.agp_bottom = REG(block, prefix##MC_VM_AGP_BOT),                        \
	.agp_top = REG(block, prefix##MC_VM_AGP_TOP),                           \
	.agp_base = REG(block, prefix##MC_VM_AGP_BASE),                         \
	.fault_status = REG(block, prefix##VM_L2_PROTECTION_FAULT_STATUS),      \
	.fault_address = REG(block, prefix##VM_L2_PROTECTION_FAULT_ADDR_LO32),  \
	.invalidate_request = REG(block, prefix##VM_INVALIDATE_ENG0_REQ),       \
	.invalidate_acknowledge = REG(block, prefix##VM_INVALIDATE_ENG0_ACK),   \
	.invalidate_semaphore = REG(block, prefix##VM_INVALIDATE_ENG0_SEM)

struct asic_register {
	uint32_t reg;
	const char *name;
};

#define ASIC_NAMES 4u

/* For the log. */
struct asic_names {
	const struct asic_register *rows;
	size_t count;
};

#define ASIC_NAMES_OF(array)                                \
	{                                                   \
		(array), sizeof(array) / sizeof((array)[0]) \
	}

struct asic {
	const char *name;
	uint16_t device_id, subsystem_id;
	uint32_t class_code;       /* of PCI */
	uint32_t register_bytes;   /* of the register BAR */
	const char *vbios_strings; /* separated by NUL */
	size_t vbios_strings_bytes;
	unsigned int xccs, sdma_engines;
	uint32_t inactive_cus[8]; /* of each shader engine, a bit for each unit that has not been
				     sold */
	const struct asic_hub *hubs[2]; /* by enum hub */
	struct {
		uint32_t base;
		uint8_t client; /* enum soc15_ih_clientid */
	} sdma[ASIC_SDMA_ENGINES];
	uint32_t sdma_f32_control; /* behind the base of an engine */
	uint32_t xcp_control;      /* which XCCs are one partition, or 0 */
	uint32_t xcp_status;
	uint32_t memory_modes, memory_mode; /* of partitions of the video memory; 0 without them */
	/* The register with the revision of the chip in bits 24 to 27, or 0. Linux 7.2 refuses
	 * revision 0 of the MI300X. */
	uint32_t strap0;
	/* Writes the table that says which blocks the chip has, or NULL. */
	void (*write_discovery)(uint8_t *table);
	struct asic_names names[ASIC_NAMES];
};

extern const struct asic asic_mi210, asic_mi300x;

#endif
