// SPDX-License-Identifier: GPL-2.0-only
#include "machine.h"

#include <errno.h>

#define VA 0x7f0000200000ull

static const struct space system_space = { HUB_MM, 0, 0 };
static const struct space process_space = { HUB_GFX, 5, 0 };

static uint32_t read32(const struct space *space, uint64_t va)
{
	uint32_t value = 0;

	assert_int_equal(memory_read(machine.gpu, space, va, &value, sizeof(value)), 0);
	return value;
}

MACHINE_TEST(the_agp_aperture_shows_system_memory)
{
	uint64_t bottom = 0x8400000000ull;

	*(uint32_t *)guest_page(0x6000) = 0x22;
	assert_int_equal(memory_write32(machine.gpu, &system_space, bottom + MACHINE_GUEST, 1),
			 -EFAULT);
	machine.gpu->regs[REG(MMHUB, regMC_VM_AGP_BOT)] = bottom >> 24;
	machine.gpu->regs[REG(MMHUB, regMC_VM_AGP_TOP)] = (bottom >> 24) + 0xffff;
	assert_int_equal(read32(&system_space, bottom + MACHINE_GUEST + 0x6000), 0x22);
}

/* The driver makes such leaves of system memory that happens to be contiguous. */
MACHINE_TEST(the_address_of_a_large_leaf_need_not_be_aligned)
{
	uint64_t root = new_directory(5);

	*entry_of(root, VA, 1) = (MACHINE_GUEST + 0x3000) | PTE_ALL | PTE_SYS | 1ull << 54;
	*(uint32_t *)guest_page(0x3000 + 0x1ff000) = 0x33;
	assert_int_equal(read32(&process_space, VA + 0x1ff000), 0x33);
}

MACHINE_TEST(entries_under_a_block_are_leaves_unless_they_translate_further)
{
	uint64_t root = new_directory(5), table = new_table();

	*entry_of(root, VA, 2) = new_table() | 1 | 9ull << 59;
	*entry_of(root, VA, 1) = 0x400000 | PTE_ALL;
	*entry_of(root, VA + 0x200000, 1) = table | 1 | 1ull << 56;
	((uint64_t *)vram_at(table))[1] = 0x7000 | PTE_ALL;
	*(uint32_t *)vram_at(0x412340) = 0x44;
	*(uint32_t *)vram_at(0x7004) = 0x55;
	assert_int_equal(read32(&process_space, VA + 0x12340), 0x44);
	assert_int_equal(read32(&process_space, VA + 0x201004), 0x55);
}

MACHINE_TEST(a_page_without_memory_reads_zeros_and_loses_writes)
{
	uint64_t root = new_directory(5);

	map_page(root, VA, 1ull << 51);
	assert_int_equal(memory_write32(machine.gpu, &process_space, VA, 7), 0);
	assert_int_equal(read32(&process_space, VA), 0);
}

MACHINE_TEST(a_fault_is_told_to_the_driver)
{
	const uint32_t *entry = guest_page(MACHINE_IH_RING);
	uint32_t status;

	(void)new_directory(5);
	machine.gpu->regs[REG(OSSSYS, mmIH_VMID_0_LUT) + 5] = 0x8001;
	assert_int_equal(memory_write32(machine.gpu, &process_space, VA, 7), -EFAULT);
	memory_report_fault(machine.gpu);
	assert_int_equal(machine.interrupts, 1);
	assert_int_equal(entry[0] & 0xffff, 0x001b); /* UTCL2, VM_FAULT */
	assert_int_equal(entry[0] >> 24, 5);
	assert_int_equal(entry[3], 0x8001);
	assert_int_equal(entry[4], (uint32_t)(VA >> 12));
	assert_int_equal(entry[5] & 0x2f, 0x20 | (VA >> 44 & 0xf));
	status = regs_read(machine.gpu, REG(GC, mmVM_L2_PROTECTION_FAULT_STATUS));
	assert_int_equal(FIELD(status, VM_L2_PROTECTION_FAULT_STATUS, VMID), 5);
	assert_int_equal(FIELD(status, VM_L2_PROTECTION_FAULT_STATUS, RW), 1);
	assert_int_equal(FIELD(status, VM_L2_PROTECTION_FAULT_STATUS, MAPPING_ERROR), 1);
	assert_violations(0);
}

MACHINE_TEST(a_page_that_may_not_be_written_is_no_mapping_error)
{
	uint64_t root = new_directory(5);
	uint32_t status;

	map_page(root, VA, 0x8000 | (PTE_ALL & ~0x40ull));
	assert_int_equal(read32(&process_space, VA), 0);
	assert_int_equal(memory_write32(machine.gpu, &process_space, VA, 7), -EFAULT);
	memory_report_fault(machine.gpu);
	status = regs_read(machine.gpu, REG(GC, mmVM_L2_PROTECTION_FAULT_STATUS));
	assert_int_equal(FIELD(status, VM_L2_PROTECTION_FAULT_STATUS, MAPPING_ERROR), 0);
}

MACHINE_TEST(a_fault_of_the_driver_itself_is_a_violation)
{
	assert_int_equal(memory_write32(machine.gpu, &system_space, 1ull << 40, 7), -EFAULT);
	memory_report_fault(machine.gpu);
	assert_violations(1);
}

MACHINE_TEST(entries_beyond_video_memory_are_violations)
{
	uint64_t root = new_directory(5);

	map_page(root, VA, MACHINE_VRAM | PTE_ALL);
	assert_int_equal(memory_write32(machine.gpu, &process_space, VA, 7), -EFAULT);
	assert_violations(1);
}

MACHINE_TEST(entries_beyond_system_memory_fault)
{
	uint64_t root = new_directory(5);

	map_page(root, VA, (MACHINE_GUEST + MACHINE_GUEST_BYTES) | PTE_ALL | PTE_SYS);
	assert_int_equal(memory_write32(machine.gpu, &process_space, VA, 7), -EFAULT);
}

MACHINE_TEST(a_fill_keeps_its_pattern_across_pages_and_odd_ends)
{
	uint64_t root = new_directory(5), i;
	const uint8_t *low = vram_at(0x8000), *high = vram_at(0xa000);

	map_page(root, VA, 0x8000 | PTE_ALL);
	map_page(root, VA + 4096, 0xa000 | PTE_ALL);
	assert_int_equal(memory_fill(machine.gpu, &process_space, VA + 1, 0x44332211, 4096 + 6), 0);
	assert_int_equal(low[0], 0);
	for (i = 0; i < 4096 + 6; i++)
		assert_int_equal(i + 1 < 4096 ? low[i + 1] : high[i + 1 - 4096],
				 0x11 * (i % 4 + 1));
	assert_int_equal(high[7], 0);
}
