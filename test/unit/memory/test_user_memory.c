// SPDX-License-Identifier: GPL-2.0-only
/* Memory that GPUs use, and that the restored process lacks: the driver would start the queues. */
#include "restore_task.h"

#include "kernel/kfd_priv.h"
#include "memory/restore_shared.h"
#include "memory/user_memory.h"

#define BO_RECORD  272
#define SVM_RECORD (24 + 8 * 5)
#define PAGES      4

static struct {
	size_t page;
	char *memory;
} user;

/* The private data of one GPU, the two BOs of make_image(), and an SVM range of the last two pages.
 * @user_addr: of the userptr BO. */
static void fill_private_data(uint64_t user_addr)
{
	const size_t bos = 8 + 8, svm = bos + BO_RECORD * image->n_bo_entries;
	const uint64_t first = (uintptr_t)user.memory / user.page + PAGES - 2, pages = 2;
	uint8_t *data = calloc(1, svm + SVM_RECORD);

	assert_non_null(data);
	data[0] = 1;
	memcpy(data + bos + BO_RECORD, &user_addr, sizeof(user_addr));
	data[bos + BO_RECORD + 8] = 1; /* its handle */
	data[svm] = 2;
	memcpy(data + svm + 8, &first, sizeof(first));
	memcpy(data + svm + 16, &pages, sizeof(pages));
	free(image->priv_data.data);
	image->priv_data.data = data;
	image->priv_data.len = svm + SVM_RECORD;
	image->num_of_objects = 1;
}

/* The userptr BO has the first two pages, and begins inside of the first. */
static int restore_task(void)
{
	user.page = (size_t)sysconf(_SC_PAGESIZE);
	user.memory = mmap(NULL, PAGES * user.page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(user.memory, MAP_FAILED);
	make_image();
	image->bo_entries[1]->size = 2 * user.page;
	fill_private_data((uintptr_t)user.memory + 64);
	write_image(5);
	start_restore();
	return restore_file(5);
}

static int force_restore_task(void)
{
	int fd;

	assert_int_equal(setenv("AMDGPU_FORCE", "1", 1), 0);
	fd = restore_task();
	assert_int_equal(unsetenv("AMDGPU_FORCE"), 0);
	return fd;
}

static void lose_page(size_t number)
{
	assert_int_equal(munmap(user.memory + number * user.page, user.page), 0);
}

static const char *text_of_range(size_t first, size_t end)
{
	static char text[64];

	(void)snprintf(text, sizeof(text), "0x%llx-0x%llx",
		       (unsigned long long)(uintptr_t)user.memory + first * user.page,
		       (unsigned long long)(uintptr_t)user.memory + end * user.page);
	return text;
}

TEST(queues_start_if_all_memory_is_there)
{
	_cleanup_close_ int fd = restore_task();

	assert_true(fd >= 0);
	assert_int_equal(resume(getpid()), 0);
	assert_int_equal(calls(KFD_RESUME), 1);
	assert_int_equal(munmap(user.memory, PAGES * user.page), 0);
	end_restore(0);
}

/* Page 1 is of the userptr BO, and page 2 of the SVM range. */
TEST(a_task_without_memory_that_gpus_use_is_killed)
{
	for (size_t page = 1; page < 3; page++) {
		_cleanup_close_ int fd = restore_task();

		assert_true(fd >= 0);
		lose_page(page);
		kernel.killed = 0;
		assert_int_equal(resume(getpid()), -EFAULT);
		assert_int_equal(kernel.killed, getpid());
		assert_int_equal(calls(KFD_RESUME), 0);
		assert_logged("Error (amdgpu_plugin): ", text_of_range(page, page + 1));
		assert_int_equal(unit_count_errors(), 1);
		assert_int_equal(munmap(user.memory, PAGES * user.page), 0);
		end_restore(-1);
		unit_forget_lines();
		kernel.processes[0].calls[KFD_RESTORE] = 0;
		forget_image();
	}
}

/* Private data with @count userptr BOs of a page each, and a gap after every third. */
static struct kfd_priv make_many(uint32_t count, struct kfd_bo_bucket *bos)
{
	struct kfd_priv priv = {
		.bytes = calloc(1, 16 + (size_t)BO_RECORD * count),
		.size = 16 + (uint64_t)BO_RECORD * count,
		.num_devices = 1,
		.num_bos = count,
	};

	assert_non_null(priv.bytes);
	((uint8_t *)priv.bytes)[0] = 1;
	for (uint32_t i = 0; i < count; i++) {
		const uint64_t address = (1ULL << 32) + (i + i / 3) * 4096ULL;
		uint8_t *record = (uint8_t *)priv.bytes + 16 + (size_t)BO_RECORD * i;

		memcpy(record, &address, sizeof(address));
		record[8] = 1;
		bos[i] = (struct kfd_bo_bucket){ .size = 4096, .alloc_flags = KFD_BO_USERPTR };
	}
	priv.layout = kfd_priv_parse(&priv);
	return priv;
}

static uint32_t note(struct restore_shared *shared, uint32_t count)
{
	struct kfd_bo_bucket *bos = calloc(count, sizeof(*bos));
	const struct kfd_priv priv = make_many(count, bos);
	const struct kfd_state state = { .bos = bos, .num_bos = count };
	struct restore_session session = { .shared = shared };
	struct proc_range range;
	uint32_t noted = 0;
	pid_t vpid;

	session.task.vpid = 42;
	assert_int_equal(user_memory_note(&session, &priv, &state), 0);
	while (!restore_shared_get_range(shared, noted, &vpid, &range)) {
		assert_int_equal(vpid, 42);
		noted++;
	}
	free((void *)priv.bytes);
	free(bos);
	return noted;
}

/* The table has room for 1,048,576 ranges of all tasks. */
TEST(neighbours_are_one_range)
{
	struct restore_shared *shared;

	assert_int_equal(restore_shared_new(&shared), 0);
	assert_int_equal(note(shared, 1), 1);
	restore_shared_free(shared);
	assert_int_equal(restore_shared_new(&shared), 0);
	assert_int_equal(note(shared, 1200000), 400000);
	assert_int_equal(unit_count_lines("Warn"), 0);
	/* Without neighbours, a check that lacks some of the memory is better than no restore. */
	for (uint32_t i = 400000; i < 1 << 20; i++)
		assert_int_equal(
			restore_shared_add_range(shared, 42, (struct proc_range){ 0, 4096 }), 0);
	assert_int_equal(note(shared, 3), 1 << 20);
	assert_int_equal(unit_count_lines("cannot check all memory that its GPUs use"), 1);
	restore_shared_free(shared);
}

/* AMDGPU_FORCE does not help: the memory would come later, when the GPU has missed it. */
TEST(a_task_with_lazy_memory_is_killed)
{
	_cleanup_close_ int fd = force_restore_task();

	assert_true(fd >= 0);
	unit_print("smaps", "7f0000000000-7f0000001000 rw-p 00000000 00:00 0\n"
			    "VmFlags: rd wr mr mw me um ac sd\n");
	kernel.killed = 0;
	assert_int_equal(resume(getpid()), -EIO);
	assert_int_equal(kernel.killed, getpid());
	assert_int_equal(calls(KFD_RESUME), 0);
	assert_logged("Error (amdgpu_plugin): ", "restore without --lazy-pages");
	assert_int_equal(munmap(user.memory, PAGES * user.page), 0);
	end_restore(-1);
}

TEST(force_starts_the_queues_all_the_same)
{
	_cleanup_close_ int fd = force_restore_task();

	assert_true(fd >= 0);
	lose_page(1);
	assert_int_equal(resume(getpid()), 0);
	assert_int_equal(calls(KFD_RESUME), 1);
	assert_logged("Warn  (amdgpu_plugin): ", text_of_range(1, 2));
	assert_int_equal(munmap(user.memory, PAGES * user.page), 0);
	end_restore(0);
}
