// SPDX-License-Identifier: GPL-2.0-only
/* The chip tells the driver by its discovery table where registers are, so the places are the
 * model's own. Each XCC has the 64 Ki dwords that packets can name, and what it does not use of
 * them has the registers of an AID. */
#include "asic.h"

#include <soc15_hw_ip.h>
#include <soc15_ih_clientid.h>

#include "ip_discovery.h"
#include "pci.h"

/* For REG(). Those not named here have the bases of the MI210. */
#define XCC_BASE__INST0_SEG0    0x2000
#define XCC_BASE__INST0_SEG1    0xa000
#define AID_BASE__INST0_SEG0    0x4000
#define ENGINE_BASE__INST0_SEG0 0x8000
#define SDMA_DISTANCE           0x400
/* Beyond the register BAR: reached by PCIE_INDEX2. */
#define FAR_BASE(segment) (0x400000 + 0x100000 * ((segment)-4))

#include <asic_reg/gc/gc_9_4_3_offset.h>
#include <asic_reg/nbio/nbio_7_9_0_offset.h>
#include <asic_reg/sdma/sdma_4_4_2_offset.h>

static const struct asic_register xcc_names[] = {
#include "names_gc_9_4_3.inc"
};
static const struct asic_register nbio_names[] = {
#include "names_nbio_7_9_0.inc"
};
static const struct asic_register sdma_names[] = {
#include "names_sdma_4_4_2.inc"
};

#define SAME(block, name) \
	_Static_assert(REG(block, reg##name) == REG(GC, mm##name), #name " differs")
SAME(XCC, CC_GC_SHADER_ARRAY_CONFIG);
SAME(XCC, CP_HQD_ACTIVE);
SAME(XCC, CP_HQD_DEQUEUE_REQUEST);
SAME(XCC, CP_HQD_PQ_BASE);
SAME(XCC, CP_HQD_PQ_CONTROL);
SAME(XCC, CP_HQD_PQ_DOORBELL_CONTROL);
SAME(XCC, CP_HQD_PQ_RPTR);
SAME(XCC, CP_HQD_PQ_RPTR_REPORT_ADDR);
SAME(XCC, CP_HQD_PQ_WPTR_LO);
SAME(XCC, CP_HQD_VMID);
SAME(XCC, CP_MEC_CNTL);
SAME(XCC, GRBM_GFX_CNTL);
SAME(XCC, GRBM_GFX_INDEX);
SAME(XCC, RLC_GPU_CLOCK_COUNT_LSB);
SAME(XCC, RLC_GPU_CLOCK_COUNT_MSB);
SAME(XCC, RLC_SAFE_MODE);
_Static_assert(regSDMA_GFX_RB_CNTL == regSDMA0_GFX_RB_CNTL, "ring of an engine");
_Static_assert(regSDMA_GFX_RB_WPTR == regSDMA0_GFX_RB_WPTR, "ring of an engine");
_Static_assert(regSDMA_GFX_DOORBELL_OFFSET == regSDMA0_GFX_DOORBELL_OFFSET, "ring of an engine");
_Static_assert(regBIF_BX_PF0_GPU_HDP_FLUSH_REQ == mmGPU_HDP_FLUSH_REQ, "flush");
_Static_assert(regRCC_DEV0_EPF0_RCC_CONFIG_MEMSIZE == mmRCC_CONFIG_MEMSIZE, "size of memory");

static const struct asic_hub gfx_hub = {
	.instances = 8, .client = SOC15_IH_CLIENTID_UTCL2, .name = "XCC", ASIC_HUB(XCC, reg)
};

/* The same names have other values from here on. */
#include <asic_reg/mmhub/mmhub_1_8_0_offset.h>

static const struct asic_register aid_names[] = {
#include "names_mmhub_1_8_0.inc"
};

static const struct asic_hub mm_hub = {
	.instances = 4, .client = SOC15_IH_CLIENTID_VMC, .name = "MMHUB", ASIC_HUB(AID, reg)
};

#define BLOCK(id, x, y, z, count, ...)                                                          \
	{                                                                                       \
		.hw_id = id##_HWID, .major = (x), .minor = (y), .revision = (z),                \
		.instances = (count), .step = 1,                                                \
		.num_bases = sizeof((uint32_t[]){ __VA_ARGS__ }) / sizeof(uint32_t), .bases = { \
			__VA_ARGS__                                                             \
		}                                                                               \
	}
/* Engine n of each AID. Their numbers go from AID to AID. */
#define SDMA_BASE_OF(n) (ENGINE_BASE__INST0_SEG0 + SDMA_DISTANCE * (n))
#define SDMA_BLOCK(n)                                                                     \
	{                                                                                 \
		.hw_id = SDMA0_HWID, .major = 4, .minor = 4, .revision = 2, .first = (n), \
		.instances = 4, .step = 4, .num_bases = 1, .bases = {                     \
			SDMA_BASE_OF(n)                                                   \
		}                                                                         \
	}

/* Blocks that the driver only wants to exist have the bases of the MI210. */
static const struct discovery_block blocks[] = {
	BLOCK(GC, 9, 4, 3, 8, XCC_BASE__INST0_SEG0, XCC_BASE__INST0_SEG1),
	BLOCK(MMHUB, 1, 8, 0, 4, AID_BASE__INST0_SEG0),
	SDMA_BLOCK(0),
	SDMA_BLOCK(1),
	SDMA_BLOCK(2),
	SDMA_BLOCK(3),
	BLOCK(NBIF, 7, 9, 0, 4, NBIO_BASE__INST0_SEG0, NBIO_BASE__INST0_SEG1, NBIO_BASE__INST0_SEG2,
	      NBIO_BASE__INST0_SEG3, FAR_BASE(4), FAR_BASE(5), FAR_BASE(6), FAR_BASE(7),
	      FAR_BASE(8)),
	BLOCK(OSSSYS, 4, 4, 2, 1, OSSSYS_BASE__INST0_SEG0),
	BLOCK(HDP, 4, 4, 2, 1, HDP_BASE__INST0_SEG0),
	BLOCK(ATHUB, 1, 8, 0, 1, ATHUB_BASE__INST0_SEG0),
	BLOCK(MP0, 13, 0, 6, 1, MP0_BASE__INST0_SEG0),
	BLOCK(MP1, 13, 0, 6, 1, MP1_BASE__INST0_SEG0),
	BLOCK(SMUIO, 13, 0, 3, 1, SMUIO_BASE__INST0_SEG0, SMUIO_BASE__INST0_SEG1),
	BLOCK(THM, 13, 0, 6, 1, THM_BASE__INST0_SEG0),
	BLOCK(VCN, 4, 0, 3, 4, VCN_BASE__INST0_SEG0, VCN_BASE__INST0_SEG1),
};

static void write_discovery(uint8_t *table)
{
	static const struct discovery_compute compute = { .shader_engines = 4,
							  .cus_per_engine = 10 };

	discovery_write(table, blocks, sizeof(blocks) / sizeof(blocks[0]), &compute);
}

static const char strings[] =
	"113-EMULATED-002\0AQUA_VANJARAM\0PCI_EXPRESS\0HBM3\0\r\nEmulated MI300X\r\n";

#define SDMA_OF_AID(aid)                                                                       \
	{ SDMA_BASE_OF(0) + ((aid) << ASIC_INSTANCE_SHIFT), SOC15_IH_CLIENTID_SDMA0 },         \
		{ SDMA_BASE_OF(1) + ((aid) << ASIC_INSTANCE_SHIFT), SOC15_IH_CLIENTID_SDMA1 }, \
		{ SDMA_BASE_OF(2) + ((aid) << ASIC_INSTANCE_SHIFT), SOC15_IH_CLIENTID_SDMA2 }, \
	{                                                                                      \
		SDMA_BASE_OF(3) + ((aid) << ASIC_INSTANCE_SHIFT), SOC15_IH_CLIENTID_SDMA3      \
	}

/* 38 of the 40 units of each XCC. */
const struct asic asic_mi300x = {
	.name = "mi300x",
	.device_id = 0x74a1,
	.subsystem_id = 0x74a1,
	.class_code = 0x120000, /* processing accelerator */
	.register_bytes = 2u << 20,
	.vbios_strings = strings,
	.vbios_strings_bytes = sizeof(strings),
	.xccs = 8,
	.sdma_engines = 16,
	.inactive_cus = { 0x200, 0x200 },
	.hubs = { &gfx_hub, &mm_hub },
	.sdma = { SDMA_OF_AID(0), SDMA_OF_AID(1), SDMA_OF_AID(2), SDMA_OF_AID(3) },
	.sdma_f32_control = regSDMA_F32_CNTL,
	.xcp_control = REG(XCC, regCP_HYP_XCP_CTL),
	.xcp_status = REG(NBIO, regBIF_BX_PF0_PARTITION_COMPUTE_STATUS),
	.memory_modes = REG(NBIO, regBIF_BX_PF0_PARTITION_MEM_CAP),
	.memory_mode = REG(NBIO, regBIF_BX_PF0_PARTITION_MEM_STATUS),
	.strap0 = REG(NBIO, regRCC_STRAP0_RCC_DEV0_EPF0_STRAP0),
	.write_discovery = write_discovery,
	.names = { ASIC_NAMES_OF(xcc_names), ASIC_NAMES_OF(nbio_names), ASIC_NAMES_OF(sdma_names),
		   ASIC_NAMES_OF(aid_names) },
};
