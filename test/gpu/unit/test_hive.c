// SPDX-License-Identifier: GPL-2.0-only
#include "machine.h"

#include <errno.h>

#define VA 0x7f0000200000ull
#define AT 0x8000u /* a place in video memory */

static const struct space process_space = { HUB_GFX, 5, 0 };

static uint32_t xgmi_register(const struct gpu *gpu, uint32_t reg)
{
	return gpu->regs[GC_BASE__INST0_SEG0 + reg];
}

/* As the driver finds most GPUs of one machine: none reaches the memory of another one. */
MACHINE_TEST(a_gpu_without_links_is_alone)
{
	struct gpu *second = machine_add_gpu();
	uint64_t left_bytes;

	gpu_set_links(second, false);
	assert_int_equal(xgmi_register(second, 0x978), 0);
	assert_int_equal(second->regs[REG(MMHUB, regMC_VM_FB_LOCATION_TOP)],
			 (ASIC_FB_BASE + MACHINE_VRAM - 1) >> 24);
	assert_ptr_equal(hive_memory_at(second, AT, &left_bytes), second->vram + AT);
	assert_true(hive_is_own_memory(second, AT));
	assert_null(hive_memory_at(second, HIVE_SEGMENT_BYTES + AT, &left_bytes));
	gpu_set_links(second, true);
	assert_int_equal(xgmi_register(second, 0x978), 1 << 4 | 1);
	assert_ptr_equal(hive_memory_at(second, AT, &left_bytes), machine.gpu->vram + AT);
}

MACHINE_TEST(memory_that_no_node_has_is_a_violation)
{
	uint64_t root;

	(void)machine_add_gpu();
	root = new_directory(5);
	map_page(root, VA, (HIVE_SEGMENT_BYTES + MACHINE_VRAM) | PTE_ALL);
	assert_int_equal(memory_write32(machine.gpu, &process_space, VA, 7), -EFAULT);
	assert_violations(1);
	map_page(root, VA, (2 * HIVE_SEGMENT_BYTES + AT) | PTE_ALL);
	assert_int_equal(memory_write32(machine.gpu, &process_space, VA, 7), -EFAULT);
	assert_violations(2);
}

MACHINE_TEST(a_page_table_in_the_memory_of_another_node_is_a_violation)
{
	uint64_t *table;

	table = (uint64_t *)(machine_add_gpu()->vram + AT);
	memory_set_directory(machine.gpu, 0, 5, (HIVE_SEGMENT_BYTES + AT) | 1);
	*table = 1;
	assert_int_equal(memory_write32(machine.gpu, &process_space, VA, 7), -EFAULT);
	assert_violations(1);
}
