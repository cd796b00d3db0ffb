// SPDX-License-Identifier: GPL-2.0-only
/* Which BOs of a dump are one object, which of them makes it, and which sharing is refused. */
#include "host.h"

#include "kernel/kfd.h"
#include "sharing/object_rules.h"
#include "sharing/shared_bos.h"

#define GPU      0x1111
#define OTHER    0x2222
#define SIZE     0x4000
#define OWN      (KFD_BO_VRAM | KFD_BO_WRITABLE | KFD_BO_EXECUTABLE | 1u << 29)
#define IMPORTED (KFD_BO_VRAM | KFD_BO_WRITABLE | KFD_BO_EXECUTABLE)
#define FOREIGN  (KFD_BO_GTT | KFD_BO_WRITABLE | KFD_BO_EXECUTABLE)

/* A list that grows by process and index. */
static struct shared_bo list[16];
static struct shared_handle handles[8];
static struct shared_bos shared;

static int begin(void **state)
{
	(void)state;
	memset(list, 0, sizeof(list));
	shared = (struct shared_bos){ .list = list, .handles = handles };
	return 0;
}

/* Adds the next BO of @process, which is object @object of GPU @gpu_id: it has this inode and an
 * offset that follows from it. */
static struct shared_bo *add_on(size_t process, uint32_t gpu_id, uint32_t object, uint32_t flags)
{
	struct shared_bo *bo = &list[shared.count++];

	*bo = (struct shared_bo){ .process = process,
				  .index = (uint32_t)shared.count,
				  .device = gpu_id,
				  .gpu_id = gpu_id,
				  .alloc_flags = flags,
				  .offset = 0x10000 * object,
				  .size = SIZE,
				  .inode = object };
	return bo;
}

static struct shared_bo *add(size_t process, uint32_t object, uint32_t flags)
{
	return add_on(process, GPU, object, flags);
}

/* Of object @object of GPU @gpu_id; GPU 0: of its dma-buf. */
static void add_handle(size_t process, uint32_t gpu_id, uint32_t object)
{
	handles[shared.num_handles++] =
		(struct shared_handle){ .process = process,
					.name = { .is_inode = !gpu_id,
						  .device = gpu_id,
						  .number = gpu_id ? 0x10000 * object : object } };
}

/* The entry that add() has returned may have moved meanwhile, but the list is sorted again. */
static void assert_object(const struct shared_bo *bo, uint32_t object, size_t owner, bool imported)
{
	assert_null(bo->problem);
	assert_int_equal(bo->object, object);
	assert_int_equal(bo->owner, owner);
	assert_int_equal(bo->imported, imported);
}

static void assert_problem(const struct shared_bo *bo, const char *words)
{
	assert_non_null(bo->problem);
	assert_non_null(strstr(bo->problem, words));
	assert_int_equal(bo->object, 0);
	assert_false(bo->imported);
}

#define TEST(name) TEST_WITH(name, begin, NULL)

/* Fragments of a block are several handles of one object, also in its owner's process. */
TEST(the_entry_with_flags_of_its_own_is_the_owner)
{
	const struct shared_bo *first = add(0, 7, IMPORTED), *alone = add(0, 3, OWN);
	const struct shared_bo *again = add(0, 7, IMPORTED), *second = add(0, 5, OWN);
	const struct shared_bo *owner = add(1, 7, OWN), *own = add(1, 7, IMPORTED);
	const struct shared_bo *importer = add(2, 5, IMPORTED);

	object_rules_apply(&shared);
	assert_object(alone, 0, 0, false);
	assert_object(second, 1, 0, false);
	assert_object(importer, 1, 0, true);
	assert_object(owner, 2, 1, false);
	assert_object(first, 2, 1, true);
	assert_object(again, 2, 1, true);
	assert_object(own, 2, 1, true);
	assert_int_equal(shared.num_objects, 2);
	for (size_t i = 0; i < shared.count; i++)
		assert_false(list[i].recreated || list[i].has_external_holder || list[i].outside);
}

TEST(an_offset_means_nothing_on_another_device)
{
	const struct shared_bo *one = add_on(0, GPU, 4, OWN), *two = add_on(1, OTHER, 4, IMPORTED);

	list[1].inode = 99;
	object_rules_apply(&shared);
	assert_object(one, 0, 0, false);
	assert_object(two, 0, 0, false);
}

/* The object of the second PCI device has an offset of its own, which all imports there share. */
TEST(imports_on_another_device_are_the_object_of_their_dmabuf)
{
	const struct shared_bo *first = add_on(0, OTHER, 9, FOREIGN), *own = add_on(1, GPU, 4, OWN);
	const struct shared_bo *near = add_on(1, GPU, 4, IMPORTED);
	const struct shared_bo *far = add_on(2, OTHER, 9, FOREIGN),
			       *alone = add_on(2, OTHER, 4, OWN);

	for (size_t i = 0; i < 4; i++)
		list[i].inode = 7;
	object_rules_apply(&shared);
	assert_object(own, 1, 1, false);
	assert_object(near, 1, 1, true);
	assert_object(first, 1, 1, true);
	assert_object(far, 1, 1, true);
	assert_object(alone, 0, 0, false);
	assert_int_equal(shared.num_objects, 1);
	assert_true(first->on_other_device && far->on_other_device);
	assert_false(own->on_other_device || near->on_other_device);
}

/* Partitions of a PCI device have the object itself. */
TEST(an_import_on_another_partition_is_the_object)
{
	const struct shared_bo *own = add(0, 4, OWN), *import = add(1, 4, IMPORTED);

	list[1].gpu_id = OTHER;
	object_rules_apply(&shared);
	assert_object(own, 1, 0, false);
	assert_object(import, 1, 0, true);
	assert_false(import->on_other_device);
}

/* The kernel may return the dma-buf of another BO. One of the two imports would become a copy. */
TEST(entries_of_one_offset_with_different_dmabufs_are_refused)
{
	(void)add_on(0, GPU, 1, OWN);
	(void)add_on(1, OTHER, 2, FOREIGN);
	(void)add_on(2, OTHER, 2, FOREIGN);
	list[1].inode = 1;
	object_rules_apply(&shared);
	for (size_t i = 0; i < 3; i++)
		assert_problem(&list[i], "different dma-bufs");
	assert_int_equal(shared.num_objects, 0);
}

TEST(sharing_that_cannot_be_restored_has_a_cause)
{
	static const struct {
		uint32_t flags[2], devices[2];
		uint64_t sizes[2], offsets[2], inodes[2];
		const char *words;
	} cases[] = {
		{ { OWN, OWN }, { GPU, GPU }, { 1, 1 }, { 1, 1 }, { 1, 1 }, "look like its owner" },
		{ { IMPORTED, IMPORTED }, { GPU, GPU }, { 1, 1 }, { 1, 1 }, { 1, 1 }, "not in" },
		{ { OWN, IMPORTED }, { GPU, GPU }, { 1, 2 }, { 1, 1 }, { 1, 1 }, "sizes differ" },
		{ { OWN, FOREIGN }, { GPU, OTHER }, { 1, 2 }, { 1, 2 }, { 1, 1 }, "sizes differ" },
		{ { OWN, OWN }, { GPU, OTHER }, { 1, 1 }, { 1, 2 }, { 1, 1 }, "look like its" },
		{ { FOREIGN, IMPORTED }, { GPU, OTHER }, { 1, 1 }, { 1, 2 }, { 1, 1 }, "several" },
		{ { OWN, IMPORTED }, { GPU, GPU }, { 1, 1 }, { 1, 2 }, { 1, 1 }, "another BO" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		print_message("%s\n", cases[i].words);
		(void)begin(NULL);
		for (size_t j = 0; j < 2; j++) {
			struct shared_bo *bo = add_on(j, cases[i].devices[j], 1, cases[i].flags[j]);

			bo->size = cases[i].sizes[j] * SIZE;
			bo->offset = cases[i].offsets[j];
			bo->inode = cases[i].inodes[j];
		}
		object_rules_apply(&shared);
		assert_problem(&list[0], cases[i].words);
		assert_problem(&list[1], cases[i].words);
		assert_int_equal(shared.num_objects, 0);
	}
}

/* Numbers of references that the kernel counts for two importers, at the scan of the second: each
 * BO and each of two descriptors has one, the object and KFD's own file may have one each. */
TEST(an_importer_adopts_a_buffer_that_nothing_else_holds)
{
	const struct shared_bo *first = add(0, 1, IMPORTED), *second = add(1, 1, IMPORTED);
	const struct shared_bo *alone = add(1, 2, IMPORTED);

	list[1].references = 4;
	list[2].references = 2;
	object_rules_apply(&shared);
	assert_object(first, 1, 0, false);
	assert_object(second, 1, 0, true);
	assert_true(first->recreated);
	assert_false(second->recreated);
	assert_object(alone, 0, 0, false);
	assert_true(alone->recreated);
}

/* ROCr imports host memory without a BO of KFD. */
TEST(a_buffer_that_another_process_has_a_handle_of_is_shared)
{
	const struct shared_bo *by_offset = add(0, 1, OWN), *by_inode = add(0, 2, OWN);
	const struct shared_bo *own = add(0, 3, OWN), *other_device = add_on(0, OTHER, 4, OWN);

	add_handle(1, GPU, 4);
	add_handle(1, GPU, 1);
	add_handle(0, GPU, 3);
	add_handle(1, 0, 2);
	object_rules_apply(&shared);
	assert_object(by_offset, 1, 0, false);
	assert_object(by_inode, 2, 0, false);
	assert_object(own, 0, 0, false);
	assert_object(other_device, 0, 0, false);
	assert_int_equal(shared.num_objects, 2);
}

/* The kernel counts two BOs, two descriptors, the object and KFD's file, and what a handle holds.
 */
TEST(handles_of_all_processes_are_known_holders)
{
	static const struct {
		uint32_t gpu_id;
		uint64_t most;
	} cases[] = { { GPU, 2 + 2 + 2 + 1 }, { 0, 2 + 2 + 2 + 3 } };

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		for (unsigned int outside = 0; outside < 2; outside++) {
			(void)begin(NULL);
			(void)add(0, 1, IMPORTED);
			add(1, 1, IMPORTED)->references = cases[i].most + outside;
			add_handle(0, cases[i].gpu_id, 1);
			add_handle(1, GPU, 2);
			add_handle(1, OTHER, 1);
			object_rules_apply(&shared);
			print_message("case %zu, %u outside\n", i, outside);
			assert_int_equal(list[0].has_external_holder, outside);
		}
	}
}

TEST(a_buffer_of_a_process_outside_is_refused)
{
	(void)add(0, 1, IMPORTED);
	add(1, 1, IMPORTED)->references = 7;
	add(1, 2, IMPORTED)->references = 3;
	object_rules_apply(&shared);
	for (size_t i = 0; i < shared.count; i++) {
		assert_problem(&list[i], "more holders");
		assert_true(list[i].outside && list[i].has_external_holder);
		assert_false(list[i].recreated);
	}
}

TEST(an_owner_with_unknown_holders_still_shares)
{
	const struct shared_bo *owner = add(0, 1, OWN), *importer = add(1, 1, IMPORTED);

	list[1].references = 7;
	object_rules_apply(&shared);
	assert_object(owner, 1, 0, false);
	assert_object(importer, 1, 0, true);
	assert_true(owner->has_external_holder && importer->has_external_holder);
	assert_false(owner->outside || importer->outside);
}

TEST(a_bo_is_found_by_process_and_index)
{
	(void)add(0, 9, OWN);
	(void)add(0, 8, OWN);
	(void)add(1, 1, OWN);
	object_rules_apply(&shared);
	assert_int_equal(list[0].inode, 9);
	assert_int_equal(list[1].inode, 8);
	assert_int_equal(list[2].inode, 1);
	assert_true(object_rules_compare(&list[0], &list[1]) < 0);
	assert_true(object_rules_compare(&list[2], &list[1]) > 0);
	assert_int_equal(object_rules_compare(&list[2], &list[2]), 0);
}

/* What AMD's driver says of it. @handle 0: it has no share handle. */
static void describe(struct shared_bo *bo, bool imported, uint32_t handle)
{
	bo->ipc = (struct kfd_priv_ipc){ .is_known = true, .is_imported = imported };
	if (handle)
		memcpy(bo->ipc.handle, (uint32_t[]){ handle, 0, 0, 1 }, sizeof(bo->ipc.handle));
}

/* AMD's driver gives imports the flags of the owner, and says which entry made a BO with a handle.
 */
TEST(the_driver_names_the_owner_of_a_share_handle)
{
	struct shared_bo *first = add(0, 7, OWN), *by_dmabuf = add(0, 5, OWN);
	struct shared_bo *owner = add(1, 7, OWN), *other = add(1, 5, OWN);
	struct shared_bo *last = add(2, 7, OWN), *gone = add(2, 3, OWN);
	struct shared_bo *also_gone = add(3, 3, OWN);

	describe(first, true, 0x100);
	describe(owner, false, 0x100);
	describe(last, true, 0x100);
	describe(by_dmabuf, false, 0);
	describe(other, false, 0x200);
	describe(gone, true, 0x300);
	describe(also_gone, true, 0x300);
	gone->references = also_gone->references = 7;
	object_rules_apply(&shared);
	assert_object(first, 3, 1, true);
	assert_object(last, 3, 1, true);
	assert_object(owner, 3, 1, false);
	for (size_t i = 0; i < shared.count; i++) {
		assert_int_equal(list[i].by_share_handle, list[i].inode != 5);
		assert_false(list[i].recreated);
	}
	assert_object(by_dmabuf, 2, 1, true);
	/* no entry is the owner's: the first one makes it */
	assert_object(gone, 1, 2, false);
	assert_object(also_gone, 1, 2, true);
}

/* By dma-bufs the driver does not name the owner. */
TEST(the_first_of_equal_entries_makes_a_buffer_of_amds_driver)
{
	struct shared_bo *first = add(0, 7, OWN), *foreign = add_on(0, OTHER, 9, FOREIGN);
	struct shared_bo *second = add(1, 7, OWN), *strange = add(2, 5, OWN);
	struct shared_bo *stranger = add(3, 5, OWN | 1u << 28);

	for (size_t i = 0; i < shared.count; i++)
		describe(&list[i], false, 0);
	foreign->inode = 7;
	object_rules_apply(&shared);
	assert_object(first, 1, 0, false);
	assert_object(second, 1, 0, true);
	assert_object(foreign, 1, 0, true);
	assert_true(foreign->on_other_device);
	assert_problem(strange, "several processes look like its owner");
	assert_problem(stranger, "several processes look like its owner");
	/* Linux gives imports other flags */
	(void)begin(state);
	first = add(0, 7, OWN);
	(void)add(1, 7, OWN);
	object_rules_apply(&shared);
	assert_problem(first, "several processes look like its owner");
}

/* Each of them has one reference more than the dump knows. */
TEST(an_owner_outside_shows_in_the_record_or_in_the_holders)
{
	struct shared_bo *handle = add(0, 3, OWN), *dmabuf = add(0, 4, OWN);
	struct shared_bo *owner = add(0, 5, OWN), *mapped = add(0, 6, OWN);

	describe(handle, true, 0x100);
	describe(dmabuf, false, 0);
	describe(owner, false, 0x200);
	describe(mapped, true, 0x300);
	handle->references = owner->references = 6;
	dmabuf->references = 5;
	/* a GPU may have attached it, or the owner outside may hold it */
	mapped->references = 6;
	mapped->attachments = 1;
	object_rules_apply(&shared);
	assert_true(handle->outside && dmabuf->outside && mapped->outside);
	assert_problem(handle, "more holders than the dump knows");
	assert_problem(mapped, "more holders than the dump knows");
	assert_problem(dmabuf, "the driver does not report the owner");
	assert_true(owner->has_external_holder);
	assert_false(owner->outside);
	assert_null(owner->problem);
}

/* This kernel does not count holders, or a process may join the dump later. */
TEST(a_share_handle_without_its_owner_is_refused)
{
	struct shared_bo *alone = add(0, 3, OWN), *known = add(0, 4, OWN);

	describe(alone, true, 0x100);
	describe(known, false, 0x200);
	object_rules_apply(&shared);
	assert_problem(alone, "its owner is not in the dump");
	assert_object(known, 0, 0, false);
}

TEST(what_has_not_one_share_handle_is_imported_by_dmabufs)
{
	static const struct {
		uint32_t handle, gpu_id;
		bool named;
	} cases[] = {
		{ 0x100, GPU, true },
		{ 0x200, GPU, false },
		{ 0x100, OTHER, false },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct shared_bo *owner, *import;

		(void)begin(state);
		owner = add(0, 7, OWN);
		import = add(1, 7, OWN);
		describe(owner, false, 0x100);
		describe(import, true, cases[i].handle);
		import->gpu_id = cases[i].gpu_id;
		object_rules_apply(&shared);
		assert_object(import, 1, 0, true);
		assert_int_equal(owner->by_share_handle, cases[i].named);
		assert_int_equal(import->by_share_handle, cases[i].named);
	}
}

#define BO(p, dev, off, ino, obj)                                                                 \
	{                                                                                         \
		.process = (p), .device = (dev), .offset = (off), .inode = (ino), .object = (obj) \
	}

/* An owner and two importers, one of them on another device; the second object of an offset on
 * another device; a BO that nothing shares, and one that cannot be restored. */
static struct shared_bo named[] = {
	BO(0, 1, 0x1000, 11, 1), BO(1, 1, 0x1000, 11, 1), BO(2, 2, 0x7000, 11, 1),
	BO(2, 2, 0x1000, 12, 2), BO(3, 1, 0x2000, 13, 0), BO(3, 1, 0x3000, 14, 3),
};

static const struct {
	struct bo_name name;
	int index; /* -1: none */
} names[] = {
	{ { .device = 1, .number = 0x1000 }, 0 },
	{ { .device = 2, .number = 0x1000 }, 3 },
	{ { .device = 2, .number = 0x7000 }, 2 },
	{ { .device = 1, .number = 0x7000 }, -1 },
	{ { .device = 1, .number = 0x1001 }, -1 },
	{ { .device = 1, .number = 0x2000 }, -1 },
	{ { .device = 1, .number = 0x3000 }, -1 },
	{ { .is_inode = true, .number = 11 }, 0 },
	{ { .is_inode = true, .number = 12 }, 3 },
	{ { .is_inode = true, .number = 13 }, -1 },
	{ { .is_inode = true, .number = 14 }, -1 },
	{ { .is_inode = true, .number = 0x1000 }, -1 },
	{ { .device = 3, .number = UINT64_MAX }, -1 },
	{ { .is_inode = true, .number = 0 }, -1 },
};

UNIT_TEST(a_name_is_that_of_the_first_bo_of_its_object)
{
	struct shared_bos job = { .list = named, .count = ARRAY_SIZE(named) };

	named[5].problem = "its sizes differ";
	assert_null(object_rules_find(&job, &names[0].name));
	assert_int_equal(object_rules_name_objects(&job), 0);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		print_message("case %zu\n", i);
		assert_ptr_equal(object_rules_find(&job, &names[i].name),
				 names[i].index < 0 ? NULL : &named[names[i].index]);
	}
	free(job.objects);
}
