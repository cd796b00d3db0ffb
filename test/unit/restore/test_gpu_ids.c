// SPDX-License-Identifier: GPL-2.0-only
/* GPUs that come back under another gpu_id: warnings, and refusals where another GPU has the old
 * id. */
#include "host.h"

#include "kernel/kfd.h"
#include "restore/gpu_ids.h"

/* The process knows its GPU by OLD. GPU NEW replaces it, and the machine has a third GPU. */
#define OLD   0x1111
#define NEW   0x2222
#define OTHER 0x3333

/* As libhsakmt makes buffers, and as the driver notes imports. */
#define OWN      (KFD_BO_VRAM | KFD_BO_WRITABLE | 1u << 29)
#define IMPORTED (KFD_BO_VRAM | KFD_BO_WRITABLE | KFD_BO_EXECUTABLE)

static struct {
	struct topology_node saved[2], local[3];
	const struct topology_node *map[2];
	KfdBoEntry bos[4];
	KfdBoEntry *entries[4];
	CriuKfd kfd;
	struct restored_task task;
} fixture;

static void add(uint32_t flags, uint64_t addr)
{
	KfdBoEntry *bo = &fixture.bos[fixture.kfd.n_bo_entries];

	kfd_bo_entry__init(bo);
	bo->gpu_id = OLD;
	bo->alloc_flags = flags;
	bo->addr = addr;
	fixture.entries[fixture.kfd.n_bo_entries++] = bo;
}

/* @third: the gpu_id of the third GPU. */
static void make(uint32_t user_id, uint32_t present_id, uint32_t third)
{
	memset(&fixture, 0, sizeof(fixture));
	criu_kfd__init(&fixture.kfd);
	fixture.kfd.bo_entries = fixture.entries;
	fixture.saved[1].gpu_id = user_id;
	fixture.local[1].gpu_id = present_id;
	fixture.local[2].gpu_id = third;
	fixture.map[1] = &fixture.local[1];
	fixture.task.kfd = &fixture.kfd;
	fixture.task.kfd_id = 5;
	fixture.task.saved = (struct topology){ fixture.saved, ARRAY_SIZE(fixture.saved) };
	fixture.task.local = (struct topology){ fixture.local, ARRAY_SIZE(fixture.local) };
	fixture.task.map.local = fixture.map;
	unit_forget_lines();
}

static void assert_refused(const char *harm)
{
	assert_int_equal(gpu_ids_check(&fixture.task, MMAP_ACTUAL_IDS, false), -EINVAL);
	assert_logged("Error (amdgpu_plugin): ", "0x1111 is now 0x2222", harm, "AMDGPU_FORCE=1");
	unit_forget_lines();
	assert_int_equal(gpu_ids_check(&fixture.task, MMAP_ACTUAL_IDS, true), 0);
	assert_logged("Warn  (amdgpu_plugin): ", "0x1111 is now 0x2222", harm);
	assert_int_equal(unit_count_lines("Error"), 0);
}

UNIT_TEST(an_id_that_stays_is_not_worth_a_line)
{
	make(OLD, OLD, OTHER);
	add(IMPORTED, 0);
	assert_int_equal(gpu_ids_check(&fixture.task, MMAP_ACTUAL_IDS, false), 0);
	assert_int_equal(unit_count_lines("0x1111"), 0);
}

UNIT_TEST(an_id_that_changes_gives_a_warning)
{
	make(OLD, NEW, OTHER);
	add(IMPORTED, 0x1000);
	assert_int_equal(gpu_ids_check(&fixture.task, MMAP_ACTUAL_IDS, false), 0);
	assert_logged("Warn  (amdgpu_plugin): ", "0x1111 is now 0x2222", "export", "first queue");
	/* With doorbells, further queues work. */
	add(KFD_BO_DOORBELL, 0x2000);
	unit_forget_lines();
	assert_int_equal(gpu_ids_check(&fixture.task, MMAP_ACTUAL_IDS, false), 0);
	assert_logged("Warn  (amdgpu_plugin): ", "0x1111 is now 0x2222", "export");
	assert_int_equal(unit_count_lines("first queue"), 0);
	assert_int_equal(unit_count_lines("0x1111"), 1);
}

UNIT_TEST(the_first_queue_may_not_ring_another_gpu)
{
	make(OLD, NEW, OLD);
	add(OWN, 0x1000);
	assert_refused("first queue");
	/* Doorbells of another GPU do not help. */
	add(KFD_BO_DOORBELL, 0x2000);
	fixture.bos[1].gpu_id = OTHER;
	assert_refused("first queue");
	fixture.bos[1].gpu_id = OLD;
	unit_forget_lines();
	assert_int_equal(gpu_ids_check(&fixture.task, MMAP_ACTUAL_IDS, false), 0);
	assert_logged("Warn  (amdgpu_plugin): ", "0x1111 is now 0x2222", "export");
}

UNIT_TEST(shared_memory_may_not_be_exported_from_another_gpu)
{
	make(OLD, NEW, OLD);
	add(KFD_BO_DOORBELL, 0x2000);
	add(IMPORTED, 0x1000);
	assert_refused("export");
	fixture.bos[1].alloc_flags = OWN;
	assert_int_equal(gpu_ids_check(&fixture.task, MMAP_ACTUAL_IDS, false), 0);
	/* The virtual memory API. */
	fixture.bos[1].addr = 0;
	assert_refused("export");
}

/* A kernel that maps doorbells by the id that the process knows. */
UNIT_TEST(a_first_queue_works_where_mmap_takes_the_known_id)
{
	make(OLD, NEW, OLD);
	assert_int_equal(gpu_ids_check(&fixture.task, MMAP_USER_IDS, false), 0);
	assert_logged("Warn  (amdgpu_plugin): ", "0x1111 is now 0x2222", "export");
	assert_int_equal(unit_count_lines("first queue"), 0);
}

UNIT_TEST(ids_that_are_exchanged_are_refused)
{
	make(OLD, NEW, OLD);
	add(KFD_BO_DOORBELL, 0x2000);
	assert_int_equal(gpu_ids_check(&fixture.task, MMAP_UNKNOWN, false), -EINVAL);
	assert_logged("Error (amdgpu_plugin): ", "exchange", "AMDGPU_FORCE=1");
	assert_int_equal(gpu_ids_check(&fixture.task, MMAP_UNKNOWN, true), 0);
	assert_logged("Warn  (amdgpu_plugin): ", "exchange", "Linux 7.2");
}
