// SPDX-License-Identifier: GPL-2.0-only
/* Contract tests of the virtual memory API's calls: KFD buffers without an address, GEM handles of
 * their dma-bufs on the compute VM's file, and mappings by GEM_VA. The rules are those of
 * amdgpu_gem.c, amdgpu_vm.c and amdgpu_amdkfd_gpuvm.c in Linux 7.3.4; LIST_HANDLES and
 * GET_MAPPING_INFO are in Linux 6.18 and later. */
#include <errno.h>

#include <amdgpu_drm.h>

#include "sharing.h"

#define VA       (1ull << 40)
#define HALF     (SIZE / 2)
#define ENTRIES  8u
#define RW       (AMDGPU_VM_PAGE_READABLE | AMDGPU_VM_PAGE_WRITEABLE)
#define MAP_INFO 2

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

/* One process, and a VRAM buffer with a handle in the file of a GPU. */
struct vmem {
	struct raw_process process;
	struct raw_bo bo;
	uint32_t handle;
	int render;
};

static int begin_7_3(void **state)
{
	sim_write("kernel", "7.3");
	return begin(state);
}

static struct raw_bo alloc_nowhere(struct raw_process *process)
{
	struct raw_bo bo = { .size = SIZE };

	assert_int_equal(raw_alloc_at(process, process->gpu[FIRST].gpu_id, RAW_VRAM, &bo), 0);
	return bo;
}

static uint32_t name_bo(struct raw_process *process, const struct raw_bo *bo, int gpu)
{
	int fd = export(process, bo);
	uint32_t handle = prime_import(process->render[gpu], fd);

	(void)close(fd);
	return handle;
}

static struct vmem open_vmem(int gpu)
{
	struct vmem vmem;

	assert_int_equal(raw_open_acquired(&vmem.process), 0);
	vmem.bo = alloc_nowhere(&vmem.process);
	vmem.render = vmem.process.render[gpu];
	vmem.handle = name_bo(&vmem.process, &vmem.bo, gpu);
	return vmem;
}

static void close_handle(const struct vmem *vmem)
{
	struct drm_gem_close args = { .handle = vmem->handle };

	assert_int_equal(raw_ioctl(vmem->render, DRM_IOCTL_GEM_CLOSE, &args), 0);
}

static void close_vmem(struct vmem *vmem)
{
	close_process(&vmem->process);
	sim_write("process_exit", "1");
}

static int change(const struct vmem *vmem, uint32_t operation, uint64_t offset, uint64_t size,
		  uint64_t addr)
{
	struct drm_amdgpu_gem_va args = {
		.handle = vmem->handle,
		.operation = operation,
		.flags = RW,
		.va_address = addr,
		.offset_in_bo = offset,
		.map_size = size,
	};

	return raw_ioctl(vmem->render, DRM_IOCTL_AMDGPU_GEM_VA, &args);
}

static int map_va(const struct vmem *vmem, uint64_t addr)
{
	return change(vmem, AMDGPU_VA_OP_MAP, 0, SIZE, addr);
}

static int unmap_va(const struct vmem *vmem, uint64_t addr)
{
	return change(vmem, AMDGPU_VA_OP_UNMAP, 0, SIZE, addr);
}

static int ask_mappings(const struct vmem *vmem, struct mapping *list, uint32_t room,
			uint32_t *ret_count)
{
	struct gem_op args = {
		.handle = vmem->handle,
		.op = MAP_INFO,
		.value = (uintptr_t)list,
		.num_entries = room,
	};
	int ret = raw_ioctl(vmem->render, GEM_OP, &args);

	*ret_count = args.num_entries;
	return ret;
}

static uint32_t mappings(const struct vmem *vmem, struct mapping list[static ENTRIES])
{
	uint32_t count;

	memset(list, 0, ENTRIES * sizeof(*list));
	assert_int_equal(ask_mappings(vmem, list, ENTRIES, &count), 0);
	return count;
}

static void check_mapping(const struct mapping *mapping, uint64_t addr, uint64_t size,
			  uint64_t offset)
{
	assert_int_equal(mapping->addr, addr);
	assert_int_equal(mapping->size, size);
	assert_int_equal(mapping->offset, offset);
}

static void a_buffer_without_an_address_has_a_handle_and_several_mappings(void **state)
{
	struct vmem vmem = open_vmem(FIRST);
	struct mapping list[ENTRIES];
	uint32_t count = 9;

	(void)state;
	assert_int_equal(vmem.handle, 1);
	assert_int_equal(mappings(&vmem, list), 0);
	assert_int_equal(map_va(&vmem, VA), 0);
	assert_int_equal(change(&vmem, AMDGPU_VA_OP_MAP, HALF, HALF, 3 * VA), 0);
	assert_int_equal(mappings(&vmem, list), 2);
	check_mapping(&list[0], VA, SIZE, 0);
	assert_int_equal(list[0].flags, RW);
	check_mapping(&list[1], 3 * VA, HALF, HALF);
	/* too little room: the number only */
	memset(list, 0, sizeof(list));
	assert_int_equal(ask_mappings(&vmem, list, 1, &count), 0);
	assert_int_equal(count, 2);
	assert_int_equal(list[0].addr, 0);
	close_handle(&vmem);
	release(&vmem.process, &vmem.bo);
	close_vmem(&vmem);
}

/* amdgpu_gem_va_ioctl() hands the flags over as they are, with DELAY_UPDATE. */
static void a_mapping_tells_the_flags_that_it_was_made_with(void **state)
{
	struct vmem vmem = open_vmem(FIRST);
	struct drm_amdgpu_gem_va args = {
		.handle = vmem.handle,
		.operation = AMDGPU_VA_OP_MAP,
		.flags = AMDGPU_VM_DELAY_UPDATE | AMDGPU_VM_PAGE_READABLE | AMDGPU_VM_MTYPE_UC,
		.va_address = VA,
		.map_size = SIZE,
	};
	struct mapping list[ENTRIES];

	(void)state;
	assert_int_equal(raw_ioctl(vmem.render, DRM_IOCTL_AMDGPU_GEM_VA, &args), 0);
	assert_int_equal(mappings(&vmem, list), 1);
	assert_int_equal(list[0].flags, args.flags);
	close_handle(&vmem);
	release(&vmem.process, &vmem.bo);
	close_vmem(&vmem);
}

/* kfd_mem_attach() uses the bo_va that the handle has made. */
static void the_list_of_mappings_has_those_of_kfd(void **state)
{
	struct vmem vmem;
	struct mapping list[ENTRIES];
	uint32_t id;

	(void)state;
	assert_int_equal(raw_open_acquired(&vmem.process), 0);
	vmem.bo = alloc(&vmem.process, FIRST, RAW_VRAM);
	vmem.render = vmem.process.render[FIRST];
	id = vmem.process.gpu[FIRST].gpu_id;
	assert_int_equal(raw_map(&vmem.process, &vmem.bo, id), 0);
	vmem.handle = name_bo(&vmem.process, &vmem.bo, FIRST);
	assert_int_equal(mappings(&vmem, list), 1);
	check_mapping(&list[0], (uintptr_t)vmem.bo.address, SIZE, 0);
	/* amdgpu_vm_bo_map(): no overlap, also with those of KFD, and in both directions */
	assert_int_equal(map_va(&vmem, (uintptr_t)vmem.bo.address + HALF), -EINVAL);
	assert_int_equal(raw_unmap(&vmem.process, &vmem.bo, id), 0);
	assert_int_equal(map_va(&vmem, (uintptr_t)vmem.bo.address + HALF), 0);
	assert_int_equal(raw_map(&vmem.process, &vmem.bo, id), -EINVAL);
	assert_int_equal(unmap_va(&vmem, (uintptr_t)vmem.bo.address + HALF), 0);
	assert_int_equal(unmap_va(&vmem, (uintptr_t)vmem.bo.address + HALF), -ENOENT);
	close_handle(&vmem);
	release(&vmem.process, &vmem.bo);
	close_vmem(&vmem);
}

/* amdgpu_vm_bo_unmap() looks for the address only. */
static void gem_va_can_take_away_a_mapping_of_kfd(void **state)
{
	struct vmem vmem;
	struct mapping list[ENTRIES];

	(void)state;
	assert_int_equal(raw_open_acquired(&vmem.process), 0);
	vmem.bo = alloc(&vmem.process, FIRST, RAW_VRAM);
	vmem.render = vmem.process.render[FIRST];
	assert_int_equal(raw_map(&vmem.process, &vmem.bo, vmem.process.gpu[FIRST].gpu_id), 0);
	vmem.handle = name_bo(&vmem.process, &vmem.bo, FIRST);
	assert_int_equal(unmap_va(&vmem, (uintptr_t)vmem.bo.address), 0);
	assert_int_equal(mappings(&vmem, list), 0);
	assert_int_equal(sim_number("violations", NULL), 1);
	sim_write("violations", "0");
	assert_int_equal(raw_unmap(&vmem.process, &vmem.bo, vmem.process.gpu[FIRST].gpu_id), 0);
	close_handle(&vmem);
	release(&vmem.process, &vmem.bo);
	close_vmem(&vmem);
}

/* amdgpu_gem_object_close() counts: KFD's attachment, from the first mapping to the free, keeps the
 * mappings of GEM_VA. */
static void mappings_end_with_the_last_handle_and_the_last_attachment(void **state)
{
	struct vmem vmem = open_vmem(FIRST);
	struct mapping list[ENTRIES];
	uint32_t id = vmem.process.gpu[FIRST].gpu_id;

	(void)state;
	assert_int_equal(map_va(&vmem, VA), 0);
	close_handle(&vmem);
	vmem.handle = name_bo(&vmem.process, &vmem.bo, FIRST);
	assert_int_equal(mappings(&vmem, list), 0);
	close_handle(&vmem);
	release(&vmem.process, &vmem.bo);

	vmem.bo = alloc(&vmem.process, FIRST, RAW_VRAM);
	assert_int_equal(raw_map(&vmem.process, &vmem.bo, id), 0);
	assert_int_equal(raw_unmap(&vmem.process, &vmem.bo, id), 0);
	vmem.handle = name_bo(&vmem.process, &vmem.bo, FIRST);
	assert_int_equal(map_va(&vmem, VA), 0);
	close_handle(&vmem);
	vmem.handle = name_bo(&vmem.process, &vmem.bo, FIRST);
	assert_int_equal(mappings(&vmem, list), 1);
	/* the handle keeps them in its turn */
	release(&vmem.process, &vmem.bo);
	assert_int_equal(mappings(&vmem, list), 1);
	close_handle(&vmem);
	close_vmem(&vmem);
}

/* A peer's file has an object of its own: another offset, and a list of its own. */
static void an_import_on_another_gpu_lists_its_own_mappings(void **state)
{
	struct vmem vmem = open_vmem(OTHER), own = vmem;
	struct listed listed = { 0 };
	struct list args = { (uintptr_t)&listed, 1, 0 };
	struct mapping list[ENTRIES];

	(void)state;
	own.render = vmem.process.render[FIRST];
	own.handle = name_bo(&vmem.process, &vmem.bo, FIRST);
	assert_int_equal(map_va(&own, VA), 0);
	assert_int_equal(map_va(&vmem, 2 * VA), 0);
	assert_int_equal(mappings(&own, list), 1);
	check_mapping(&list[0], VA, SIZE, 0);
	assert_int_equal(mappings(&vmem, list), 1);
	check_mapping(&list[0], 2 * VA, SIZE, 0);
	assert_int_equal(raw_ioctl(vmem.render, LIST, &args), 0);
	assert_int_equal(listed.handle, vmem.handle);
	assert_int_equal(listed.flags, 1);
	assert_int_equal(listed.preferred_domains, AMDGPU_GEM_DOMAIN_GTT);
	assert_int_equal(raw_ioctl(own.render, LIST, &args), 0);
	assert_int_equal(listed.flags, 0);
	assert_int_equal(listed.preferred_domains, AMDGPU_GEM_DOMAIN_VRAM);
	close_handle(&own);
	close_handle(&vmem);
	release(&vmem.process, &vmem.bo);
	close_vmem(&vmem);
}

/* The list has no room for some: the number only. Kernels that do not know the calls. */
static void handles_and_mappings_can_be_listed_from_linux_6_18_on(void **state)
{
	static const struct {
		const char *kernel;
		int ret;
	} cases[] = { { "6.1", -EINVAL }, { "6.8", -EINVAL }, { "6.12.111", -EINVAL },
		      { "6.18", 0 },      { "7.2", 0 },       { "7.3", 0 } };
	struct vmem vmem = open_vmem(FIRST);
	struct mapping list[ENTRIES];
	uint32_t count;

	(void)state;
	assert_int_equal(map_va(&vmem, VA), 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct list args = { 0 };

		sim_write("kernel", cases[i].kernel);
		assert_int_equal(raw_ioctl(vmem.render, LIST, &args), cases[i].ret);
		assert_int_equal(args.num_entries, !cases[i].ret);
		assert_int_equal(ask_mappings(&vmem, list, ENTRIES, &count), cases[i].ret);
	}
	sim_write("kernel", "7.3");
	close_handle(&vmem);
	assert_int_equal(ask_mappings(&vmem, list, ENTRIES, &count), -ENOENT);
	release(&vmem.process, &vmem.bo);
	close_vmem(&vmem);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin_7_3, end)
	const struct CMUnitTest tests[] = {
		TEST(a_buffer_without_an_address_has_a_handle_and_several_mappings),
		TEST(a_mapping_tells_the_flags_that_it_was_made_with),
		TEST(the_list_of_mappings_has_those_of_kfd),
		TEST(gem_va_can_take_away_a_mapping_of_kfd),
		TEST(mappings_end_with_the_last_handle_and_the_last_attachment),
		TEST(an_import_on_another_gpu_lists_its_own_mappings),
		TEST(handles_and_mappings_can_be_listed_from_linux_6_18_on),
	};

	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
