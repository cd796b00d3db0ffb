// SPDX-License-Identifier: GPL-2.0-only
/* Imports of shared BOs under their old handles, by a KFD that only gives out handles. */
#include "host.h"

#include <stdarg.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include "criu/host.h"
#include "image/image_priv.h"
#include "kernel/kfd.h"
#include "memory/mappings.h"
#include "memory/restore_shared.h"
#include "sharing/imports.h"

/* The process knows its GPUs by the ids of another machine. */
#define GPUS           2
#define BOS            8
#define NUMBERS        64
#define RECORD         80
#define DMABUF         0x4000
#define VPID           100
#define OWNER          200
#define MARK           0x80000000u
#define ADDRESS(index) (0x700000000000ull + ((uint64_t)(index) << 20))

static const uint32_t user_ids[GPUS] = { 0x1111, 0x2222 };
static const uint32_t local_ids[GPUS] = { 0xaaaa, 0xbbbb };

/* KFD gives out the lowest free number of each GPU. */
static struct {
	bool used[GPUS][NUMBERS];
	unsigned int fillers, imports, frees, maps;
	uint64_t imported[BOS], addresses[BOS];
	off_t sizes[BOS];
	struct kfd_map_args mapped[BOS];
	uint32_t mapped_ids[BOS][GPUS];
	/* The import of this number gets a handle that is too high; 0: none does. */
	unsigned int strange_import;
	unsigned int strange_filler;
	unsigned int failing_import;
} kfd;

static unsigned int gpu_of(uint32_t user_id)
{
	assert_true(user_id == user_ids[0] || user_id == user_ids[1]);
	return user_id == user_ids[1];
}

static uint64_t take_number(uint32_t user_id, bool strange)
{
	bool *used = kfd.used[gpu_of(user_id)];
	uint32_t number = 0;

	while (used[number] || (strange && !used[number + 1] && number < 40))
		number++;
	assert_true(number < NUMBERS);
	used[number] = true;
	return KFD_HANDLE(user_id, number);
}

static int import(struct kfd_import_args *args)
{
	unsigned int index = kfd.imports++;

	if (kfd.imports == kfd.failing_import)
		return ENOMEM;
	args->handle = take_number(args->gpu_id, kfd.imports == kfd.strange_import);
	kfd.imported[index] = args->handle;
	kfd.addresses[index] = args->va_addr;
	kfd.sizes[index] = lseek((int)args->dmabuf_fd, 0, SEEK_END);
	return 0;
}

static int map(const struct kfd_map_args *args)
{
	assert_true(args->num_gpus <= GPUS);
	memcpy(kfd.mapped_ids[kfd.maps], (void *)(uintptr_t)args->gpu_ids,
	       args->num_gpus * sizeof(uint32_t));
	kfd.mapped[kfd.maps++] = *args;
	return 0;
}

static int alloc(struct kfd_alloc_args *args)
{
	kfd.fillers++;
	assert_int_equal(args->va_addr, 0);
	args->handle = take_number(args->gpu_id, kfd.fillers == kfd.strange_filler);
	return 0;
}

static int release(uint64_t handle)
{
	bool *used = &kfd.used[gpu_of((uint32_t)(handle >> 32))][(uint32_t)handle];

	kfd.frees++;
	assert_true(*used);
	*used = false;
	return 0;
}

int ioctl(int fd, unsigned long request, ...)
{
	va_list arguments;
	void *argument;

	(void)fd;
	va_start(arguments, request);
	argument = va_arg(arguments, void *);
	va_end(arguments);
	switch (request) {
	case KFD_IOC_IMPORT_DMABUF:
		errno = import(argument);
		return errno ? -1 : 0;
	case KFD_IOC_MAP_MEMORY:
		return map(argument);
	case KFD_IOC_ALLOC_MEMORY:
		return alloc(argument);
	case KFD_IOC_FREE_MEMORY:
		return release(*(uint64_t *)argument);
	default:
		fail();
		return -1;
	}
}

/* A task with its image, as restore_kfd() has it. */
static struct {
	struct restore_session session;
	struct topology_node saved[GPUS], local[GPUS];
	const struct topology_node *map[GPUS];
	struct kfd_bo_bucket bos[BOS];
	struct kfd_state state;
	/* RESTORE imports the second BO. */
	bool is_joined;
	uint8_t *records;
} task;

static void make_image(size_t num_bos)
{
	CriuKfd *image = calloc(1, sizeof(*image));
	size_t size = 8 + RECORD * num_bos;

	criu_kfd__init(image);
	image->bo_entries = calloc(num_bos, sizeof(*image->bo_entries));
	image->n_bo_entries = num_bos;
	image->num_of_bos = (uint32_t)num_bos;
	image->priv_data.data = calloc(1, size);
	image->priv_data.len = size;
	memcpy(image->priv_data.data, (uint32_t[]){ 1 | MARK }, 4);
	task.records = image->priv_data.data + 8;
	task.session.task.kfd = image;
}

static int begin(void **state)
{
	if (unit_begin(state) < 0 || restore_shared_new(&task.session.shared) < 0)
		return -1;
	memset(&kfd, 0, sizeof(kfd));
	for (size_t i = 0; i < GPUS; i++) {
		task.saved[i] = (struct topology_node){ .gpu_id = user_ids[i],
							.actual_gpu_id = user_ids[i],
							.drm_render_minor = 128 + (uint32_t)i };
		task.local[i] = (struct topology_node){ .gpu_id = local_ids[i],
							.actual_gpu_id = local_ids[i],
							.drm_render_minor = 130 + (uint32_t)i };
		task.map[i] = &task.local[i];
	}
	task.session.task.saved = (struct topology){ task.saved, GPUS };
	task.session.task.local = (struct topology){ task.local, GPUS };
	task.session.task.map.local = task.map;
	task.session.task.vpid = VPID;
	task.session.task.kfd_id = 5;
	return 0;
}

static int end(void **state)
{
	imports_done(&task.session.task);
	criu_kfd__free_unpacked(task.session.task.kfd, NULL);
	mappings_done(&task.session.task.mappings);
	restore_shared_free(task.session.shared);
	for (uint32_t i = 0; i < task.state.num_bos; i++)
		(void)close((int)task.bos[i].dmabuf_fd);
	memset(&task, 0, sizeof(task));
	criu_stub_close_stored();
	return unit_end(state);
}

/* For the next case of a test. */
static void begin_again(void **state)
{
	assert_int_equal(end(state), 0);
	assert_int_equal(begin(state), 0);
}

/* Sets BO @index of the image. @object 0: no object; @owner 0: the task makes it. */
static void set_bo(size_t index, unsigned int gpu, uint32_t number, uint32_t object, pid_t owner)
{
	KfdBoEntry *bo = malloc(sizeof(*bo));

	kfd_bo_entry__init(bo);
	bo->gpu_id = user_ids[gpu];
	bo->addr = ADDRESS(index);
	bo->size = DMABUF;
	bo->offset = 0x10000 * index;
	bo->has_object = object > 0;
	bo->object = object;
	bo->has_owner_pid = owner > 0;
	bo->owner_pid = (uint32_t)owner;
	task.session.task.kfd->bo_entries[index] = bo;
	memcpy(task.records + RECORD * index + 8, &number, sizeof(number));
	memcpy(task.records + RECORD * index + 12, &user_ids[gpu], sizeof(user_ids[gpu]));
}

static int make_dmabuf(off_t size)
{
	int fd = memfd_create("dmabuf", MFD_CLOEXEC);

	assert_int_equal(ftruncate(fd, size), 0);
	return fd;
}

/* Another task publishes an object of its GPU @saved, which is GPU @gpu here. */
static void publish_elsewhere_on(uint32_t number, unsigned int saved, unsigned int gpu, off_t size)
{
	_cleanup_close_ int fd = make_dmabuf(size);
	const struct object object = {
		.store_id = host_store_fd(fd),
		.gpu = { local_ids[gpu], topology_pci_device(&task.local[gpu]) },
		.saved_gpu = { user_ids[saved], topology_pci_device(&task.saved[saved]) },
		.mmap_offset = 0x5000000,
	};

	assert_true(object.store_id >= 0);
	assert_int_equal(restore_shared_publish(task.session.shared, number, &object), 0);
}

static void publish_elsewhere(uint32_t number, unsigned int gpu, off_t size)
{
	publish_elsewhere_on(number, gpu, gpu, size);
}

/* RESTORE makes what is left in the image, under its old handles. */
static void rebuild(void)
{
	const CriuKfd *image = task.session.task.kfd;

	for (size_t i = 0; i < image->n_bo_entries; i++) {
		uint32_t number;

		memcpy(&number, image->priv_data.data + 8 + RECORD * i + 8, sizeof(number));
		kfd.used[gpu_of(image->bo_entries[i]->gpu_id)][number] = true;
		task.bos[i] = (struct kfd_bo_bucket){ .addr = image->bo_entries[i]->addr,
						      .gpu_id = image->bo_entries[i]->gpu_id,
						      .size = DMABUF,
						      .restored_offset = 0x9000000,
						      .dmabuf_fd = (uint32_t)make_dmabuf(DMABUF) };
	}
	/* The driver has imported the second BO. */
	if (task.is_joined)
		assert_true(dup2((int)task.bos[0].dmabuf_fd, (int)task.bos[1].dmabuf_fd) >= 0);
	task.state.bos = task.bos;
	task.state.num_bos = (uint32_t)image->n_bo_entries;
}

static void take(void)
{
	task.session.task.layout = image_priv_of(task.session.task.kfd).layout;
	assert_int_equal(imports_take(&task.session.task), 0);
}

static int restore(void)
{
	take();
	rebuild();
	return imports_restore(&task.session, -1, &task.state);
}

/* Own BOs have 3 and 0 of the first GPU, imports 6, 1 and 4 of it, and 2 of the second. */
static void make_holes(void)
{
	make_image(6);
	set_bo(0, 0, 6, 1, OWNER);
	set_bo(1, 0, 3, 0, 0);
	set_bo(2, 1, 2, 3, OWNER);
	set_bo(3, 0, 1, 2, OWNER);
	set_bo(4, 0, 0, 0, 0);
	set_bo(5, 0, 4, 1, OWNER);
	publish_elsewhere(1, 0, DMABUF);
	publish_elsewhere(2, 0, DMABUF);
	publish_elsewhere(3, 1, DMABUF);
}

#define TEST(name) TEST_WITH(name, begin, end)

/* Each handle of several, and each filler, is compared. */
TEST(another_handle_fails_the_restore)
{
	for (unsigned int i = 1; i <= 4; i++) {
		print_message("import %u\n", i);
		make_holes();
		kfd.strange_import = i;
		assert_int_equal(restore(), -EEXIST);
		assert_logged("Error (amdgpu_plugin): kfd 5: handle ", " would be ");
		assert_int_equal(unit_count_errors(), 1);
		assert_int_equal(kfd.imports, i);
		assert_int_equal(kfd.frees, kfd.fillers);
		begin_again(state);
	}
	make_holes();
	kfd.strange_filler = 2;
	assert_int_equal(restore(), -EEXIST);
	assert_logged("Error (amdgpu_plugin): kfd 5: handle ", " would be ");
	assert_int_equal(kfd.frees, 2);
}

static void make_partitions(struct topology_node *gpus)
{
	for (uint32_t i = 0; i < GPUS; i++) {
		gpus[i].location_id = 0x100 | i;
		gpus[i].gfx_target_version = TOPOLOGY_GFX940;
	}
}

static void import_from(unsigned int saved, unsigned int gpu)
{
	make_image(1);
	set_bo(0, 0, 0, 1, OWNER);
	publish_elsewhere_on(1, saved, gpu, DMABUF);
}

/* The mapping of a file of the importer has the owner's offset only on one PCI device. */
TEST(imports_may_be_for_another_gpu)
{
	import_from(1, 1);
	assert_int_equal(restore(), 0);
	assert_int_equal(kfd.imported[0], KFD_HANDLE(user_ids[0], 0));
	assert_int_equal(task.session.task.mappings.num_bos, 0);
	begin_again(state);
	make_partitions(task.saved);
	make_partitions(task.local);
	import_from(1, 1);
	assert_int_equal(restore(), 0);
	assert_int_equal(task.session.task.mappings.num_bos, 1);
	assert_int_equal(task.session.task.mappings.bos[0].new_offset, 0x5000000);
}

TEST(gpus_with_another_relation_are_refused)
{
	static const struct {
		bool saved_are_partitions, are_partitions;
		unsigned int saved, gpu;
		const char *words;
	} cases[] = {
		{ false, false, 0, 1, "are one GPU, as" },
		{ false, true, 0, 1, "are one GPU, as" },
		{ true, true, 1, 0, "are partitions of one PCI device, as" },
		{ true, false, 1, 1, "are partitions of one PCI device, as" },
		{ false, true, 1, 1, "are on different PCI devices, as" },
		{ false, false, 1, 0, "are on different PCI devices, as" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		print_message("case %zu\n", i);
		if (cases[i].saved_are_partitions)
			make_partitions(task.saved);
		if (cases[i].are_partitions)
			make_partitions(task.local);
		import_from(cases[i].saved, cases[i].gpu);
		assert_int_equal(restore(), -EXDEV);
		assert_logged("Error (amdgpu_plugin): ", "of process 200, which makes it",
			      cases[i].words);
		assert_int_equal(kfd.imports, 0);
		begin_again(state);
	}
}

/* The task does not wait for a task that has failed, or has no image. */
TEST(an_object_that_cannot_be_imported_or_offered_fails_the_restore)
{
	static const struct {
		const char *what;
		pid_t owner;
		off_t published;
		pid_t failed, announced;
		int result;
		const char *words;
	} cases[] = {
		{ "another size", OWNER, 2 * DMABUF, 0, 0, -EINVAL,
		  "process 200 has made it with 32768" },
		{ "made twice", 0, DMABUF, 0, 0, -EEXIST, "cannot offer it" },
		{ "its owner fails", OWNER, 0, OWNER, 0, -ECANCELED, "process 200 has failed" },
		/* a process that exists */
		{ "its owner has no image", 1, 0, 0, 0, -ENOENT,
		  "process 1, which shares it, was not restored" },
		{ "images of two dumps", OWNER, 0, 0, OWNER, -ENODATA,
		  "the image of process 200, which shares it, does not have it" },
		{ "a damaged image", VPID, 0, 0, OWNER, -ENODATA,
		  "the image of process 100, which shares it, does not have it" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		print_message("case %s\n", cases[i].what);
		make_image(1);
		set_bo(0, 0, 0, 1, cases[i].owner);
		if (cases[i].published)
			publish_elsewhere(1, 0, cases[i].published);
		if (cases[i].failed)
			restore_shared_fail(task.session.shared, cases[i].failed);
		if (cases[i].announced)
			restore_shared_announce(task.session.shared, cases[i].announced);
		assert_int_equal(restore(), cases[i].result);
		assert_logged("Error (amdgpu_plugin): kfd 5: BO at 0x", cases[i].words);
		assert_int_equal(unit_count_errors(), 1);
		assert_int_equal(kfd.imports, 0);
		begin_again(state);
	}
}

/* Another task may want an object of it. */
TEST(a_task_without_shared_bos_says_so)
{
	struct object object;
	pid_t failed;

	make_image(1);
	set_bo(0, 0, 0, 0, 0);
	assert_int_equal(restore(), 0);
	assert_int_equal(restore_shared_await(task.session.shared, 1, VPID, &object, &failed),
			 -ENODATA);
}

/* RESTORE imports the BO, so nothing is left to do but to find out whether it did. */
TEST(restore_has_imported_what_has_a_share_handle)
{
	for (unsigned int i = 0; i < 2; i++) {
		KfdBoEntry **bos;

		make_image(2);
		set_bo(0, 0, 0, 7, 0);
		set_bo(1, 0, 1, 7, VPID);
		bos = task.session.task.kfd->bo_entries;
		bos[0]->by_share_handle = bos[1]->by_share_handle = true;
		task.is_joined = i == 0;
		assert_int_equal(restore(), i == 0 ? 0 : -EXDEV);
		assert_int_equal(task.session.task.kfd->n_bo_entries, 2);
		assert_int_equal(kfd.imports, 0);
		if (i == 0)
			assert_int_equal(unit_count_errors(), 0);
		else
			assert_logged("Error (amdgpu_plugin): kfd 5: BO at 0x",
				      "the driver has not shared it");
		begin_again(state);
	}
}
