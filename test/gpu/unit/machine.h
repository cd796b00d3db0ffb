/* SPDX-License-Identifier: GPL-2.0-only */
/* A GPU with a guest of some pages, for tests. The test program is what the driver is otherwise. */
#ifndef TEST_GPU_UNIT_MACHINE_H
#define TEST_GPU_UNIT_MACHINE_H

#include <string.h>
#include <sys/mman.h>

#include "gpu.h"
#include "regs.h"
#include "tests.h"

#define MACHINE_VRAM        (256ull << 20)
#define MACHINE_GUEST       0x100000000ull /* physical address of the guest's memory */
#define MACHINE_GUEST_BYTES (8ull << 20)

/* Places in the guest's memory. */
#define MACHINE_IH_RING 0x10000u
#define MACHINE_IH_WPTR 0x20000u
#define MACHINE_RING    0x30000u
/* Places in video memory. */
#define MACHINE_GART_TABLE 0x100000u
#define MACHINE_TABLES     0x200000u /* page tables of processes */

/* The GART begins at 0 and shows the guest's memory. */
#define GART_ADDRESS(offset) ((uint64_t)(offset))

#define PTE_ALL 0x71ull /* valid, executable, readable, writable */
#define PTE_SYS 0x2ull

struct machine {
	struct hive hive; /* with the GPU alone, unless a test adds more */
	struct gpu *gpu;
	uint8_t *guest;
	unsigned int interrupts;
	bool refuses_interrupts;
	uint64_t next_table;
};

static struct machine machine;

static int machine_interrupt(void *arg)
{
	(void)arg;
	if (machine.refuses_interrupts)
		return -1;
	machine.interrupts++;
	return 0;
}

static inline void set_pair(struct gpu *gpu, uint32_t reg, uint64_t value)
{
	gpu->regs[reg] = (uint32_t)value;
	gpu->regs[reg + 1] = (uint32_t)(value >> 32);
}

static inline void machine_make_gart(struct gpu *gpu)
{
	uint64_t *table = (uint64_t *)(gpu->vram + MACHINE_GART_TABLE);
	uint64_t pages = MACHINE_GUEST_BYTES / 4096, i;
	uint64_t base = (gpu->node * HIVE_SEGMENT_BYTES + MACHINE_GART_TABLE) | 1;
	const struct asic_hub *gfx = gpu->asic->hubs[HUB_GFX], *mm = gpu->asic->hubs[HUB_MM];

	for (i = 0; i < pages; i++)
		table[i] = (MACHINE_GUEST + i * 4096) | PTE_ALL | PTE_SYS;
	for (i = 0; i < gfx->instances; i++) {
		set_pair(gpu, gfx->directory + (i << ASIC_INSTANCE_SHIFT), base);
		set_pair(gpu, gfx->end + (i << ASIC_INSTANCE_SHIFT), pages - 1);
	}
	for (i = 0; i < mm->instances; i++) {
		set_pair(gpu, mm->directory + (i << ASIC_INSTANCE_SHIFT), base);
		set_pair(gpu, mm->end + (i << ASIC_INSTANCE_SHIFT), pages - 1);
	}
}

/* A ring of 1024 bytes for interrupts. */
static inline void machine_make_ih(struct gpu *gpu)
{
	uint64_t ring = MACHINE_GUEST + MACHINE_IH_RING, copy = MACHINE_GUEST + MACHINE_IH_WPTR;

	gpu->regs[REG(OSSSYS, mmIH_RB_BASE)] = (uint32_t)(ring >> 8);
	gpu->regs[REG(OSSSYS, mmIH_RB_BASE_HI)] = (uint32_t)(ring >> 40);
	gpu->regs[REG(OSSSYS, mmIH_RB_WPTR_ADDR_LO)] = (uint32_t)copy;
	gpu->regs[REG(OSSSYS, mmIH_RB_WPTR_ADDR_HI)] = (uint32_t)(copy >> 32);
	gpu->regs[REG(OSSSYS, mmIH_RB_CNTL)] =
		IH_RB_CNTL__RB_ENABLE_MASK | IH_RB_CNTL__ENABLE_INTR_MASK |
		8 << IH_RB_CNTL__RB_SIZE__SHIFT | 1 << IH_RB_CNTL__MC_SPACE__SHIFT;
}

/* What the driver does first with each GPU. All GPUs have the same guest. */
static inline void machine_prepare(struct gpu *gpu)
{
	struct guest_range range = { MACHINE_GUEST, MACHINE_GUEST_BYTES, machine.guest };

	if (!gpu->guest.num_ranges)
		assert_int_equal(guest_add(&gpu->guest, &range), 0);
	gpu->interrupt = machine_interrupt;
	machine_make_gart(gpu);
	machine_make_ih(gpu);
}

static inline int machine_setup_chip(const struct asic *asic)
{
	memset(&machine, 0, sizeof(machine));
	assert_int_equal(gpu_new(asic, MACHINE_VRAM, &machine.gpu), 0);
	machine.hive = (struct hive){ .num_nodes = 1, .nodes = { machine.gpu } };
	machine.guest = mmap(NULL, MACHINE_GUEST_BYTES, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(machine.guest != MAP_FAILED);
	machine.next_table = MACHINE_TABLES;
	machine_prepare(machine.gpu);
	return 0;
}

static inline int machine_setup(void **state)
{
	(void)state;
	return machine_setup_chip(&asic_mi210);
}

/* Adds a GPU to the hive. All GPUs lose their registers. */
static inline struct gpu *machine_add_gpu(void)
{
	struct gpu *gpu;
	unsigned int i;

	assert_int_equal(gpu_new(&asic_mi210, MACHINE_VRAM, &gpu), 0);
	machine.hive.nodes[machine.hive.num_nodes++] = gpu;
	hive_connect(&machine.hive);
	for (i = 0; i < machine.hive.num_nodes; i++)
		machine_prepare(machine.hive.nodes[i]);
	return gpu;
}

static inline int machine_teardown(void **state)
{
	unsigned int i;

	(void)state;
	for (i = 0; i < machine.hive.num_nodes; i++)
		gpu_free(machine.hive.nodes[i]);
	(void)munmap(machine.guest, MACHINE_GUEST_BYTES);
	return 0;
}

#define MACHINE_TEST(name) TEST_WITH(name, machine_setup, machine_teardown)

/* Runs the queues until they wait or have ended; one call may take its turn's time before. */
static inline int machine_run(void)
{
	int wait_ms;

	do
		wait_ms = queues_run(machine.gpu);
	while (wait_ms == 0);
	return wait_ms;
}

static inline void assert_violations(unsigned int count)
{
	if (machine.gpu->report.num_violations != count)
		print_message("violation: %s\n", machine.gpu->report.kept[0]);
	assert_int_equal(machine.gpu->report.num_violations, count);
}

static inline void *vram_at(uint64_t offset)
{
	return machine.gpu->vram + offset;
}

static inline void *guest_page(uint64_t offset)
{
	return machine.guest + offset;
}

static inline uint64_t new_table(void)
{
	machine.next_table += 4096;
	memset(vram_at(machine.next_table), 0, 4096);
	return machine.next_table;
}

/* The entry of @level for @va; tables above it are made. */
static inline uint64_t *entry_of(uint64_t root, uint64_t va, int level)
{
	uint64_t *entry = NULL;
	int at;

	for (at = 3; at >= level; at--) {
		entry = (uint64_t *)vram_at(root) + (va >> (12 + 9 * at) & 511);
		if (at == level)
			break;
		if (!*entry)
			*entry = new_table() | 1;
		root = *entry & 0x0000fffffffff000ull;
	}
	return entry;
}

/* A page directory of the VMID, empty. */
static inline uint64_t new_directory(unsigned int vmid)
{
	uint64_t root = new_table();

	memory_set_directory(machine.gpu, 0, vmid, root | 1);
	return root;
}

static inline void map_page(uint64_t root, uint64_t va, uint64_t entry)
{
	*entry_of(root, va, 0) = entry;
}

#endif
