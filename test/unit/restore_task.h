/* SPDX-License-Identifier: GPL-2.0-only */
/* This process is a restored task, on another machine than its image. Has images made by hand. One
 * test program includes this once. */
#ifndef TEST_UNIT_RESTORE_TASK_H
#define TEST_UNIT_RESTORE_TASK_H

#include "fake_gpu.h"

#include <dlfcn.h>
#include <sys/ptrace.h>

#include "amdgpu_plugin_topology.h"
#include "image/image.h"
#include "image_of_one.h"
#include "restore_hooks.h"

/* Ids of the GPU in the image and here. The machine of the restore is "one-other". */
#define USER_ID      0xbeef
#define OLD_ID       1997
#define NEW_ID       44021
#define OLD_DOORBELL (3ULL << 62 | (uint64_t)OLD_ID << 46)

/* The fake kernel adds this to each offset. */
#define MOVED (1ULL << 40)

#define LOWEST 300

/* The plugin detects the version of CRIU by the size of this table; this one is of CRIU 4.2.1. It
 * is in a library, because the program does not export symbols. The library stays loaded, so tests
 * of an old CRIU come first. */
static struct {
	char directory[64];
	void *table;
} host;

int tests_begin(void **state)
{
	char command[512];

	(void)state;
	(void)strcpy(host.directory, "/tmp/amdgpu-plugin-host-XXXXXX");
	if (!mkdtemp(host.directory))
		return -1;
	(void)snprintf(command, sizeof(command),
		       "echo 'char cr_plugin_ctl[224];' |"
		       " ${CC:-cc} -shared -fPIC -x c -o %s/host.so -",
		       host.directory);
	return system(command);
}

int tests_end(void **state)
{
	char command[128];

	(void)state;
	(void)snprintf(command, sizeof(command), "rm -r %s", host.directory);
	return system(command);
}

static inline int begin_on_an_old_host(void **state)
{
	int ret = fake_gpu_begin(state);

	kernel.machine = "one-other";
	criu_stub.unused_fd = LOWEST;
	/* This process is both CRIU and the task, so it would have to trace itself. */
	unit_print("self-status", "PPid:\t%d\nTracerPid:\t%d\nNSpid:\t%d\n", getppid(), getpid(),
		   getpid());
	(void)add_process(getpid());
	return ret;
}

static inline int begin(void **state)
{
	char path[128];

	(void)snprintf(path, sizeof(path), "%s/host.so", host.directory);
	if (!host.table)
		host.table = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
	return host.table ? begin_on_an_old_host(state) : -1;
}

static CriuKfd *image;

static inline void add_image_bo(uint32_t flags, uint64_t addr, uint64_t size, uint64_t offset)
{
	KfdBoEntry *bo = malloc(sizeof(*bo));

	assert_non_null(bo);
	kfd_bo_entry__init(bo);
	bo->gpu_id = USER_ID;
	bo->alloc_flags = flags;
	bo->addr = addr;
	bo->size = size;
	bo->offset = offset;
	image->bo_entries =
		realloc(image->bo_entries, (image->n_bo_entries + 1) * sizeof(*image->bo_entries));
	assert_non_null(image->bo_entries);
	image->bo_entries[image->n_bo_entries++] = bo;
	image->num_of_bos = image->n_bo_entries;
}

/* The image of this process: the CPU node and the GPU of machine "one", a
 * doorbell and a userptr. */
static inline void make_image(void)
{
	image = new_image_of_one(USER_ID);
	add_image_bo(KFD_BO_DOORBELL, 0x4000, 0x2000, OLD_DOORBELL);
	add_image_bo(KFD_BO_USERPTR, 0x700000, 0x5000, 0);
	image->num_of_objects = 2;
	image->has_num_of_mappings = true;
	image->num_of_mappings = 1;
}

/* What Linux 6.18 saves: records of BOs, whose user memory this process has, and of events. */
static inline void give_private_data(void)
{
	static uint8_t user_memory[1 << 16] __attribute__((aligned(4096)));
	const uint64_t user = (uintptr_t)user_memory;
	const size_t bos = 8 + 8 * (size_t)image->num_of_gpus;
	const size_t events = bos + 272 * image->n_bo_entries;
	uint8_t *data;

	image->priv_data.len = events + 64 * (size_t)image->num_of_objects;
	image->priv_data.data = data = calloc(1, image->priv_data.len);
	assert_non_null(data);
	data[0] = 1;
	for (uint32_t i = 0; i < image->n_bo_entries; i++) {
		memcpy(data + bos + 272 * (size_t)i, &user, sizeof(user));
		memcpy(data + bos + 272 * (size_t)i + 8, &i, sizeof(i));
	}
	for (uint32_t i = 0; i < image->num_of_objects; i++)
		data[events + 64 * (size_t)i] = 1;
}

static inline void write_image(int id)
{
	if (image->num_of_gpus && !image->priv_data.len)
		give_private_data();
	assert_int_equal(image_write_kfd(id, image), 0);
}

static inline void forget_image(void)
{
	if (image)
		criu_kfd__free_unpacked(image, NULL);
	image = NULL;
}

static inline int end(void **state)
{
	forget_image();
	return fake_gpu_end(state);
}

static inline void start_restore(void)
{
	/* This process is both CRIU and the task; test_handoff.c has two processes. */
	assert_int_equal(setenv("AMDGPU_PARALLEL_RESTORE", "0", 1), 0);
	assert_int_equal(CR_PLUGIN_DESC.init(STAGE_RESTORE), 0);
}

/* Saves the image, and begins its restore; the result is that of the hook. */
static inline int restore_image(int id)
{
	write_image(id);
	start_restore();
	return restore_file(id);
}

static inline void end_restore(int result)
{
	CR_PLUGIN_DESC.exit(STAGE_RESTORE, result);
}

static inline unsigned int calls(enum kfd_criu_op op)
{
	return kernel.processes[0].calls[op];
}

/* Descriptors of one open file share their position. */
static inline bool same_open(int a, int b)
{
	return lseek(a, 777, SEEK_SET) == 777 && lseek(b, 0, SEEK_CUR) == 777 &&
	       lseek(a, 0, SEEK_SET) == 0;
}

/* Writes a pages file of @bytes, with words that count up. */
static inline void write_pages(const char *name, uint64_t bytes)
{
	uint64_t *words = malloc(8 + bytes);

	assert_non_null(words);
	words[0] = bytes;
	for (uint64_t i = 1; i <= bytes / 8; i++)
		words[i] = i;
	unit_write(name, words, 8 + bytes);
	free(words);
}

#define TEST(name)          TEST_WITH(name, begin, end)
#define OLD_HOST_TEST(name) TEST_WITH(name, begin_on_an_old_host, end)

#endif
