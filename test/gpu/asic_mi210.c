// SPDX-License-Identifier: GPL-2.0-only
#include "asic.h"

#include <soc15_ih_clientid.h>

#include "pci.h"

static const char strings[] =
	"113-EMULATED-001\0ALDEBARAN\0PCI_EXPRESS\0HBM2E\0\r\nEmulated MI210\r\n";

static const struct asic_register names[] = {
#include "names_mi210.inc"
};

static const struct asic_hub gfx_hub = {
	.instances = 1, .client = SOC15_IH_CLIENTID_UTCL2, .name = "GC", ASIC_HUB(GC, mm)
};
static const struct asic_hub mm_hub = {
	.instances = 1, .client = SOC15_IH_CLIENTID_VMC, .name = "MMHUB", ASIC_HUB(MMHUB, reg)
};

/* Engines 2 to 4 have no base in the header: aldebaran_reg_base_init() reads it from a table that
 * the driver builds. */
const struct asic asic_mi210 = {
	.name = "mi210",
	.device_id = 0x740f,
	.subsystem_id = 0x0c34,
	.class_code = 0x038000, /* display controller, neither VGA nor 3D */
	.register_bytes = 512u << 10,
	.vbios_strings = strings,
	.vbios_strings_bytes = sizeof(strings),
	.xccs = 1,
	.sdma_engines = 5,
	.inactive_cus = { 0xe000, 0xe000, 0xe000, 0xe000, 0xe000, 0xe000, 0xe000, 0xe000 },
	.hubs = { &gfx_hub, &mm_hub },
	.sdma = { { SDMA0_BASE__INST0_SEG0, SOC15_IH_CLIENTID_SDMA0 },
		  { SDMA1_BASE__INST0_SEG0, SOC15_IH_CLIENTID_SDMA1 },
		  { 0x1e000, SOC15_IH_CLIENTID_SDMA2 },
		  { 0x1e400, SOC15_IH_CLIENTID_SDMA3 },
		  { 0x1e800, SOC15_IH_CLIENTID_SDMA4 } },
	.sdma_f32_control = regSDMA0_F32_CNTL,
	.names = { ASIC_NAMES_OF(names) },
};
