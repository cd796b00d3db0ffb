// SPDX-License-Identifier: GPL-2.0-only
#include "command_ring.h"

#define REG_SCRATCH REG(GC, mmSCRATCH_REG0)

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
