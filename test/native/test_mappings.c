// SPDX-License-Identifier: GPL-2.0-only
/* GEM handles of a file and their mappings in its page tables, as newer kernels list them. KFD's
 * mappings are among them. */
#include <amdgpu_drm.h>
#include <errno.h>

#include "sharing.h"

#define PAGE   4096u
#define OWN_VA 0x700000000ull

/* Linux 6.18 added these; older headers lack them. */
struct list_entry {
	uint32_t handle, flags;
	uint64_t size, preferred_domains, alloc_flags, alignment;
};

struct list_handles {
	uint64_t entries;
	uint32_t num_entries, padding;
};

struct vm_entry {
	uint64_t addr, size, offset, flags;
};

struct gem_op {
	uint32_t handle, op;
	uint64_t value;
	uint32_t num_entries, padding;
};

#define IOCTL_LIST_HANDLES DRM_IOWR(DRM_COMMAND_BASE + 0x19, struct list_handles)
#define IOCTL_GEM_OP       DRM_IOWR(DRM_COMMAND_BASE + DRM_AMDGPU_GEM_OP, struct gem_op)
#define OP_MAPPING_INFO    2u
#define IS_IMPORT          1u

/* Fills @entries, which has room for @room entries; *ret_count: the number that exists. */
static int list(int render, struct list_entry *entries, uint32_t room, uint32_t *ret_count)
{
	struct list_handles args = { .entries = (uintptr_t)entries, .num_entries = room };
	int ret = raw_ioctl(render, IOCTL_LIST_HANDLES, &args);

	*ret_count = args.num_entries;
	return ret;
}

static int mappings(int render, uint32_t handle, struct vm_entry *entries, uint32_t room,
		    uint32_t *ret_count)
{
	struct gem_op args = {
		.handle = handle,
		.op = OP_MAPPING_INFO,
		.value = (uintptr_t)entries,
		.num_entries = room,
	};
	int ret = raw_ioctl(render, IOCTL_GEM_OP, &args);

	*ret_count = args.num_entries;
	return ret;
}

static uint32_t create(int render, uint64_t alignment)
{
	union drm_amdgpu_gem_create args = {
		.in = { .bo_size = SIZE,
			.alignment = alignment,
			.domains = AMDGPU_GEM_DOMAIN_VRAM,
			.domain_flags = AMDGPU_GEM_CREATE_CPU_ACCESS_REQUIRED },
	};

	assert_int_equal(raw_ioctl(render, DRM_IOCTL_AMDGPU_GEM_CREATE, &args), 0);
	return args.out.handle;
}

static int map(int render, uint32_t handle, uint64_t va, uint64_t offset, uint64_t size)
{
	struct drm_amdgpu_gem_va args = {
		.handle = handle,
		.operation = AMDGPU_VA_OP_MAP,
		.flags = AMDGPU_VM_PAGE_READABLE | AMDGPU_VM_PAGE_WRITEABLE,
		.va_address = va,
		.offset_in_bo = offset,
		.map_size = size,
	};

	return raw_ioctl(render, DRM_IOCTL_AMDGPU_GEM_VA, &args);
}

static void check_entry(const struct list_entry *entry, uint32_t handle, uint32_t flags,
			uint64_t domains, uint64_t alignment)
{
	assert_int_equal(entry->handle, handle);
	assert_int_equal(entry->flags, flags);
	assert_int_equal(entry->size, SIZE);
	assert_int_equal(entry->preferred_domains, domains);
	assert_int_equal(entry->alignment, alignment);
}

/* A buffer counts as imported only if another device exported it. */
static void handles_are_listed_with_what_they_were_made_of(void **state)
{
	static const struct {
		const char *kernel;
		uint64_t unit;
	} kernels[] = { { "6.18", PAGE }, { "7.2", 1 }, { "7.3", 1 } };
	struct list_entry entries[4];
	uint32_t count;

	(void)state;
	for (size_t i = 0; i < sizeof(kernels) / sizeof(*kernels); i++) {
		uint64_t unit = kernels[i].unit;
		struct raw_bo bo, foreign;
		struct pair pair;
		int fd, other, render;

		sim_write("kernel", kernels[i].kernel);
		pair = open_pair();
		render = pair.importer.render[FIRST];
		bo = alloc(&pair.owner, FIRST, RAW_VRAM);
		foreign = alloc(&pair.owner, OTHER, RAW_VRAM);
		fd = export(&pair.owner, &bo);
		other = export(&pair.owner, &foreign);
		assert_int_equal(create(render, SIZE), 1);
		assert_int_equal(prime_import(render, fd), 2);
		assert_int_equal(prime_import(render, other), 3);
		memset(entries, 0, sizeof(entries));
		assert_int_equal(list(render, entries, 2, &count), 0);
		assert_int_equal(count, 3);
		assert_int_equal(entries[0].handle, 0);
		assert_int_equal(list(render, entries, 4, &count), 0);
		assert_int_equal(count, 3);
		check_entry(&entries[0], 1, 0, AMDGPU_GEM_DOMAIN_VRAM, SIZE / unit);
		check_entry(&entries[1], 2, 0, AMDGPU_GEM_DOMAIN_VRAM, PAGE / unit);
		check_entry(&entries[2], 3, IS_IMPORT, AMDGPU_GEM_DOMAIN_GTT, PAGE / unit);
		assert_int_equal(entries[0].alloc_flags,
				 AMDGPU_GEM_CREATE_VRAM_CLEARED |
					 AMDGPU_GEM_CREATE_VRAM_WIPE_ON_RELEASE);
		(void)close(fd);
		(void)close(other);
		release(&pair.owner, &bo);
		release(&pair.owner, &foreign);
		close_pair(&pair);
	}
}

static void older_kernels_list_neither_handles_nor_mappings(void **state)
{
	static const char *const kernels[] = { "6.1", "6.8", "6.12" };
	struct list_entry entry;
	struct vm_entry mapping;
	uint32_t count;

	(void)state;
	for (size_t i = 0; i < sizeof(kernels) / sizeof(*kernels); i++) {
		struct raw_process process;

		sim_write("kernel", kernels[i]);
		assert_int_equal(raw_open_acquired(&process), 0);
		assert_int_equal(create(process.render[FIRST], PAGE), 1);
		assert_int_equal(list(process.render[FIRST], &entry, 1, &count), -EINVAL);
		assert_int_equal(mappings(process.render[FIRST], 1, &mapping, 1, &count), -EINVAL);
		close_process(&process);
		sim_write("process_exit", "1");
	}
}

static void check_mapping(const struct vm_entry *entry, uint64_t addr, uint64_t offset,
			  uint64_t size, uint64_t flags)
{
	assert_int_equal(entry->addr, addr);
	assert_int_equal(entry->offset, offset);
	assert_int_equal(entry->size, size);
	assert_int_equal(entry->flags, flags);
}

/* From Linux 6.12 on KFD's mapping and those of GEM_VA belong to one bo_va
 * (amdgpu_amdkfd_gpuvm.c: kfd_mem_attach()). Mapping KFD's once more overlaps. */
static void mappings_of_a_handle_include_those_of_kfd(void **state)
{
	const uint64_t rw = AMDGPU_VM_PAGE_READABLE | AMDGPU_VM_PAGE_WRITEABLE;
	struct vm_entry entries[4] = { { 0 } };
	struct raw_bo bo, imported;
	uint32_t handle, count, id;
	struct pair pair;
	int fd, render;

	(void)state;
	sim_write("kernel", "7.2");
	pair = open_pair();
	render = pair.importer.render[FIRST];
	id = pair.importer.gpu[FIRST].gpu_id;
	bo = alloc(&pair.owner, FIRST, RAW_VRAM);
	fd = export(&pair.owner, &bo);
	imported = import(&pair.importer, FIRST, fd);
	handle = prime_import(render, fd);
	assert_int_equal(mappings(render, handle, entries, 4, &count), 0);
	assert_int_equal(count, 0);
	assert_int_equal(raw_map(&pair.importer, &imported, id), 0);
	assert_int_equal(map(render, handle, OWN_VA, 2 * PAGE, PAGE), 0);
	assert_int_equal(map(render, handle, OWN_VA + SIZE, 0, SIZE), 0);
	assert_int_equal(map(render, handle, (uintptr_t)imported.address, 0, SIZE), -EINVAL);
	assert_int_equal(mappings(render, handle, entries, 2, &count), 0);
	assert_int_equal(count, 3);
	assert_int_equal(entries[0].size, 0);
	assert_int_equal(mappings(render, handle, entries, 4, &count), 0);
	assert_int_equal(count, 3);
	check_mapping(&entries[0], OWN_VA, 2 * PAGE, PAGE, rw);
	check_mapping(&entries[1], OWN_VA + SIZE, 0, SIZE, rw);
	check_mapping(&entries[2], (uintptr_t)imported.address, 0, SIZE,
		      rw | AMDGPU_VM_PAGE_EXECUTABLE);
	assert_int_equal(raw_unmap(&pair.importer, &imported, id), 0);
	assert_int_equal(mappings(render, handle, entries, 4, &count), 0);
	assert_int_equal(count, 2);
	(void)close(fd);
	release(&pair.importer, &imported);
	release(&pair.owner, &bo);
	close_pair(&pair);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin_default, end)
	const struct CMUnitTest tests[] = {
		TEST(handles_are_listed_with_what_they_were_made_of),
		TEST(older_kernels_list_neither_handles_nor_mappings),
		TEST(mappings_of_a_handle_include_those_of_kfd),
	};

	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
