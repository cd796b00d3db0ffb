// SPDX-License-Identifier: GPL-2.0-only
/* Tests through raw ioctls how processes share buffers by the share handles of AMD's out-of-tree
 * driver, and what its CRIU operations do with them. This program plays two KFD processes. It needs
 * a machine with one GPU. */
#include <errno.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sim_test.h"

#define SIZE        65536u
#define IPC_FIELDS  268u /* where they begin in a record */
#define OWNER_FLAGS (RAW_VRAM | KFD_IOC_ALLOC_MEM_FLAGS_COHERENT)

struct ipc_fields {
	uint32_t imported, flags, handle[4], pad;
};

static int begin_dkms(void **state)
{
	sim_write("kernel", "dkms");
	return begin(state);
}

static int end_dkms(void **state)
{
	int ret = end(state);

	sim_write("kernel", "default");
	return ret;
}

static void open_process(const char *task, struct raw_process *process)
{
	sim_write("task", task);
	assert_int_equal(raw_open_acquired(process), 0);
	sim_write("task", "0");
}

static void close_process(struct raw_process *process)
{
	(void)close(process->render[0]);
	(void)close(process->kfd);
}

static struct raw_bo alloc(struct raw_process *process, uint32_t flags)
{
	struct raw_bo bo;

	assert_int_equal(raw_alloc(process, process->gpu[0].gpu_id, flags, SIZE, NULL, &bo), 0);
	return bo;
}

static int import_at(struct raw_process *process, const uint32_t *handle, struct raw_bo *bo)
{
	bo->address = mmap(NULL, SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	bo->size = SIZE;
	return raw_ipc_import(process, process->gpu[0].gpu_id, handle, bo);
}

static void release(struct raw_process *process, struct raw_bo *bo)
{
	assert_int_equal(raw_free(process, bo), 0);
	(void)munmap(bo->address, bo->size);
}

static struct ipc_fields fields_of(const struct saved *saved)
{
	struct ipc_fields fields;

	memcpy(&fields, saved->priv + FIRST_RECORD + IPC_FIELDS, sizeof(fields));
	return fields;
}

static void restore(const char *task, struct saved *saved, struct raw_process *process)
{
	sim_write("task", task);
	assert_int_equal(restore_saved(saved, process), 0);
	sim_write("task", "0");
}

/* Writes through one mapping are seen through the other. */
static void check_shared(int render, uint64_t offset, int other_render, uint64_t other_offset)
{
	char *one = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, render, (off_t)offset);
	char *other = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, other_render,
			   (off_t)other_offset);

	assert_true(one != MAP_FAILED && other != MAP_FAILED);
	one[17] = 0x33;
	assert_int_equal(other[17], 0x33);
	other[18] = 0x44;
	assert_int_equal(one[18], 0x44);
	(void)munmap(one, SIZE);
	(void)munmap(other, SIZE);
}

#define TEST(name) TEST_WITH(name, begin_dkms, end_dkms)

TEST(a_handle_names_the_buffer_for_every_process)
{
	struct raw_process owner, importer;
	uint32_t handle[4], again[4];
	struct raw_bo bo, imported, none;
	struct saved own, other;

	open_process("0", &owner);
	open_process("1", &importer);
	bo = alloc(&owner, OWNER_FLAGS);
	assert_int_equal(raw_ipc_export(&owner, &bo, handle), 0);
	assert_int_equal(raw_ipc_export(&owner, &bo, again), 0);
	assert_memory_equal(again, handle, sizeof(handle));
	assert_int_equal(import_at(&importer, handle, &imported), 0);
	assert_int_equal((uint32_t)imported.handle, 0);
	assert_int_equal(imported.mmap_offset, bo.mmap_offset);
	assert_int_equal(raw_ipc_export(&importer, &imported, again), 0);
	assert_memory_equal(again, handle, sizeof(handle));
	own = save(&owner);
	other = save(&importer);
	assert_int_equal(own.bos[0].alloc_flags, OWNER_FLAGS);
	assert_int_equal(other.bos[0].alloc_flags, OWNER_FLAGS);
	check_shared(owner.render[0], bo.mmap_offset, importer.render[0], imported.mmap_offset);
	again[0] ^= 2;
	assert_int_equal(import_at(&importer, again, &none), -EINVAL);
	(void)munmap(none.address, SIZE);
	/* the name lives as long as a holder */
	release(&owner, &bo);
	bo = alloc(&owner, OWNER_FLAGS);
	assert_int_equal(import_at(&owner, handle, &none), 0);
	release(&owner, &none);
	release(&importer, &imported);
	assert_int_equal(import_at(&owner, handle, &none), -EINVAL);
	(void)munmap(none.address, SIZE);
	release(&owner, &bo);
	close_process(&owner);
	close_process(&importer);
}

TEST(records_of_all_holders_have_the_handle)
{
	static const struct ipc_fields none;
	struct raw_process owner, importer;
	struct ipc_fields own, other;
	struct raw_bo bo, imported;
	struct saved saved;
	uint32_t handle[4];

	open_process("0", &owner);
	open_process("1", &importer);
	bo = alloc(&owner, OWNER_FLAGS);
	saved = save(&owner);
	own = fields_of(&saved);
	assert_memory_equal(&own, &none, sizeof(none));
	assert_int_equal(raw_ipc_export(&owner, &bo, handle), 0);
	assert_int_equal(import_at(&importer, handle, &imported), 0);
	saved = save(&owner);
	own = fields_of(&saved);
	saved = save(&importer);
	other = fields_of(&saved);
	assert_memory_equal(own.handle, handle, sizeof(handle));
	assert_memory_equal(other.handle, handle, sizeof(handle));
	assert_int_equal(own.imported, 0);
	assert_int_equal(other.imported, 1);
	assert_int_equal(own.flags, RAW_IPC_FLAGS);
	assert_int_equal(other.flags, RAW_IPC_FLAGS);
	release(&owner, &bo);
	release(&importer, &imported);
	close_process(&owner);
	close_process(&importer);
}

/* The two processes as they were saved, with an owner and an importer. */
struct saved_pair {
	struct saved owner, importer;
};

static struct saved_pair save_pair(void)
{
	struct raw_process owner, importer;
	struct raw_bo bo, imported;
	struct saved_pair pair;
	uint32_t handle[4];

	open_process("0", &owner);
	open_process("1", &importer);
	bo = alloc(&owner, OWNER_FLAGS);
	assert_int_equal(raw_ipc_export(&owner, &bo, handle), 0);
	assert_int_equal(import_at(&importer, handle, &imported), 0);
	assert_int_equal(raw_map(&importer, &imported, importer.gpu[0].gpu_id), 0);
	pair.owner = save(&owner);
	pair.importer = save(&importer);
	close_process(&owner);
	close_process(&importer);
	(void)munmap(bo.address, SIZE);
	(void)munmap(imported.address, SIZE);
	sim_write("process_exit", "1");
	return pair;
}

TEST(the_first_restored_makes_the_buffer_and_the_others_import_it)
{
	for (int importer_first = 0; importer_first < 2; importer_first++) {
		struct saved_pair pair = save_pair();
		struct saved *first = importer_first ? &pair.importer : &pair.owner;
		struct saved *second = importer_first ? &pair.owner : &pair.importer;
		struct raw_process one, other;
		struct saved saved;

		(void)state;
		restore("0", first, &one);
		restore("1", second, &other);
		assert_int_equal(first->bos[0].restored_offset, second->bos[0].restored_offset);
		check_shared(one.render[0], first->bos[0].restored_offset, other.render[0],
			     second->bos[0].restored_offset);
		/* is_imported stays as it was saved, whichever process has made the buffer */
		saved = save(&one);
		assert_int_equal(saved.bos[0].alloc_flags, OWNER_FLAGS);
		assert_int_equal(fields_of(&saved).imported, importer_first);
		saved = save(&other);
		assert_int_equal(saved.bos[0].alloc_flags, OWNER_FLAGS);
		assert_int_equal(fields_of(&saved).imported, !importer_first);
		close_process(&one);
		close_process(&other);
		sim_write("process_exit", "1");
	}
}
