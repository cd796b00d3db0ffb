// SPDX-License-Identifier: GPL-2.0-only
#include "machine.h"

#include "ih.h"

static const struct ih_entry trap = {
	.client = 8, .source = 224, .space = { HUB_MM, 3, 0 }, .data = { 0x1234, 0x5678 }
};

MACHINE_TEST(an_entry_names_its_process_by_the_table_of_its_hub)
{
	const uint32_t *entry = guest_page(MACHINE_IH_RING);

	machine.gpu->regs[REG(OSSSYS, mmIH_VMID_0_LUT) + 3] = 0x111;
	machine.gpu->regs[REG(OSSSYS, mmIH_VMID_0_LUT_MM) + 3] = 0x222;
	ih_post(machine.gpu, &trap);
	assert_int_equal(entry[0], 8 | 224 << 8 | 3 << 24 | 1u << 31);
	assert_int_equal(entry[3], 0x222);
	assert_int_equal(entry[4], 0x1234);
	assert_int_equal(entry[5], 0x5678);
	assert_int_equal(machine.interrupts, 1);
}

MACHINE_TEST(the_write_pointer_is_in_the_register_and_in_memory_and_wraps)
{
	unsigned int i;

	for (i = 0; i < 31; i++)
		ih_post(machine.gpu, &trap);
	assert_int_equal(regs_read(machine.gpu, REG(OSSSYS, mmIH_RB_WPTR)), 31 * 32);
	assert_int_equal(*(uint32_t *)guest_page(MACHINE_IH_WPTR), 31 * 32);
	regs_write(machine.gpu, REG(OSSSYS, mmIH_RB_RPTR), 31 * 32);
	ih_post(machine.gpu, &trap);
	assert_int_equal(*(uint32_t *)guest_page(MACHINE_IH_WPTR), 0);
	assert_violations(0);
}

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
