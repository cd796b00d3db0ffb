// SPDX-License-Identifier: GPL-2.0-only
#include "machine.h"

#include "ih.h"

static const struct ih_entry trap = {
	.client = 8, .source = 224, .space = { HUB_MM, 3, 0 }, .data = { 0x1234, 0x5678 }
};

MACHINE_TEST(an_interrupt_that_overwrites_an_unread_one_is_a_violation)
{
	unsigned int i;

	for (i = 0; i < 32; i++)
		ih_post(machine.gpu, &trap);
	assert_violations(1);
}

MACHINE_TEST(an_interrupt_is_lost_while_the_ring_is_disabled)
{
	machine.gpu->regs[REG(OSSSYS, mmIH_RB_CNTL)] &= ~IH_RB_CNTL__RB_ENABLE_MASK;
	ih_post(machine.gpu, &trap);
	assert_int_equal(machine.interrupts, 0);
	assert_violations(1);
}

MACHINE_TEST(an_interrupt_is_lost_without_msi)
{
	machine.refuses_interrupts = true;
	ih_post(machine.gpu, &trap);
	assert_violations(1);
}

MACHINE_TEST(a_ring_outside_of_memory_loses_interrupts)
{
	machine.gpu->regs[REG(OSSSYS, mmIH_RB_BASE_HI)] = 0xff;
	ih_post(machine.gpu, &trap);
	assert_violations(1);
}
