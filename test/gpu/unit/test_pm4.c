// SPDX-License-Identifier: GPL-2.0-only
#include "command_ring.h"

#define REG_SCRATCH REG(GC, mmSCRATCH_REG0)

COMMAND_TEST(a_queue_by_registers_is_active_at_its_place_only)
{
	assert_int_equal(regs_read(machine.gpu, REG(GC, mmCP_HQD_ACTIVE)), 1);
	machine.gpu->regs[REG(GC, mmGRBM_GFX_CNTL)] = 1 << GRBM_GFX_CNTL__MEID__SHIFT;
	assert_int_equal(regs_read(machine.gpu, REG(GC, mmCP_HQD_ACTIVE)), 0);
}

COMMAND_TEST(registers_and_memory_are_written_and_copied)
{
	COMMAND(HEADER(PACKET3_SET_UCONFIG_REG, 1), REG_SCRATCH - PACKET3_SET_UCONFIG_REG_START,
		0xcafe);
	COMMAND(HEADER(PACKET3_COPY_DATA, 4), 5 << 8, REG_SCRATCH, 0, 0x50000, 0);
	COMMAND(HEADER(PACKET3_WRITE_DATA, 4), WRITE_DATA_DST_SEL(5), 0x50008, 0, 1, 2);
	COMMAND(HEADER(PACKET3_NOP, 0x3fff));
	COMMAND(HEADER(PACKET3_NOP, 2), 0, 0, 0);
	assert_int_equal(run_commands(), -1);
	assert_int_equal(((uint32_t *)guest_page(0x50000))[0], 0xcafe);
	assert_int_equal(((uint32_t *)guest_page(0x50000))[3], 2);
	assert_int_equal(machine.gpu->counters.pm4_packets, 5);
	assert_violations(0);
}

COMMAND_TEST(the_end_of_a_command_is_written_and_interrupts)
{
	const uint32_t *entry = guest_page(MACHINE_IH_RING);

	COMMAND(HEADER(PACKET3_RELEASE_MEM, 6), 0, (uint32_t)(DATA_SEL(2u) | INT_SEL(2)), 0x50000,
		0, 7, 8, 0x123);
	assert_int_equal(run_commands(), -1);
	assert_true(*(uint64_t *)guest_page(0x50000) == 0x800000007ull);
	assert_int_equal(entry[0] & 0xffffff, 0x14 | 181 << 8 | (2 << 2 | 1) << 16);
	assert_int_equal(entry[4], 0x123);
}

COMMAND_TEST(a_wait_goes_on_when_memory_changes)
{
	COMMAND(HEADER(PACKET3_WAIT_REG_MEM, 5),
		WAIT_REG_MEM_MEM_SPACE(1) | WAIT_REG_MEM_FUNCTION(5), 0x50000, 0, 4, ~0u, 4);
	COMMAND(HEADER(PACKET3_WRITE_DATA, 3), WRITE_DATA_DST_SEL(5), 0x50004, 0, 1);
	assert_int_equal(run_commands(), 1);
	*(uint32_t *)guest_page(0x50000) = 5;
	assert_int_equal(run_commands(), -1);
	assert_int_equal(*(uint32_t *)guest_page(0x50004), 1);
}

/* gfx_v9_0_ring_emit_hdp_flush() */
COMMAND_TEST(a_flush_of_the_hosts_writes_is_done_at_once)
{
	COMMAND(HEADER(PACKET3_WAIT_REG_MEM, 5),
		WAIT_REG_MEM_OPERATION(1) | WAIT_REG_MEM_FUNCTION(3),
		REG(NBIO, mmGPU_HDP_FLUSH_REQ), REG(NBIO, mmGPU_HDP_FLUSH_DONE), 0x40, 0x40, 0x20);
	assert_int_equal(run_commands(), -1);
}

COMMAND_TEST(a_command_buffer_of_a_process_writes_no_registers)
{
	uint64_t root = new_directory(3);
	uint32_t *buffer = guest_page(0x50000);

	map_page(root, 0x100000, (MACHINE_GUEST + 0x50000) | PTE_ALL | PTE_SYS);
	memcpy(buffer,
	       (uint32_t[]){ HEADER(PACKET3_WRITE_DATA, 3), WRITE_DATA_DST_SEL(0), REG_SCRATCH, 0,
			     0xbad },
	       20);
	COMMAND(HEADER(PACKET3_INDIRECT_BUFFER, 2), 0x100000, 0, 5 | 3 << 24);
	assert_int_equal(run_commands(), -1);
	assert_int_equal(machine.gpu->regs[REG_SCRATCH], 0);
	assert_violations(1);
}

COMMAND_TEST(unknown_and_short_packets_are_violations)
{
	COMMAND(HEADER(PACKET3_DRAW_INDEX_AUTO, 1), 0, 0);
	assert_int_equal(run_commands(), -1);
	assert_violations(1);
	machine.gpu->queues[0].is_faulted = false;
	machine.gpu->queues[0].rptr = 4 * command_wptr;
	COMMAND(HEADER(PACKET3_RELEASE_MEM, 0), 0);
	assert_int_equal(run_commands(), -1);
	assert_violations(2);
}

COMMAND_TEST(nothing_runs_while_the_command_processor_is_halted)
{
	regs_write(machine.gpu, REG(GC, mmCP_MEC_CNTL), CP_MEC_CNTL__MEC_ME1_HALT_MASK);
	COMMAND(HEADER(PACKET3_WRITE_DATA, 3), WRITE_DATA_DST_SEL(5), 0x50004, 0, 1);
	assert_int_equal(run_commands(), -1);
	assert_int_equal(*(uint32_t *)guest_page(0x50004), 0);
}
