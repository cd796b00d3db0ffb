// SPDX-License-Identifier: GPL-2.0-only
/* Prints what the images hold, for people. */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "amdgpu_plugin_util.h"
#include "kernel/kfd.h"
#include "kernel/kfd_priv.h"
#include "tool.h"

static const struct {
	uint32_t flag;
	const char *name;
} kinds[] = {
	{ KFD_BO_VRAM, "VRAM" },       { KFD_BO_GTT, "GTT" },
	{ KFD_BO_USERPTR, "userptr" }, { KFD_BO_DOORBELL, "doorbell" },
	{ KFD_BO_MMIO_REMAP, "MMIO" },
};

/* BOs of one GPU or of one kind. */
struct sum {
	size_t count;
	uint64_t bytes;
	uint64_t largest;
	size_t with_checksum;
};

static void add(struct sum *sum, const KfdBoEntry *bo)
{
	sum->count++;
	sum->bytes += bo->size;
	sum->largest = bo->size > sum->largest ? bo->size : sum->largest;
	sum->with_checksum += bo->has_xxh3;
}

static void print_gpus(const CriuKfd *kfd)
{
	printf("  %-8s %-14s %-10s %-8s %10s %12s %8s\n", "GPU", "PCI address", "node", "ISA",
	       "VRAM", "contents", "BOs");
	for (size_t i = 0; i < kfd->n_device_entries; i++) {
		const KfdDeviceEntry *gpu = kfd->device_entries[i];
		char pci[24], gfx[16], vram[16], contents[16], node[16];
		struct sum sum = { 0 };

		if (!gpu->gpu_id)
			continue;
		for (size_t j = 0; j < kfd->n_bo_entries; j++) {
			const KfdBoEntry *bo = kfd->bo_entries[j];

			if (bo->gpu_id == gpu->gpu_id && bo->alloc_flags & KFD_BO_WITH_CONTENTS)
				add(&sum, bo);
		}
		(void)snprintf(node, sizeof(node), "renderD%" PRIu32, gpu->drm_render_minor);
		printf("  0x%04" PRIx32 "   %-14s %-10s %-8s %10s %12s %8zu\n", gpu->gpu_id,
		       text_pci(gpu, pci), node, text_gfx(gpu, gfx),
		       text_size(gpu->vram_size, vram), text_size(sum.bytes, contents), sum.count);
	}
}

static struct sum sum_up_kind(const CriuKfd *kfd, uint32_t kind)
{
	struct sum sum = { 0 };

	for (size_t i = 0; i < kfd->n_bo_entries; i++) {
		if (kfd->bo_entries[i]->alloc_flags & kind)
			add(&sum, kfd->bo_entries[i]);
	}
	return sum;
}

static void print_kind(const char *name, const struct sum *sum)
{
	char bytes[16], largest[16];

	printf("  %-8s %8zu %12s %12s %10zu\n", name, sum->count, text_size(sum->bytes, bytes),
	       text_size(sum->largest, largest), sum->with_checksum);
}

static void print_bos(const CriuKfd *kfd)
{
	if (kfd->n_bo_entries)
		printf("  %-8s %8s %12s %12s %10s\n", "kind", "BOs", "bytes", "largest",
		       "checksums");
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		struct sum sum = sum_up_kind(kfd, kinds[i].flag);

		if (sum.count)
			print_kind(kinds[i].name, &sum);
	}
}

static const char *name_of_type(uint32_t type)
{
	switch (type) {
	case KFD_PRIV_QUEUE_COMPUTE:
		return "compute";
	case KFD_PRIV_QUEUE_SDMA:
		return "SDMA";
	case KFD_PRIV_QUEUE_SDMA_XGMI:
		return "SDMA over XGMI";
	default:
		return "other";
	}
}

static void print_queues(const CriuKfd *kfd)
{
	const struct kfd_priv priv = {
		.bytes = kfd->priv_data.data,
		.size = kfd->priv_data.len,
		.num_devices = kfd->num_of_gpus,
		.num_bos = (uint32_t)kfd->n_bo_entries,
		.num_objects = kfd->num_of_objects,
	};
	_cleanup_free_ struct kfd_priv_queue *queues = NULL;
	size_t count = 0;
	bool has_svm = false;

	if (kfd_priv_list_queues(&priv, &queues, &count) < 0) {
		printf("  private data of an unknown layout: %" PRIu32 " queues, events and SVM"
		       " ranges\n",
		       kfd->num_of_objects);
		return;
	}
	for (size_t i = 0; i < count; i++)
		printf("  queue %" PRIu32 ": %s on GPU 0x%04" PRIx32 "\n", queues[i].id,
		       name_of_type(queues[i].type), queues[i].gpu_id);
	(void)kfd_priv_has_svm(&priv, &has_svm);
	if (kfd->num_of_objects > count)
		printf("  %zu events%s\n", kfd->num_of_objects - count,
		       has_svm ? " and SVM ranges" : "");
}

/* Only this plugin writes checksums of messages; CRIU's own plugin writes handles since 4.3. */
static const char *writer_of(const CriuKfd *kfd)
{
	if (kfd->has_xxh3 || kfd->has_num_of_mappings)
		return "this plugin";
	return kfd->n_bo_entries && kfd->bo_entries[0]->has_handle ? "CRIU's plugin, newer format"
								   : "CRIU's plugin";
}

static void print_kfd(const struct tool_kfd *image)
{
	const CriuKfd *kfd = image->message;

	if (!kfd->num_of_gpus) {
		printf("amdgpu-kfd-%d.img: /dev/kfd without state\n", image->id);
		return;
	}
	printf("amdgpu-kfd-%d.img: process %" PRIu32 ", %" PRIu32 " GPUs, %zu BOs, %" PRIu32
	       " objects, by %s\n",
	       image->id, kfd->pid, kfd->num_of_gpus, kfd->n_bo_entries, kfd->num_of_objects,
	       writer_of(kfd));
	print_gpus(kfd);
	print_bos(kfd);
	print_queues(kfd);
	if (kfd->shared_mem_size)
		printf("  /dev/shm/hsakmt_shared_mem: %" PRIu64 " bytes\n", kfd->shared_mem_size);
}

static void print_render(const struct tool_render *image)
{
	const CriuRenderNode *node = image->message;

	printf("amdgpu-renderD-%d.img: ", image->id);
	if (node->has_drm_render_minor)
		printf("renderD%" PRIu32 " of ", node->drm_render_minor);
	printf("GPU 0x%04" PRIx32, node->gpu_id);
	if (node->has_compute_pid)
		printf(", compute VM of process %" PRIu32, node->compute_pid);
	printf("\n");
}

int tool_show(const struct tool_request *request)
{
	_cleanup_(images_done) struct tool_images images = { 0 };

	(void)request;
	if (images_read(&images) < 0)
		return TOOL_TROUBLE;
	for (size_t i = 0; i < images.num_kfds; i++)
		print_kfd(&images.kfds[i]);
	for (size_t i = 0; i < images.num_renders; i++)
		print_render(&images.renders[i]);
	return TOOL_YES;
}
