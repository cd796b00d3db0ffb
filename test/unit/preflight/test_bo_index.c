// SPDX-License-Identifier: GPL-2.0-only
/* Tests which BO has a byte of a render node's offsets. */
#include "host.h"

#include <sys/mman.h>

#include "amdgpu_plugin_topology.h"
#include "kernel/kfd.h"
#include "preflight/bo_index.h"
#include "session/dump_session.h"

#define BO(gpu, flags, at, bytes)                                                        \
	{                                                                                \
		.gpu_id = (gpu), .alloc_flags = (flags), .offset = (at), .size = (bytes) \
	}

static struct topology_node nodes[] = {
	{ .gpu_id = 10, .actual_gpu_id = 10, .drm_render_minor = 129 },
	{ .gpu_id = 20, .actual_gpu_id = 20, .drm_render_minor = 128 },
	{ .gpu_id = 30, .actual_gpu_id = 30, .drm_render_minor = 130 },
};
static struct dump_session session = { .topology = { nodes, 3 } };

/* The process knows each of its two GPUs by the id of the other. */
static struct kfd_device_bucket devices[] = {
	{ .user_gpu_id = 10, .actual_gpu_id = 20 },
	{ .user_gpu_id = 20, .actual_gpu_id = 10 },
};
static struct kfd_bo_bucket bos[] = {
	BO(10, KFD_BO_VRAM, 0x9000, 0x2000),    BO(20, KFD_BO_GTT, 0x9000, 0x1000),
	BO(10, KFD_BO_USERPTR, 0x4000, 0x1000), BO(10, KFD_BO_VRAM, 0x1000, 0x1000),
	BO(10, KFD_BO_GTT, 0xb000, 0x1000),     BO(10, KFD_BO_VRAM, 0x9000, 0x2000),
};
static struct dumped_process make_job(struct kfd_bo_bucket *list, size_t count)
{
	return (struct dumped_process){ .session = &session,
					.state = { .devices = devices,
						   .num_devices = 2,
						   .bos = list,
						   .num_bos = (uint32_t)count } };
}

UNIT_TEST(gpus_are_found_by_the_processs_ids)
{
	const struct dumped_process job = make_job(bos, ARRAY_SIZE(bos));

	assert_ptr_equal(bo_index_gpu_of(&job, 10), &nodes[1]);
	assert_ptr_equal(bo_index_gpu_of(&job, 20), &nodes[0]);
	assert_null(bo_index_gpu_of(&job, 30));
}

UNIT_TEST(partitions_of_a_pci_device_are_one)
{
	static const struct topology_node gpus[] = {
		{ .location_id = 0x6300,
		  .gfx_target_version = TOPOLOGY_GFX940,
		  .drm_render_minor = 128 },
		{ .location_id = 0x6307,
		  .gfx_target_version = TOPOLOGY_GFX940,
		  .drm_render_minor = 129 },
		{ .location_id = 0x6308,
		  .gfx_target_version = TOPOLOGY_GFX940,
		  .drm_render_minor = 130 },
		{ .location_id = 0x6300,
		  .gfx_target_version = TOPOLOGY_GFX940,
		  .domain = 1,
		  .drm_render_minor = 131 },
		/* Kernels that do not report the PCI device. */
		{ .drm_render_minor = 132 },
		{ .drm_render_minor = 133 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(gpus); i++) {
		for (size_t j = 0; j < ARRAY_SIZE(gpus); j++)
			assert_int_equal(topology_pci_device(&gpus[i]) ==
						 topology_pci_device(&gpus[j]),
					 i == j || i + j == 1);
	}
}

/* Other GPUs have no partitions; a virtual machine may show them as functions of one slot. */
UNIT_TEST(functions_of_a_pci_slot_are_devices)
{
	static const struct topology_node gpus[] = {
		{ .location_id = 0x500, .gfx_target_version = 90010 },
		{ .location_id = 0x501, .gfx_target_version = 90010 },
		{ .location_id = 0x502, .gfx_target_version = 110000 },
	};

	assert_int_not_equal(topology_pci_device(&gpus[0]), topology_pci_device(&gpus[1]));
	assert_int_not_equal(topology_pci_device(&gpus[0]), topology_pci_device(&gpus[2]));
}

UNIT_TEST(the_bo_that_has_a_byte_is_found)
{
	static const struct {
		uint32_t render_minor;
		uint64_t offset;
		int index; /* -1: none */
	} cases[] = {
		{ 128, 0, -1 },          { 128, 0xfff, -1 },  { 128, 0x1000, 3 },
		{ 128, 0x1fff, 3 },      { 128, 0x2000, -1 }, { 128, 0x4000, -1 },
		{ 128, 0x8fff, -1 },     { 128, 0x9000, 0 },  { 128, 0xafff, 0 },
		{ 128, 0xb000, 4 },      { 128, 0xbfff, 4 },  { 128, 0xc000, -1 },
		{ 129, 0x8fff, -1 },     { 129, 0x9000, 1 },  { 129, 0x9fff, 1 },
		{ 129, 0xa000, -1 },     { 130, 0x9000, -1 }, { 127, 0x9000, -1 },
		{ 128, UINT64_MAX, -1 },
	};
	struct dumped_process job = make_job(bos, ARRAY_SIZE(bos));
	struct bo_index *index = &job.bo_index;

	assert_int_equal(bo_index_init(&job), 0);
	assert_int_equal(index->count, 5);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct bo_index_entry *place =
			bo_index_find_offset(index, cases[i].render_minor, cases[i].offset);

		print_message("case %zu\n", i);
		assert_int_equal(place ? (int)place->index : -1, cases[i].index);
	}
	bo_index_done(index);
	assert_null(bo_index_find_offset(index, 128, 0x9000));
}

/* One object on two GPUs, and another object. */
UNIT_TEST(a_bo_with_the_same_dma_buf_is_found)
{
	_cleanup_close_ int object = memfd_create("object", MFD_CLOEXEC);
	struct kfd_bo_bucket some[] = {
		BO(10, KFD_BO_VRAM, 0x9000, 0x1000),
		BO(20, KFD_BO_VRAM, 0x5000, 0x1000),
		BO(20, KFD_BO_VRAM, 0x9000, 0x1000),
	};
	struct dumped_process sharer = make_job(some, ARRAY_SIZE(some));
	struct bo_index *index = &sharer.bo_index;
	const struct bo_index_entry *place, *again, *alone;

	some[0].dmabuf_fd = some[2].dmabuf_fd = (uint32_t)object;
	some[1].dmabuf_fd = (uint32_t)memfd_create("other", MFD_CLOEXEC);
	assert_int_equal(bo_index_init(&sharer), 0);
	place = bo_index_find_offset(index, 128, 0x9000);
	again = bo_index_find_offset(index, 129, 0x9000);
	alone = bo_index_find_offset(index, 129, 0x5000);
	assert_int_equal(again->index, 2);
	assert_ptr_equal(bo_index_find_inode(index, again->inode), place);
	assert_int_equal(bo_index_find_inode(index, place->inode)->index, 0);
	assert_ptr_equal(bo_index_find_inode(index, alone->inode), alone);
	assert_null(bo_index_find_inode(index, UINT64_MAX));
	bo_index_done(index);
	(void)close((int)some[1].dmabuf_fd);
	assert_int_equal(bo_index_init(&sharer), -EBADF);
	/* With what that has left. */
	assert_int_equal(bo_index_init(&sharer), -EBADF);
	bo_index_done(index);
}

/* KFD maps some BOs at no address, and two GPUs may have a BO at one address. */
UNIT_TEST(all_bos_at_an_address_are_found)
{
	static const struct {
		uint64_t addr;
		size_t count;
		uint32_t first;
	} cases[] = {
		{ 0, 1, 3 }, { 0x7000, 1, 1 }, { 0x8000, 2, 0 }, { 0x8800, 0, 0 }, { 0x9000, 0, 0 }
	};
	struct kfd_bo_bucket some[] = {
		BO(10, KFD_BO_VRAM, 0x9000, 0x1000),
		BO(20, KFD_BO_VRAM, 0x5000, 0x1000),
		BO(20, KFD_BO_VRAM, 0x9000, 0x1000),
		BO(10, KFD_BO_VRAM, 0x1000, 0x1000),
	};
	struct dumped_process mapped = make_job(some, ARRAY_SIZE(some));
	struct bo_index *index = &mapped.bo_index;

	some[0].addr = some[2].addr = 0x8000;
	some[1].addr = 0x7000;
	assert_int_equal(bo_index_init(&mapped), 0);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		size_t count;
		const struct bo_index_entry *const *found =
			bo_index_find_address(index, cases[i].addr, &count);

		print_message("case %zu\n", i);
		assert_int_equal(count, cases[i].count);
		assert_int_equal(count ? found[0]->index : 0, cases[i].first);
		assert_int_equal(count == 2 ? found[1]->index : 2, 2);
	}
	bo_index_done(index);
}

UNIT_TEST(a_process_without_bos_has_no_entries)
{
	struct dumped_process empty = { .session = &session };
	struct bo_index *index = &empty.bo_index;
	size_t count;

	assert_int_equal(bo_index_init(&empty), 0);
	assert_null(bo_index_find_offset(index, 128, 0));
	(void)bo_index_find_address(index, 0, &count);
	assert_int_equal(count, 0);
	bo_index_done(index);
}
