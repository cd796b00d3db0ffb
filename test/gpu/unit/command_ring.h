/* SPDX-License-Identifier: GPL-2.0-only */
/* The driver's queue for the scheduler, set up by registers as amdgpu does it for its own. */
#ifndef TEST_GPU_UNIT_COMMAND_RING_H
#define TEST_GPU_UNIT_COMMAND_RING_H

#include "machine.h"

#include <kfd_pm4_opcodes.h>
#include <soc15d.h>

#define COMMAND_RING_BYTES 4096u
#define COMMAND_DOORBELL   0x10u

/* PACKET3() of soc15d.h shifts into the sign of an int. */
#define HEADER(op, count) (3u << 30 | (op) << 8 | (uint32_t)(count) << 16)

#define LOW(x)  ((uint32_t)(x))
#define HIGH(x) ((uint32_t)((uint64_t)(x) >> 32))

static uint64_t command_wptr;

/* The ring on an XCC. */
static inline void command_start(unsigned int xcc)
{
	uint32_t *regs = machine.gpu->regs + (xcc << ASIC_INSTANCE_SHIFT);
	uint64_t base = GART_ADDRESS(MACHINE_RING);

	regs_write(machine.gpu, gpu_register_of(xcc, REG(GC, mmCP_MEC_CNTL)), 0);
	regs[REG(GC, mmGRBM_GFX_CNTL)] = 2 << GRBM_GFX_CNTL__MEID__SHIFT | 1;
	regs[REG(GC, mmCP_HQD_PQ_BASE)] = LOW(base >> 8);
	regs[REG(GC, mmCP_HQD_PQ_CONTROL)] = 9; /* 8 << 9 bytes */
	regs[REG(GC, mmCP_HQD_PQ_DOORBELL_CONTROL)] =
		COMMAND_DOORBELL << 2 | CP_HQD_PQ_DOORBELL_CONTROL__DOORBELL_EN_MASK;
	regs_write(machine.gpu, gpu_register_of(xcc, REG(GC, mmCP_HQD_ACTIVE)), 1);
}

static inline int command_setup(void **state)
{
	machine_setup(state);
	command_wptr = 0;
	command_start(0);
	return 0;
}

#define COMMAND_TEST(name) TEST_WITH(name, command_setup, machine_teardown)

#define COMMAND(...)                               \
	command((const uint32_t[]){ __VA_ARGS__ }, \
		sizeof((uint32_t[]){ __VA_ARGS__ }) / sizeof(uint32_t))

static inline void command(const uint32_t *dwords, size_t count)
{
	uint32_t *ring = guest_page(MACHINE_RING);
	size_t i;

	for (i = 0; i < count; i++, command_wptr++)
		ring[command_wptr % (COMMAND_RING_BYTES / 4)] = dwords[i];
}

static inline int run_commands(void)
{
	queues_ring(machine.gpu, COMMAND_DOORBELL, command_wptr);
	return machine_run();
}

#endif
