// SPDX-License-Identifier: GPL-2.0-only
/* Fuzzes the image of an open dma-buf: of a process without KFD state, or (selected by the first
 * byte) of a process whose KFD image exists and has a shared BO. The rest of the input is the
 * message. */
#include "restore.h"

#include "image/image.h"
#include "mutate.h"

#define ID     5
#define KFD_ID 4
#define SIZE   4096

const struct ProtobufCMessageDescriptor *mutate_descriptor = &criu_dmabuf_node__descriptor;
const size_t mutate_offset = 1;

/* A BO in GTT, which is object 1. */
static void add_shared_bo(CriuKfd *kfd)
{
	KfdBoEntry *bo = malloc(sizeof(*bo));

	kfd->bo_entries = calloc(1, sizeof(*kfd->bo_entries));
	promise(bo && kfd->bo_entries);
	kfd_bo_entry__init(bo);
	bo->addr = 0x7f0000000000;
	bo->size = SIZE;
	bo->offset = 0x100000000;
	bo->alloc_flags = KFD_BO_GTT;
	bo->gpu_id = FUZZ_GPU;
	bo->has_object = true;
	bo->object = 1;
	kfd->bo_entries[0] = bo;
	kfd->num_of_bos = kfd->n_bo_entries = 1;
}

static void add_private_data(CriuKfd *kfd)
{
	kfd->priv_data.len = 16 + 272;
	kfd->priv_data.data = calloc(1, kfd->priv_data.len);
	promise(kfd->priv_data.data);
	kfd->priv_data.data[0] = 1;
	kfd_priv_mark(kfd->priv_data.data, kfd->priv_data.len);
}

static void write_pages(void)
{
	static const uint8_t zeros[SIZE];
	char name[64];

	(void)snprintf(name, sizeof(name), "amdgpu-pages-%d-%04x.img", KFD_ID, FUZZ_GPU);
	write_framed(name, zeros, sizeof(zeros));
}

static void write_kfd(void)
{
	CriuKfd *kfd = new_image_of_one(FUZZ_GPU);

	add_shared_bo(kfd);
	add_private_data(kfd);
	write_pages();
	promise(image_write_kfd(KFD_ID, kfd) == 0);
	criu_kfd__free_unpacked(kfd, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct fuzz_input input = { bytes, size };
	bool beside_kfd = fuzz_take_number(&input, 1) & 1;
	int fd, kfd_fd = -1;

	restore_begin("one-other");
	if (beside_kfd)
		write_kfd();
	write_framed("amdgpu-dmabuf_5.img", input.bytes, input.size);
	fd = restore_file(ID);
	promise(fd != -ENOTSUP);
	/* One failure, one line. */
	promise(unit_count_errors() == (fd < 0));
	/* Only the BO of the image has a dma-buf. */
	promise(fd < 0 || (beside_kfd && kernel.processes[0].calls[KFD_RESTORE] == 1));
	/* The restored /dev/kfd waits for CRIU. */
	if (kernel.processes[0].calls[KFD_RESTORE])
		kfd_fd = restore_file(KFD_ID);
	if (fd >= 0)
		(void)close(fd);
	if (kfd_fd >= 0)
		(void)close(kfd_fd);
	restore_end(fd < 0 ? -1 : 0);
	return 0;
}
