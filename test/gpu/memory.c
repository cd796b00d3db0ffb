// SPDX-License-Identifier: GPL-2.0-only
#include "memory.h"

#include <errno.h>
#include <string.h>

#include <ivsrcid/vmc/irqsrcs_vmc_1_0.h>

#include "asic.h"
#include "gpu.h"
#include "ih.h"

/* Entries of page tables: AMDGPU_PTE_* and AMDGPU_PDE_* in amdgpu_vm.h. */
#define PTE_VALID    (1ull << 0)
#define PTE_SYSTEM   (1ull << 1)
#define PTE_ADDRESS  0x0000fffffffff000ull
#define PTE_PRT      (1ull << 51)
#define PDE_IS_PTE   (1ull << 54)
#define PTE_FURTHER  (1ull << 56)
#define PDE_BLOCK(e) ((e) >> 59)

#define PAGE_SHIFT 12u
#define PAGE_BYTES 4096ull
#define LEVEL_BITS 9u
#define TOP_LEVEL  3
#define VA_BITS    48u
#define AGP_SHIFT  24u
#define ENGINES    18u
/* KFD takes these bits of the ring id for the kind of a fault (kfd_int_process_v9.c). */
#define RING_ABSENT   0x08u
#define RING_READ     0x10u
#define RING_WRITE    0x20u
#define DATA_IS_WRITE 0x20u /* gmc_v9_0_process_interrupt() */

/* The register of this instance of a hub. */
static uint32_t of(const struct space *space, uint32_t reg)
{
	return reg + (space->instance << ASIC_INSTANCE_SHIFT);
}

static const struct asic_hub *hub_of(const struct gpu *gpu, const struct space *space)
{
	return gpu->asic->hubs[space->hub];
}

static uint64_t read_pair(const struct gpu *gpu, uint32_t reg)
{
	return gpu->regs[reg] | (uint64_t)gpu->regs[reg + 1] << 32;
}

/* The memory behind an entry. No driver names video memory that no GPU has. */
static void *physical(struct gpu *gpu, uint64_t entry, uint64_t offset, uint64_t size_bytes)
{
	uint64_t address = (entry & PTE_ADDRESS) + offset, left_bytes = 0;
	uint8_t *at;

	if (entry & PTE_SYSTEM)
		return guest_at(&gpu->guest, address, size_bytes);
	at = hive_memory_at(gpu, address, &left_bytes);
	if (left_bytes >= size_bytes)
		return at;
	report_violation(&gpu->report, "%#llx bytes of video memory at %#llx, which no GPU has",
			 (unsigned long long)size_bytes, (unsigned long long)address);
	return NULL;
}

/* A page table. The driver keeps the page tables of a GPU in the memory of this GPU. */
static const uint64_t *table_at(struct gpu *gpu, uint64_t entry, uint64_t offset,
				uint64_t size_bytes)
{
	if (!(entry & PTE_SYSTEM) && !hive_is_own_memory(gpu, entry & PTE_ADDRESS)) {
		report_violation(&gpu->report, "a page table at %#llx, which is another GPU's",
				 (unsigned long long)(entry & PTE_ADDRESS));
		return NULL;
	}
	return physical(gpu, entry, offset, size_bytes);
}

static void limit(uint64_t *length_bytes, uint64_t most)
{
	if (*length_bytes > most)
		*length_bytes = most;
}

/* A page without memory (PRT): reads give 0, and writes are lost. */
static void *nowhere(struct gpu *gpu, enum access access, uint64_t offset, uint64_t *length_bytes)
{
	offset %= PAGE_BYTES;
	limit(length_bytes, PAGE_BYTES - offset);
	return (access == ACCESS_WRITE ? gpu->sink : gpu->zeros) + offset;
}

/* The leaf of a larger page may begin at any 4 KiB page: the driver makes such leaves of system
 * memory that is contiguous but not aligned. So the offset is added, and no address is masked. */
static void *at_leaf(struct gpu *gpu, uint64_t entry, enum access access, uint64_t offset,
		     uint64_t *length_bytes)
{
	if (!(entry & access)) {
		if (!gpu->fault.pending)
			gpu->fault.is_denied = true;
		return NULL;
	}
	return physical(gpu, entry, offset, *length_bytes);
}

/* Four levels. A directory entry of PDB1 with a block size makes the entries below it leaves,
 * unless they say "translate further" (gmc_v9_0_get_vm_pde()). */
static void *walk(struct gpu *gpu, const struct space *space, uint64_t va, enum access access,
		  uint64_t *length_bytes)
{
	uint32_t directory = of(space, hub_of(gpu, space)->directory);
	uint64_t entry = read_pair(gpu, directory + 2 * space->vmid);
	bool blocks = false;
	int level;

	va &= (1ull << VA_BITS) - 1;
	for (level = TOP_LEVEL; level >= 0; level--) {
		unsigned int shift = PAGE_SHIFT + LEVEL_BITS * level;
		uint64_t offset = va & ((1ull << shift) - 1);
		const uint64_t *table = table_at(gpu, entry, 0, PAGE_BYTES);

		if (!table)
			return NULL;
		entry = table[va >> shift & ((1u << LEVEL_BITS) - 1)];
		if (!(entry & PTE_VALID))
			return entry & PTE_PRT ? nowhere(gpu, access, offset, length_bytes) : NULL;
		if (level == 0 || entry & PDE_IS_PTE || (blocks && !(entry & PTE_FURTHER))) {
			limit(length_bytes, (1ull << shift) - offset);
			return at_leaf(gpu, entry, access, offset, length_bytes);
		}
		blocks = PDE_BLOCK(entry) != 0;
	}
	return NULL;
}

/* The AGP aperture shows system memory without a table. Linux 6.1 reaches buffers of one page
 * there. */
static void *at_agp(struct gpu *gpu, const struct space *space, uint64_t va, uint64_t *length_bytes)
{
	const struct asic_hub *hub = hub_of(gpu, space);
	uint64_t bottom = (uint64_t)gpu->regs[of(space, hub->agp_bottom)] << AGP_SHIFT;
	uint64_t end = ((uint64_t)gpu->regs[of(space, hub->agp_top)] + 1) << AGP_SHIFT;
	uint64_t base = (uint64_t)gpu->regs[of(space, hub->agp_base)] << AGP_SHIFT;

	if (va < bottom || va >= end)
		return NULL;
	limit(length_bytes, PAGE_BYTES - va % PAGE_BYTES);
	return guest_at(&gpu->guest, va - bottom + base, *length_bytes);
}

/* VMID 0: the apertures of the hive's video memory and of AGP, and the GART, which is one flat
 * table. */
static void *at_system_aperture(struct gpu *gpu, const struct space *space, uint64_t va,
				enum access access, uint64_t *length_bytes)
{
	const struct asic_hub *hub = hub_of(gpu, space);
	uint64_t start = read_pair(gpu, of(space, hub->start)) << PAGE_SHIFT;
	uint64_t end = (read_pair(gpu, of(space, hub->end)) << PAGE_SHIFT) + PAGE_BYTES;
	uint64_t left_bytes = 0;
	const uint64_t *entry;
	void *at;

	if (va - ASIC_FB_BASE < hive_bytes(gpu)) {
		at = hive_memory_at(gpu, va - ASIC_FB_BASE, &left_bytes);
		limit(length_bytes, left_bytes);
		return at;
	}
	if (va < start || va >= end)
		return at_agp(gpu, space, va, length_bytes);
	entry = table_at(gpu, read_pair(gpu, of(space, hub->directory)),
			 ((va - start) >> PAGE_SHIFT) * sizeof(*entry), sizeof(*entry));
	if (!entry || !(*entry & PTE_VALID))
		return NULL;
	limit(length_bytes, PAGE_BYTES - va % PAGE_BYTES);
	return at_leaf(gpu, *entry, access, va % PAGE_BYTES, length_bytes);
}

static void note_fault(struct gpu *gpu, const struct space *space, uint64_t address,
		       enum access access)
{
	struct memory_fault *fault = &gpu->fault;

	if (fault->pending)
		return;
	fault->pending = true;
	fault->is_write = access == ACCESS_WRITE;
	fault->space = *space;
	fault->address = address;
}

void *memory_at(struct gpu *gpu, const struct space *space, uint64_t address, enum access access,
		uint64_t *length_bytes)
{
	void *at = space->vmid ? walk(gpu, space, address, access, length_bytes)
			       : at_system_aperture(gpu, space, address, access, length_bytes);

	if (!at)
		note_fault(gpu, space, address, access);
	return at;
}

int memory_read(struct gpu *gpu, const struct space *space, uint64_t address, void *data,
		uint64_t size_bytes)
{
	uint8_t *to = data;

	while (size_bytes) {
		uint64_t n = size_bytes;
		const void *at = memory_at(gpu, space, address, ACCESS_READ, &n);

		if (!at)
			return -EFAULT;
		memcpy(to, at, n);
		to += n;
		address += n;
		size_bytes -= n;
	}
	return 0;
}

int memory_write(struct gpu *gpu, const struct space *space, uint64_t address, const void *data,
		 uint64_t size_bytes)
{
	const uint8_t *from = data;

	while (size_bytes) {
		uint64_t n = size_bytes;
		void *at = memory_at(gpu, space, address, ACCESS_WRITE, &n);

		if (!at)
			return -EFAULT;
		memcpy(at, from, n);
		from += n;
		address += n;
		size_bytes -= n;
	}
	return 0;
}

int memory_write32(struct gpu *gpu, const struct space *space, uint64_t address, uint32_t value)
{
	return memory_write(gpu, space, address, &value, sizeof(value));
}

int memory_write64(struct gpu *gpu, const struct space *space, uint64_t address, uint64_t value)
{
	return memory_write(gpu, space, address, &value, sizeof(value));
}

int memory_copy(struct gpu *gpu, const struct space *space, uint64_t to, uint64_t from,
		uint64_t size_bytes)
{
	while (size_bytes) {
		uint64_t n = size_bytes;
		const void *source = memory_at(gpu, space, from, ACCESS_READ, &n);
		void *target = source ? memory_at(gpu, space, to, ACCESS_WRITE, &n) : NULL;

		if (!target)
			return -EFAULT;
		memmove(target, source, n);
		to += n;
		from += n;
		size_bytes -= n;
	}
	return 0;
}

/* memmove() from what is filled already is as fast as the processor can be. */
static void fill_bytes(uint8_t *to, const uint8_t *pattern, uint64_t size_bytes)
{
	uint64_t done = size_bytes < 4 ? size_bytes : 4, n;

	memcpy(to, pattern, done);
	while (done < size_bytes) {
		n = done < size_bytes - done ? done : size_bytes - done;
		if (n > PAGE_BYTES)
			n = PAGE_BYTES;
		memcpy(to + done, to, n);
		done += n;
	}
}

int memory_fill(struct gpu *gpu, const struct space *space, uint64_t to, uint32_t value,
		uint64_t size_bytes)
{
	while (size_bytes) {
		uint64_t n = size_bytes;
		uint8_t *at = memory_at(gpu, space, to, ACCESS_WRITE, &n);

		if (!at)
			return -EFAULT;
		fill_bytes(at, (const uint8_t *)&value, n);
		value = value >> 8 * (n & 3) | (n & 3 ? value << (32 - 8 * (n & 3)) : 0);
		to += n;
		size_bytes -= n;
	}
	return 0;
}

static uint32_t fault_status(const struct memory_fault *fault)
{
	return 1u << VM_L2_PROTECTION_FAULT_STATUS__PERMISSION_FAULTS__SHIFT |
	       (uint32_t)!fault->is_denied << VM_L2_PROTECTION_FAULT_STATUS__MAPPING_ERROR__SHIFT |
	       (uint32_t)fault->is_write << VM_L2_PROTECTION_FAULT_STATUS__RW__SHIFT |
	       fault->space.vmid << VM_L2_PROTECTION_FAULT_STATUS__VMID__SHIFT;
}

void memory_report_fault(struct gpu *gpu)
{
	const struct memory_fault fault = gpu->fault;
	const struct asic_hub *hub = hub_of(gpu, &fault.space);
	uint32_t at = of(&fault.space, hub->fault_address);
	uint64_t page = fault.address >> PAGE_SHIFT;
	struct ih_entry entry = {
		.client = hub->client,
		.source = VMC_1_0__SRCID__VM_FAULT,
		.ring = (fault.is_denied ? 0 : RING_ABSENT) |
			(fault.is_write ? RING_WRITE : RING_READ),
		.space = fault.space,
		.data = { (uint32_t)page,
			  (page >> 32 & 0xf) | (fault.is_write ? DATA_IS_WRITE : 0) },
	};

	memset(&gpu->fault, 0, sizeof(gpu->fault));
	report_log(&gpu->report, REPORT_ALWAYS, "fault: %s %u, VMID %u, %s of %#llx: %s", hub->name,
		   fault.space.instance, fault.space.vmid, fault.is_write ? "write" : "read",
		   (unsigned long long)fault.address,
		   fault.is_denied ? "not allowed" : "not mapped");
	if (!fault.space.vmid)
		report_violation(&gpu->report, "a ring of the driver %s %#llx, which is not mapped",
				 fault.is_write ? "writes to" : "reads",
				 (unsigned long long)fault.address);
	gpu->regs[of(&fault.space, hub->fault_status)] = fault_status(&fault);
	gpu->regs[at] = (uint32_t)page;
	gpu->regs[at + 1] = (uint32_t)(page >> 32);
	ih_post(gpu, &entry);
}

static void set_directory(struct gpu *gpu, const struct space *space, uint64_t directory)
{
	uint32_t reg = of(space, hub_of(gpu, space)->directory) + 2 * space->vmid;

	gpu->regs[reg] = (uint32_t)directory;
	gpu->regs[reg + 1] = (uint32_t)(directory >> 32);
}

void memory_set_directory(struct gpu *gpu, unsigned int xcc, unsigned int vmid, uint64_t directory)
{
	const struct space gfx = { HUB_GFX, vmid, xcc }, mm = { HUB_MM, vmid, gpu_aid(xcc) };

	set_directory(gpu, &gfx, directory);
	set_directory(gpu, &mm, directory);
}

/* Whether it is one of the registers that each invalidation engine of a hub has from @first on. */
static bool is_engine(const struct asic_hub *hub, uint32_t first, uint32_t reg)
{
	uint32_t distance = reg - first;

	return distance >> ASIC_INSTANCE_SHIFT < hub->instances &&
	       (distance & ((1u << ASIC_INSTANCE_SHIFT) - 1)) < ENGINES;
}

/* The model has no TLB, so an invalidation has ended as soon as it begins. */
bool memory_write_register(struct gpu *gpu, uint32_t reg, uint32_t value)
{
	unsigned int i;

	for (i = HUB_GFX; i <= HUB_MM; i++) {
		const struct asic_hub *hub = gpu->asic->hubs[i];

		if (!is_engine(hub, hub->invalidate_request, reg))
			continue;
		gpu->regs[reg - hub->invalidate_request + hub->invalidate_acknowledge] =
			value & 0xffff;
		gpu->regs[reg] = value;
		return true;
	}
	return false;
}

/* Reading 1 takes the semaphore of an engine, which is free here at all times. */
bool memory_read_register(const struct gpu *gpu, uint32_t reg, uint32_t *ret_value)
{
	unsigned int i;

	for (i = HUB_GFX; i <= HUB_MM; i++) {
		const struct asic_hub *hub = gpu->asic->hubs[i];

		if (is_engine(hub, hub->invalidate_semaphore, reg)) {
			*ret_value = 1;
			return true;
		}
	}
	return false;
}
