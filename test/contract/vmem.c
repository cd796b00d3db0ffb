/* SPDX-License-Identifier: GPL-2.0-only */
/* What the virtual memory API of ROCm does: GEM handles of KFD's buffers in the files of compute
 * VMs, mappings by GEM_VA, and the lists of both that Linux 6.18 and later have. The rules are
 * those of amdgpu_gem.c, amdgpu_vm.c and amdgpu_amdkfd_gpuvm.c in Linux 7.3. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <amdgpu_drm.h>

#include "buffers.h"
#include "contract.h"
#include "raw_gem.h"

#define PAGE      4096u
#define VA        (1ull << 40)
#define HALF      (SIZE / 2)
#define ENTRIES   8u
#define RWX       (AMDGPU_VM_PAGE_READABLE | AMDGPU_VM_PAGE_WRITEABLE | AMDGPU_VM_PAGE_EXECUTABLE)
#define MAP_INFO  2
#define IS_IMPORT 1u

/* Headers of older systems lack these. */
struct listed {
	uint32_t handle, flags;
	uint64_t size, preferred_domains, alloc_flags, alignment;
};
struct list {
	uint64_t entries;
	uint32_t num_entries, padding;
};
struct mapping {
	uint64_t addr, size, offset, flags;
};
struct gem_op {
	uint32_t handle, op;
	uint64_t value;
	uint32_t num_entries, padding;
};
#define LIST   DRM_IOWR(DRM_COMMAND_BASE + 0x19, struct list)
#define GEM_OP DRM_IOWR(DRM_COMMAND_BASE + DRM_AMDGPU_GEM_OP, struct gem_op)

/* A process, and a buffer of its first GPU with a handle in the file of a GPU. */
struct vmem {
	struct raw_process process;
	struct raw_bo bo;
	uint32_t handle;
	int render;
};

/* The buffer has no address. It is VRAM, unless the other GPU would refuse that. */
static struct vmem vmem_open(int gpu)
{
	struct vmem vmem = { .bo = { .size = SIZE } };

	EXPECT(raw_open_acquired(&vmem.process), 0);
	EXPECT(raw_alloc_at(&vmem.process, vmem.process.gpu[0].gpu_id,
			    gpu && !KERNEL(hive_imports) ? RAW_GTT : RAW_VRAM, &vmem.bo),
	       0);
	vmem.render = vmem.process.render[gpu];
	vmem.handle = buffer_name_bo(&vmem.process, gpu, &vmem.bo);
	return vmem;
}

/* KFD has mapped the buffer. */
static struct vmem vmem_open_mapped(void)
{
	struct vmem vmem;

	EXPECT(raw_open_acquired(&vmem.process), 0);
	vmem.bo = buffer_new(&vmem.process, 0, RAW_VRAM);
	EXPECT(raw_map(&vmem.process, &vmem.bo, vmem.process.gpu[0].gpu_id), 0);
	vmem.render = vmem.process.render[0];
	vmem.handle = buffer_name_bo(&vmem.process, 0, &vmem.bo);
	return vmem;
}

static void skip_without_lists(void)
{
	if (!KERNEL(alignment_unit))
		rule_skip("this kernel has no lists of handles and mappings");
}

static int map_va(const struct vmem *vmem, uint64_t addr)
{
	return raw_gem_map(vmem->render, vmem->handle, addr, 0, SIZE);
}

static int unmap_va(const struct vmem *vmem, uint64_t addr)
{
	return raw_gem_unmap(vmem->render, vmem->handle, addr, SIZE);
}

static int ask_handles(int render, struct listed *list, uint32_t room, uint32_t *ret_count)
{
	struct list args = { .entries = (uintptr_t)list, .num_entries = room };
	int ret = raw_ioctl(render, LIST, &args);

	*ret_count = args.num_entries;
	return ret;
}

static int ask_mappings(const struct vmem *vmem, struct mapping *list, uint32_t room,
			uint32_t *ret_count)
{
	struct gem_op args = { .handle = vmem->handle,
			       .op = MAP_INFO,
			       .value = (uintptr_t)list,
			       .num_entries = room };
	int ret = raw_ioctl(vmem->render, GEM_OP, &args);

	*ret_count = args.num_entries;
	return ret;
}

static int compare_addresses(const void *a, const void *b)
{
	const struct mapping *one = a, *other = b;

	return one->addr < other->addr ? -1 : one->addr > other->addr;
}

/* Sorted by address, because the kernel promises no order. */
static uint32_t mappings(const struct vmem *vmem, struct mapping list[static ENTRIES])
{
	uint32_t count;

	memset(list, 0, ENTRIES * sizeof(*list));
	EXPECT(ask_mappings(vmem, list, ENTRIES, &count), 0);
	qsort(list, count, sizeof(*list), compare_addresses);
	return count;
}

static void check_mapping(const struct mapping *mapping, uint64_t addr, uint64_t size,
			  uint64_t offset)
{
	EXPECT(mapping->addr, addr);
	EXPECT(mapping->size, size);
	EXPECT(mapping->offset, offset);
}

RULE(vmem_lists_exist_from_linux_6_18_on)
{
	int there = KERNEL(alignment_unit) ? 0 : -EINVAL;
	struct mapping mapping[ENTRIES];
	struct listed listed;
	struct vmem vmem = vmem_open_mapped();
	uint32_t count;

	/* without room, the number only */
	EXPECT(ask_handles(vmem.render, NULL, 0, &count), there);
	EXPECT(count, !there);
	EXPECT(ask_handles(vmem.render, &listed, 1, &count), there);
	EXPECT(ask_mappings(&vmem, mapping, ENTRIES, &count), there);
	if (there < 0)
		return;
	EXPECT(raw_gem_close(vmem.render, vmem.handle), 0);
	EXPECT(ask_mappings(&vmem, mapping, ENTRIES, &count), -ENOENT);
}

static void check_listed(const struct listed *listed, uint32_t handle, uint32_t flags,
			 uint64_t domains, uint64_t alignment)
{
	EXPECT(listed->handle, handle);
	EXPECT(listed->flags, flags);
	EXPECT(listed->size, SIZE);
	EXPECT(listed->preferred_domains, domains);
	EXPECT(listed->alignment, alignment / KERNEL(alignment_unit));
}

RULE(vmem_handles_are_listed_with_what_they_were_made_of)
{
	union drm_amdgpu_gem_create create = {
		.in = { .bo_size = SIZE,
			.alignment = SIZE,
			.domains = AMDGPU_GEM_DOMAIN_VRAM,
			.domain_flags = AMDGPU_GEM_CREATE_CPU_ACCESS_REQUIRED },
	};
	struct listed listed[2] = { 0 };
	struct vmem vmem;
	uint32_t count;

	skip_without_lists();
	vmem = vmem_open(0);
	EXPECT(raw_ioctl(vmem.render, DRM_IOCTL_AMDGPU_GEM_CREATE, &create), 0);
	EXPECT(ask_handles(vmem.render, listed, 1, &count), 0);
	EXPECT(count, 2);
	EXPECT(listed[0].handle, 0);
	EXPECT(ask_handles(vmem.render, listed, 2, &count), 0);
	EXPECT(count, 2);
	check_listed(&listed[0], 1, 0, AMDGPU_GEM_DOMAIN_VRAM, PAGE);
	check_listed(&listed[1], 2, 0, AMDGPU_GEM_DOMAIN_VRAM, SIZE);
	EXPECT(listed[1].alloc_flags,
	       AMDGPU_GEM_CREATE_VRAM_CLEARED | AMDGPU_GEM_CREATE_VRAM_WIPE_ON_RELEASE);
}

RULE(vmem_a_buffer_without_an_address_has_several_mappings)
{
	struct mapping list[ENTRIES];
	struct vmem vmem;
	uint32_t count;

	skip_without_lists();
	vmem = vmem_open(0);
	EXPECT(vmem.handle, 1);
	EXPECT(mappings(&vmem, list), 0);
	EXPECT(map_va(&vmem, VA), 0);
	EXPECT(raw_gem_map(vmem.render, vmem.handle, 3 * VA, HALF, HALF), 0);
	EXPECT(mappings(&vmem, list), 2);
	check_mapping(&list[0], VA, SIZE, 0);
	EXPECT(list[0].flags, RWX);
	check_mapping(&list[1], 3 * VA, HALF, HALF);
	/* too little room: the number only */
	memset(list, 0, sizeof(list));
	EXPECT(ask_mappings(&vmem, list, 1, &count), 0);
	EXPECT(count, 2);
	EXPECT(list[0].addr, 0);
}

/* amdgpu_gem_va_ioctl() hands the flags over as they are, with DELAY_UPDATE. */
RULE(vmem_a_mapping_tells_the_flags_that_it_was_made_with)
{
	struct drm_amdgpu_gem_va args = {
		.operation = AMDGPU_VA_OP_MAP,
		.flags = AMDGPU_VM_DELAY_UPDATE | AMDGPU_VM_PAGE_READABLE | AMDGPU_VM_MTYPE_UC,
		.va_address = VA,
		.map_size = SIZE,
	};
	struct mapping list[ENTRIES];
	struct vmem vmem;

	skip_without_lists();
	vmem = vmem_open(0);
	args.handle = vmem.handle;
	EXPECT(raw_ioctl(vmem.render, DRM_IOCTL_AMDGPU_GEM_VA, &args), 0);
	EXPECT(mappings(&vmem, list), 1);
	EXPECT(list[0].flags, args.flags);
}

/* From Linux 6.12 on KFD's mapping and those of GEM_VA belong to one bo_va
 * (amdgpu_amdkfd_gpuvm.c: kfd_mem_attach()). No mapping may overlap another. */
RULE(vmem_mappings_include_those_of_kfd)
{
	struct mapping list[ENTRIES];
	uint64_t address;
	struct vmem vmem;
	uint32_t id;

	skip_without_lists();
	vmem = vmem_open_mapped();
	id = vmem.process.gpu[0].gpu_id;
	address = (uintptr_t)vmem.bo.address;
	EXPECT(map_va(&vmem, VA), 0);
	EXPECT(mappings(&vmem, list), 2);
	check_mapping(&list[0], VA, SIZE, 0);
	check_mapping(&list[1], address, SIZE, 0);
	EXPECT(list[1].flags, RWX);
	EXPECT(map_va(&vmem, address + HALF), -EINVAL);
	EXPECT(raw_unmap(&vmem.process, &vmem.bo, id), 0);
	EXPECT(mappings(&vmem, list), 1);
	EXPECT(map_va(&vmem, address + HALF), 0);
	EXPECT(raw_map(&vmem.process, &vmem.bo, id), -EINVAL);
	EXPECT(unmap_va(&vmem, address + HALF), 0);
	EXPECT(unmap_va(&vmem, address + HALF), -ENOENT);
}

/* amdgpu_vm_bo_unmap() looks for the address only. */
VIOLATION(vmem_gem_va_can_take_away_a_mapping_of_kfd)
{
	struct mapping list[ENTRIES];
	struct vmem vmem;

	skip_without_lists();
	vmem = vmem_open_mapped();
	EXPECT(unmap_va(&vmem, (uintptr_t)vmem.bo.address), 0);
	EXPECT(mappings(&vmem, list), 0);
	EXPECT(raw_unmap(&vmem.process, &vmem.bo, vmem.process.gpu[0].gpu_id), 0);
}

/* amdgpu_gem_object_close() counts: KFD's attachment, from the first mapping to the free, keeps the
 * mappings of GEM_VA. */
RULE(vmem_mappings_end_with_the_last_handle_and_the_last_attachment)
{
	struct mapping list[ENTRIES];
	struct vmem vmem;

	skip_without_lists();
	vmem = vmem_open(0);
	EXPECT(map_va(&vmem, VA), 0);
	EXPECT(raw_gem_close(vmem.render, vmem.handle), 0);
	vmem.handle = buffer_name_bo(&vmem.process, 0, &vmem.bo);
	EXPECT(mappings(&vmem, list), 0);

	vmem.bo = buffer_new(&vmem.process, 0, RAW_VRAM);
	EXPECT(raw_map(&vmem.process, &vmem.bo, vmem.process.gpu[0].gpu_id), 0);
	EXPECT(raw_unmap(&vmem.process, &vmem.bo, vmem.process.gpu[0].gpu_id), 0);
	vmem.handle = buffer_name_bo(&vmem.process, 0, &vmem.bo);
	EXPECT(map_va(&vmem, VA), 0);
	EXPECT(raw_gem_close(vmem.render, vmem.handle), 0);
	vmem.handle = buffer_name_bo(&vmem.process, 0, &vmem.bo);
	EXPECT(mappings(&vmem, list), 1);
	/* the handle keeps them in its turn */
	buffer_free(&vmem.process, &vmem.bo);
	EXPECT(mappings(&vmem, list), 1);
}

/* A peer's file has an object of its own: another offset, and a list of its own. */
RULE(vmem_an_import_on_another_gpu_lists_its_own_mappings)
{
	struct mapping list[ENTRIES];
	struct listed listed = { 0 };
	struct vmem vmem, own;
	uint32_t count;

	skip_without_lists();
	vmem = own = vmem_open(other_device());
	own.render = vmem.process.render[0];
	own.handle = buffer_name_bo(&vmem.process, 0, &vmem.bo);
	EXPECT(map_va(&own, VA), 0);
	EXPECT(map_va(&vmem, 2 * VA), 0);
	EXPECT(mappings(&own, list), 1);
	check_mapping(&list[0], VA, SIZE, 0);
	EXPECT(mappings(&vmem, list), 1);
	check_mapping(&list[0], 2 * VA, SIZE, 0);
	EXPECT(ask_handles(vmem.render, &listed, 1, &count), 0);
	check_listed(&listed, vmem.handle, IS_IMPORT, AMDGPU_GEM_DOMAIN_GTT, PAGE);
	EXPECT(ask_handles(own.render, &listed, 1, &count), 0);
	check_listed(&listed, own.handle, 0,
		     KERNEL(hive_imports) ? AMDGPU_GEM_DOMAIN_VRAM : AMDGPU_GEM_DOMAIN_GTT, PAGE);
}
