// SPDX-License-Identifier: GPL-2.0-only
#include "regs.h"

#include <stdio.h>
#include <string.h>

#include "cp.h"
#include "gpu.h"
#include "xcp.h"

/* Windows to other registers and to video memory (amdgpu_device.c); not in the headers. */
enum {
	MM_INDEX = 0,
	MM_DATA = 1,
	MM_INDEX_HI = 6,
	PCIE_INDEX2 = 0xe,
	PCIE_DATA2 = 0xf,
	PCIE_INDEX2_HI = 0x11,
};
#define MM_INDEX_IS_MEMORY 0x80000000u
#define MM_INDEX_HI_SHIFT  31u

/* Bits that no header names. */
#define SCRATCH_3_ENGINE_HUNG    (1u << 29) /* ATOM_S3_ASIC_GUI_ENGINE_HUNG */
#define SCRATCH_7_INIT_COMPLETE  (1u << 9)  /* ATOM_ASIC_INIT_COMPLETE */
#define C2PMSG_33_FIRMWARE_READY (1u << 31) /* amdgpu_discovery_init() waits for it */

#define FB_SHIFT      24u
#define REV_ID_SHIFT  24 /* RCC_STRAP0_RCC_DEV0_EPF0_STRAP0__STRAP_ATI_REV_ID_DEV0_F0__SHIFT */
#define CLOSED_BOTTOM 0xffffffu

/* Only the log asks, so the search may take its time. */
const char *regs_name(const struct gpu *gpu, uint32_t reg, char *text)
{
	unsigned int list, xcc;
	uint32_t local = gpu_local_register(gpu, reg, &xcc);
	size_t i;

	for (list = 0; list < ASIC_NAMES; list++)
		for (i = 0; i < gpu->asic->names[list].count; i++) {
			const struct asic_register *row = &gpu->asic->names[list].rows[i];

			if (row->reg != local)
				continue;
			(void)snprintf(text, REGS_NAME_BYTES, "%u.%s", xcc, row->name);
			return gpu->asic->xccs > 1 ? text : row->name;
		}
	(void)snprintf(text, REGS_NAME_BYTES, "%#x", reg);
	return text;
}

void regs_halt_engines(struct gpu *gpu)
{
	const struct asic *asic = gpu->asic;
	unsigned int i;

	for (i = 0; i < asic->sdma_engines; i++)
		gpu->regs[asic->sdma[i].base + asic->sdma_f32_control] = SDMA0_F32_CNTL__HALT_MASK;
	for (i = 0; i < asic->xccs; i++)
		gpu->regs[gpu_register_of(i, REG(GC, mmCP_MEC_CNTL))] =
			CP_MEC_CNTL__MEC_ME1_HALT_MASK;
}

static void init_hub(struct gpu *gpu, const struct asic_hub *hub)
{
	unsigned int i;

	for (i = 0; i < hub->instances; i++) {
		uint32_t *regs = gpu->regs + (i << ASIC_INSTANCE_SHIFT);

		regs[hub->fb_base] = ASIC_FB_BASE >> FB_SHIFT;
		regs[hub->fb_top] = (ASIC_FB_BASE + hive_bytes(gpu) - 1) >> FB_SHIFT;
		/* an aperture whose bottom is above its top is closed */
		regs[hub->agp_bottom] = CLOSED_BOTTOM;
	}
}

void regs_init(struct gpu *gpu)
{
	gpu->regs[REG(NBIO, mmRCC_CONFIG_MEMSIZE)] = gpu->vram_bytes >> 20;
	gpu->regs[REG(NBIO, mmBIOS_SCRATCH_7)] = SCRATCH_7_INIT_COMPLETE;
	gpu->regs[REG(MP0, regMP0_SMN_C2PMSG_33)] = C2PMSG_33_FIRMWARE_READY;
	if (gpu->asic->strap0)
		gpu->regs[gpu->asic->strap0] = 1 << REV_ID_SHIFT;
	init_hub(gpu, gpu->asic->hubs[HUB_GFX]);
	init_hub(gpu, gpu->asic->hubs[HUB_MM]);
	xcp_init(gpu);
	hive_init_registers(gpu);
	regs_halt_engines(gpu);
}

/* The dword of video memory that MM_INDEX names. NULL: it names a register. */
static uint8_t *window(struct gpu *gpu)
{
	uint64_t offset = (uint64_t)gpu->regs[MM_INDEX_HI] << MM_INDEX_HI_SHIFT |
			  (gpu->regs[MM_INDEX] & ~MM_INDEX_IS_MEMORY);

	if (!(gpu->regs[MM_INDEX] & MM_INDEX_IS_MEMORY))
		return NULL;
	if (offset > gpu->vram_bytes - sizeof(uint32_t)) {
		report_violation(&gpu->report, "MM_DATA: %#llx is beyond video memory",
				 (unsigned long long)offset);
		offset = 0;
	}
	return gpu->vram + offset;
}

static uint32_t read_window(struct gpu *gpu)
{
	const uint8_t *at = window(gpu);
	uint32_t value;

	if (!at)
		return regs_read(gpu, gpu->regs[MM_INDEX] / 4);
	memcpy(&value, at, sizeof(value));
	return value;
}

static void write_window(struct gpu *gpu, uint32_t value)
{
	uint8_t *at = window(gpu);

	if (at)
		memcpy(at, &value, sizeof(value));
	else
		regs_write(gpu, gpu->regs[MM_INDEX] / 4, value);
}

/* Addresses above 4 GiB are copies of registers in the other AIDs, which have no effect here. */
static bool is_elsewhere(const struct gpu *gpu)
{
	return gpu->regs[PCIE_INDEX2_HI] != 0;
}

/* Fuses of the shader engine that GRBM_GFX_INDEX names. */
static uint32_t inactive_units(const struct gpu *gpu, unsigned int xcc)
{
	uint32_t index = gpu->regs[gpu_register_of(xcc, REG(GC, mmGRBM_GFX_INDEX))];

	return gpu->asic->inactive_cus[FIELD(index, GRBM_GFX_INDEX, SE_INDEX) % 8]
	       << CC_GC_SHADER_ARRAY_CONFIG__INACTIVE_CUS__SHIFT;
}

static uint32_t look_up(struct gpu *gpu, uint32_t reg)
{
	unsigned int xcc;
	uint32_t value;

	switch (gpu_local_register(gpu, reg, &xcc)) {
	case MM_DATA:
		return read_window(gpu);
	case PCIE_DATA2:
		return is_elsewhere(gpu) ? 0 : regs_read(gpu, gpu->regs[PCIE_INDEX2] / 4);
	case REG(GC, mmCP_HQD_ACTIVE):
		return cp_selected_is_active(gpu, xcc);
	case REG(GC, mmCC_GC_SHADER_ARRAY_CONFIG):
		return inactive_units(gpu, xcc);
	case REG(GC, mmRLC_GPU_CLOCK_COUNT_LSB):
		return (uint32_t)gpu_clock();
	case REG(GC, mmRLC_GPU_CLOCK_COUNT_MSB):
		return gpu_clock() >> 32;
	}
	if (reg && reg == gpu->asic->xcp_status)
		return xcp_status(gpu);
	return memory_read_register(gpu, reg, &value) ? value : gpu->regs[reg];
}

uint32_t regs_read(struct gpu *gpu, uint32_t reg)
{
	char text[REGS_NAME_BYTES];
	uint32_t value;

	if (reg >= GPU_REGISTERS) {
		report_violation(&gpu->report, "read of register %#x, which does not exist", reg);
		return 0;
	}
	value = look_up(gpu, reg);
	if (report_shows(&gpu->report, REPORT_REGISTERS))
		report_log(&gpu->report, REPORT_REGISTERS, "read  %-36s %08x",
			   regs_name(gpu, reg, text), value);
	return value;
}

/* Writes a register that has a meaning of its own. Returns whether it was such a register. */
static bool write_special(struct gpu *gpu, uint32_t reg, uint32_t value)
{
	unsigned int xcc;

	switch (gpu_local_register(gpu, reg, &xcc)) {
	case MM_DATA:
		write_window(gpu, value);
		return true;
	case PCIE_DATA2:
		if (!is_elsewhere(gpu))
			regs_write(gpu, gpu->regs[PCIE_INDEX2] / 4, value);
		return true;
	case REG(GC, mmRLC_SAFE_MODE): /* the RLC clears the command when it has obeyed */
		gpu->regs[reg] = value & ~1u;
		return true;
	case REG(NBIO, mmGPU_HDP_FLUSH_REQ): /* the host's writes are in place at once */
		gpu->regs[REG(NBIO, mmGPU_HDP_FLUSH_DONE)] = value;
		return false;
	case REG(NBIO, mmBIOS_SCRATCH_3): /* amdgpu_device_mode1_reset() sets the bit */
		if (value & ~gpu->regs[reg] & SCRATCH_3_ENGINE_HUNG)
			gpu_reset_engines(gpu);
		return false;
	}
	return memory_write_register(gpu, reg, value);
}

void regs_write(struct gpu *gpu, uint32_t reg, uint32_t value)
{
	char text[REGS_NAME_BYTES];

	if (reg >= GPU_REGISTERS) {
		report_violation(&gpu->report, "write of register %#x, which does not exist", reg);
		return;
	}
	if (report_shows(&gpu->report, REPORT_REGISTERS))
		report_log(&gpu->report, REPORT_REGISTERS, "write %-36s %08x",
			   regs_name(gpu, reg, text), value);
	if (write_special(gpu, reg, value))
		return;
	gpu->regs[reg] = value;
	sdma_register_written(gpu, reg, value);
	cp_register_written(gpu, reg, value);
}
