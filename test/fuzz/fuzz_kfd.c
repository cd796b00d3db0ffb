// SPDX-License-Identifier: GPL-2.0-only
/* Restores a process from a KFD image, with its mappings and contents. The input is the message.
 * The pages files have the sizes that the message says, unless those are too large. */
#include "restore.h"

#include "image/image.h"
#include "mutate.h"

#define ID           5
#define CONTENTS_MAX (4u << 20)
#define PAGE         4096

const struct ProtobufCMessageDescriptor *mutate_descriptor = &criu_kfd__descriptor;
const size_t mutate_offset;

/* Makes the pages file of a GPU. No bytes are written, so the contents read as zeros. A size above
 * CONTENTS_MAX has no file. */
static void write_pages(const CriuKfd *kfd, uint32_t gpu_id)
{
	uint64_t size = image_contents_size(kfd, gpu_id);
	char name[64];
	int fd;

	if (size > CONTENTS_MAX)
		return;
	(void)snprintf(name, sizeof(name), "amdgpu-pages-%d-%04x.img", ID, gpu_id);
	unit_write(name, &size, sizeof(size));
	fd = openat(criu_stub.image_dir, name, O_WRONLY | O_CLOEXEC);
	promise(fd >= 0 && ftruncate(fd, (off_t)(8 + size)) == 0);
	(void)close(fd);
}

static void write_all_pages(const uint8_t *bytes, size_t size)
{
	CriuKfd *kfd = criu_kfd__unpack(NULL, size, bytes);

	for (size_t i = 0; kfd && i < kfd->n_device_entries && i < 8; i++)
		write_pages(kfd, kfd->device_entries[i]->gpu_id);
	if (kfd)
		criu_kfd__free_unpacked(kfd, NULL);
}

static bool overlap(uint64_t a, uint64_t a_size, uint64_t b, uint64_t b_size)
{
	return a < b + b_size && b < a + a_size;
}

/* The arguments of RESTORE are possible for each image. */
static void check_restored(void)
{
	const struct kfd_criu_args *args = &kernel.restored;

	promise(args->num_devices >= 1 && args->num_devices <= 8);
	for (uint32_t i = 0; i < args->num_devices; i++) {
		promise(kernel.restored_devices[i].user_gpu_id);
		promise(kernel.restored_devices[i].user_gpu_id <= UINT16_MAX);
		for (uint32_t j = 0; j < i; j++) {
			promise(kernel.restored_devices[i].user_gpu_id !=
				kernel.restored_devices[j].user_gpu_id);
			promise(kernel.restored_devices[i].drm_fd !=
				kernel.restored_devices[j].drm_fd);
		}
	}
}

static void check_bos(const CriuKfd *kfd)
{
	for (size_t i = 0; i < kfd->n_bo_entries; i++) {
		const KfdBoEntry *a = kfd->bo_entries[i];

		promise(a->size && a->addr + a->size - 1 >= a->addr);
		if (!(a->alloc_flags & KFD_BO_WITH_CONTENTS))
			continue;
		promise(!(a->size % PAGE) && !(a->addr % PAGE));
		for (size_t j = 0; j < i; j++) {
			const KfdBoEntry *b = kfd->bo_entries[j];

			if (b->gpu_id == a->gpu_id && b->alloc_flags & KFD_BO_WITH_CONTENTS)
				promise(!overlap(a->addr, a->size, b->addr, b->size));
		}
	}
}

static void update_mappings(const CriuKfd *kfd)
{
	static const char *const paths[] = { "/dev/kfd", "/dev/dri/renderD128",
					     "/dev/dri/renderD129" };

	for (size_t i = 0; i < kfd->n_bo_entries && i < 8; i++) {
		const KfdBoEntry *bo = kfd->bo_entries[i];
		uint64_t offset = 0;
		int fd = -1;

		for (size_t path = 0; path < 3; path++)
			(void)update_mapping(paths[path], bo->addr, bo->offset, &offset, &fd);
	}
}

/* After the last mapping, the plugin closes its files. */
static void close_above(int lowest)
{
	for (int fd = lowest; fd < lowest + 64; fd++)
		(void)close(fd);
}

static void check_success(const uint8_t *bytes, size_t size, int fd)
{
	CriuKfd *kfd = criu_kfd__unpack(NULL, size, bytes);

	promise(kfd);
	if (kernel.processes[0].calls[KFD_RESTORE]) {
		check_restored();
		check_bos(kfd);
	}
	update_mappings(kfd);
	criu_kfd__free_unpacked(kfd, NULL);
	(void)resume(FUZZ_PID);
	(void)close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	int fd;

	restore_begin("one-other");
	write_framed("amdgpu-kfd-5.img", bytes, size);
	write_all_pages(bytes, size);
	fd = restore_file(ID);
	promise(fd != -ENOTSUP);
	/* One failure, one line. */
	promise(unit_count_errors() == (fd < 0));
	if (fd >= 0)
		check_success(bytes, size, fd);
	restore_leave(fd < 0 ? -1 : 0);
	close_above(100);
	promise(fake_gpu_end(NULL) == 0);
	return 0;
}
