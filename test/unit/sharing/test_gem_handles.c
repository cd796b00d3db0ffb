// SPDX-License-Identifier: GPL-2.0-only
/* GEM handles under their old numbers, by render files that only give out the lowest free number.
 */
#include "host.h"

#include <amdgpu_drm.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include "amdgpu_plugin_topology.h"
#include "criu/host.h"
#include "image/image.h"
#include "kernel/kfd.h"
#include "memory/gpu_files.h"
#include "memory/mappings.h"
#include "memory/restore_shared.h"
#include "sharing/gem_handles.h"

#define GPUS    2
#define NUMBERS 32
#define CALLS   32
#define OWN     300 /* the dma-buf of BO n that RESTORE makes is descriptor OWN + n */
#define MARK    0x80000000u
#define OBJECT  7

static const uint32_t user_ids[GPUS] = { 0x1111, 0x2222 };

/* The numbers in use, and the dma-buf behind each, of two render files. */
static struct {
	int fds[GPUS];
	int dmabuf[GPUS][NUMBERS];
	unsigned int fillers, closed, imports;
	struct drm_amdgpu_gem_va mapped[CALLS];
	unsigned int maps;
	struct drm_amdgpu_gem_metadata noted[CALLS];
	unsigned int notes;
	unsigned long failing;
} render;

static unsigned int file_of(int fd)
{
	assert_true(fd == render.fds[0] || fd == render.fds[1]);
	return fd == render.fds[1];
}

static uint32_t take(unsigned int file, int dmabuf)
{
	uint32_t number = 1;

	while (render.dmabuf[file][number])
		number++;
	render.dmabuf[file][number] = dmabuf;
	return number;
}

static void import(unsigned int file, struct drm_prime_handle *args)
{
	render.imports++;
	args->handle = take(file, args->fd);
}

static void release(unsigned int file, uint32_t handle)
{
	assert_int_equal(render.dmabuf[file][handle], -1);
	render.dmabuf[file][handle] = 0;
	render.closed++;
}

int ioctl(int fd, unsigned long request, ...)
{
	unsigned int file = file_of(fd);
	union drm_amdgpu_gem_mmap *offsets;
	va_list arguments;
	void *argument;

	va_start(arguments, request);
	argument = va_arg(arguments, void *);
	va_end(arguments);
	if (request == render.failing) {
		errno = ENOMEM;
		return -1;
	}
	switch (request) {
	case DRM_IOCTL_AMDGPU_GEM_CREATE:
		render.fillers++;
		((union drm_amdgpu_gem_create *)argument)->out.handle = take(file, -1);
		return 0;
	case DRM_IOCTL_PRIME_FD_TO_HANDLE:
		import(file, argument);
		return 0;
	case DRM_IOCTL_AMDGPU_GEM_MMAP:
		offsets = argument;
		offsets->out.addr_ptr = 0x900000 + offsets->in.handle * 0x10000;
		return 0;
	case DRM_IOCTL_GEM_CLOSE:
		release(file, ((struct drm_gem_close *)argument)->handle);
		return 0;
	case DRM_IOCTL_AMDGPU_GEM_VA:
		render.mapped[render.maps++] = *(struct drm_amdgpu_gem_va *)argument;
		return 0;
	case DRM_IOCTL_AMDGPU_GEM_METADATA:
		render.noted[render.notes++] = *(struct drm_amdgpu_gem_metadata *)argument;
		return 0;
	default:
		fail();
		return -1;
	}
}

static struct {
	struct restore_session session;
	struct topology_node saved[GPUS], local[GPUS];
	const struct topology_node *map[GPUS];
	struct kfd_bo_bucket bos[3];
	struct kfd_state state;
} task;

static void add_bo(CriuKfd *image, bool imported)
{
	KfdBoEntry *bo = malloc(sizeof(*bo));

	kfd_bo_entry__init(bo);
	bo->has_object = bo->has_owner_pid = imported;
	bo->object = imported ? OBJECT : 0;
	image->bo_entries[image->n_bo_entries++] = bo;
}

/* BOs 0 and 2 are the task's, 1 is imported. */
static CriuKfd *make_image(void)
{
	CriuKfd *image = calloc(1, sizeof(*image));

	criu_kfd__init(image);
	image->bo_entries = calloc(3, sizeof(*image->bo_entries));
	add_bo(image, false);
	add_bo(image, true);
	add_bo(image, false);
	image->gem_handles = calloc(8, sizeof(*image->gem_handles));
	image->priv_data.data = calloc(1, 8);
	image->priv_data.len = 8;
	memcpy(image->priv_data.data, (uint32_t[]){ 1 | MARK }, 4);
	return image;
}

static GemHandleEntry *add_handle(unsigned int gpu, uint32_t number, uint32_t bo)
{
	CriuKfd *image = task.session.task.kfd;
	GemHandleEntry *entry = malloc(sizeof(*entry));

	gem_handle_entry__init(entry);
	entry->gpu_id = user_ids[gpu];
	entry->handle = number;
	entry->bo = bo;
	image->gem_handles[image->n_gem_handles++] = entry;
	return entry;
}

static void add_mapping(GemHandleEntry *entry, uint64_t addr, uint64_t offset, uint64_t flags)
{
	DrmVmEntry *mapping = malloc(sizeof(*mapping));

	drm_vm_entry__init(mapping);
	mapping->addr = addr;
	mapping->size = 0x3000;
	mapping->offset = offset;
	mapping->flags = flags;
	entry->mappings = realloc(entry->mappings, (entry->n_mappings + 1) * sizeof(mapping));
	entry->mappings[entry->n_mappings++] = mapping;
}

static int begin(void **state)
{
	if (unit_begin(state) < 0 || restore_shared_new(&task.session.shared) < 0)
		return -1;
	memset(&render, 0, sizeof(render));
	for (size_t i = 0; i < GPUS; i++) {
		task.saved[i] = (struct topology_node){ .gpu_id = user_ids[i],
							.drm_render_minor = 128 + (uint32_t)i };
		render.fds[i] = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 100);
		assert_int_equal(
			gpu_files_add(&task.session.task.files, 128 + (uint32_t)i, render.fds[i]),
			0);
	}
	for (size_t i = 0; i < GPUS; i++) {
		task.saved[i].location_id = task.local[i].location_id = 0x100 * (uint32_t)(i + 1);
		task.local[i].actual_gpu_id = task.saved[i].actual_gpu_id = user_ids[i];
		task.map[i] = &task.local[i];
	}
	task.session.task.map.local = task.map;
	task.session.task.saved = (struct topology){ task.saved, GPUS };
	task.session.task.kfd_id = 5;
	task.session.task.kfd = make_image();
	task.bos[0].dmabuf_fd = OWN;
	task.bos[1].dmabuf_fd = OWN + 1;
	task.state.bos = task.bos;
	task.state.num_bos = 2;
	return 0;
}

static int end(void **state)
{
	mappings_done(&task.session.task.mappings);
	criu_kfd__free_unpacked(task.session.task.kfd, NULL);
	gpu_files_close(&task.session.task.files, -1);
	restore_shared_free(task.session.shared);
	memset(&task, 0, sizeof(task));
	criu_stub_close_stored();
	return unit_end(state);
}

static int restore(void)
{
	assert_int_equal(gem_handles_take(&task.session.task), 0);
	return gem_handles_restore(&task.session, &task.state);
}

#define TEST(name) TEST_WITH(name, begin, end)

/* Handle @number on GPU 0 of object @object of GPU @gpu, which process 77 has made of @size bytes.
 */
static void add_other(uint32_t number, uint32_t object, unsigned int gpu, uint64_t size)
{
	GemHandleEntry *entry = add_handle(0, number, IMAGE_NO_BO);
	_cleanup_close_ int fd = memfd_create("object", MFD_CLOEXEC);
	const struct object_gpu name = { user_ids[gpu], topology_pci_device(&task.saved[gpu]) };
	struct object made = { .gpu = name, .saved_gpu = name };

	entry->has_object = entry->has_owner_pid = entry->has_size = entry->has_offset = true;
	entry->object = object;
	entry->owner_pid = 77;
	entry->size = 0x5000;
	entry->offset = 0x800000;
	assert_int_equal(ftruncate(fd, (off_t)size), 0);
	made.store_id = host_store_fd(fd);
	assert_true(made.store_id >= 0);
	assert_int_equal(restore_shared_publish(task.session.shared, object, &made), 0);
}

TEST(an_owner_that_fails_is_named)
{
	add_other(2, 8, 0, 0x5000);
	task.session.task.kfd->gem_handles[0]->object = 9;
	restore_shared_fail(task.session.shared, 77);
	assert_int_equal(restore(), -ECANCELED);
	assert_logged("Error (amdgpu_plugin): ", "GEM handle 2 of GPU 0x1111", "process 77");
}

TEST(bos_that_RESTORE_imports_by_share_handles_count)
{
	task.session.task.kfd->bo_entries[1]->by_share_handle = true;
	(void)add_handle(0, 1, 2);
	task.bos[2].dmabuf_fd = OWN + 2;
	assert_int_equal(restore(), 0);
	assert_int_equal(render.dmabuf[0][1], OWN + 2);
}

TEST(mappings_are_made_with_their_flags)
{
	GemHandleEntry *entry;

	entry = add_handle(0, 1, 0);
	add_mapping(entry, 0x700000000000, 0, AMDGPU_VM_PAGE_READABLE);
	add_mapping(entry, 0x600000000000, 0x1000,
		    AMDGPU_VM_DELAY_UPDATE | AMDGPU_VM_PAGE_WRITEABLE | AMDGPU_VM_MTYPE_UC);
	assert_int_equal(restore(), 0);
	assert_int_equal(render.maps, 2);
	assert_int_equal(render.mapped[0].handle, 1);
	assert_int_equal(render.mapped[0].operation, AMDGPU_VA_OP_MAP);
	assert_int_equal(render.mapped[0].va_address, 0x700000000000);
	assert_int_equal(render.mapped[0].flags, AMDGPU_VM_PAGE_READABLE);
	assert_int_equal(render.mapped[1].offset_in_bo, 0x1000);
	assert_int_equal(render.mapped[1].map_size, 0x3000);
	/* the page tables must be complete when the queues start */
	assert_int_equal(render.mapped[1].flags, AMDGPU_VM_PAGE_WRITEABLE | AMDGPU_VM_MTYPE_UC);
}

static void add_metadata(GemHandleEntry *entry, const char *text)
{
	entry->has_metadata = entry->has_metadata_flags = entry->has_tiling = true;
	entry->metadata_flags = 5;
	entry->tiling = 7;
	entry->metadata.len = strlen(text);
	entry->metadata.data = (uint8_t *)strdup(text);
}

TEST(metadata_are_set_with_the_handle)
{
	(void)add_handle(0, 1, 0);
	add_metadata(add_handle(0, 2, 2), "mark");
	assert_int_equal(restore(), 0);
	assert_int_equal(render.notes, 1);
	assert_int_equal(render.noted[0].handle, 2);
	assert_int_equal(render.noted[0].op, AMDGPU_GEM_METADATA_OP_SET_METADATA);
	assert_int_equal(render.noted[0].data.flags, 5);
	assert_int_equal(render.noted[0].data.tiling_info, 7);
	assert_int_equal(render.noted[0].data.data_size_bytes, 4);
	assert_memory_equal(render.noted[0].data.data, "mark", 4);
}

TEST(calls_that_fail_are_named)
{
	static const struct {
		unsigned long request;
		const char *words;
	} cases[] = {
		{ DRM_IOCTL_AMDGPU_GEM_CREATE, "cannot take GEM handle 1" },
		{ DRM_IOCTL_PRIME_FD_TO_HANDLE, "GEM handle 2 of GPU 0x1111: cannot import" },
		{ DRM_IOCTL_AMDGPU_GEM_VA, "cannot map 12288 bytes at 0x700000000000" },
		{ DRM_IOCTL_AMDGPU_GEM_METADATA, "GEM handle 2 of GPU 0x1111: cannot set its" },
		{ DRM_IOCTL_GEM_CLOSE, "cannot free GEM handle 1" },
	};
	GemHandleEntry *entry = add_handle(0, 2, 0);

	add_metadata(entry, "mark");
	add_mapping(entry, 0x700000000000, 0, AMDGPU_VM_PAGE_READABLE);
	assert_int_equal(gem_handles_take(&task.session.task), 0);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		print_message("case %s\n", cases[i].words);
		memset(render.dmabuf, 0, sizeof(render.dmabuf));
		render.failing = cases[i].request;
		unit_forget_lines();
		assert_int_equal(gem_handles_restore(&task.session, &task.state), -ENOMEM);
		assert_logged("Error (amdgpu_plugin): ", cases[i].words);
	}
}

TEST(an_image_without_handles_is_left_alone)
{
	assert_int_equal(restore(), 0);
	assert_int_equal(render.imports, 0);
	/* imports_take() removes the mark */
	assert_int_equal(task.session.task.kfd->priv_data.data[3], MARK >> 24);
}
