// SPDX-License-Identifier: GPL-2.0-only
/* Prints what the images hold, for people. show_json.c does it for programs. */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>

#include "amdgpu_plugin_util.h"
#include "facts.h"
#include "image/image.h"
#include "image/image_validate.h"
#include "images.h"
#include "show_json.h"
#include "text.h"
#include "tool.h"

static void print_gpu(const CriuKfd *kfd, const KfdDeviceEntry *gpu)
{
	struct bo_sum sum = facts_sum(kfd, BO_WITH_CONTENTS, gpu->gpu_id);
	char pci[PCI_SLOT_TEXT], gfx[16], vram[16], contents[16], node[24], unique[TEXT_UNIQUE_ID];

	(void)snprintf(node, sizeof(node), "renderD%" PRIu32, gpu->drm_render_minor);
	printf("  0x%04" PRIx32 "   %-14s %-10s %-8s %10s %12s %8zu  %s\n", gpu->gpu_id,
	       text_pci(gpu, pci), node, text_gfx(gpu->gfx_target_version, gfx),
	       text_size(gpu->vram_size, vram), text_size(sum.bytes, contents), sum.count,
	       text_unique_id(gpu, unique));
}

static void print_gpus(const CriuKfd *kfd)
{
	printf("  %-8s %-14s %-10s %-8s %10s %12s %8s  %s\n", "GPU", "PCI address", "node", "ISA",
	       "VRAM", "contents", "BOs", "unique_id");
	for (size_t i = 0; i < kfd->n_device_entries; i++) {
		if (kfd->device_entries[i]->gpu_id)
			print_gpu(kfd, kfd->device_entries[i]);
	}
}

/* Only if there are some: most file systems cannot share. */
static void print_shared_blocks(const struct tool_image *image)
{
	const CriuKfd *kfd = image->kfd;
	char text[16];

	for (size_t i = 0; i < kfd->n_device_entries; i++) {
		const uint32_t gpu_id = kfd->device_entries[i]->gpu_id;
		const uint64_t bytes = gpu_id ? facts_count_shared(image->id, gpu_id) : 0;

		if (bytes)
			printf("  GPU 0x%04" PRIx32
			       " shares %s of its pages file with other files\n",
			       gpu_id, text_size(bytes, text));
	}
}

static void print_kind(const char *name, const struct bo_sum *sum)
{
	char bytes[16], largest[16];

	printf("  %-8s %8zu %12s %12s %10zu\n", name, sum->count, text_size(sum->bytes, bytes),
	       text_size(sum->largest, largest), sum->with_checksum);
}

static void print_bos(const CriuKfd *kfd)
{
	const struct bo_sum shared = facts_sum(kfd, BO_SHARED, 0),
			    imports = facts_sum(kfd, BO_IMPORT, 0);

	if (kfd->n_bo_entries)
		printf("  %-8s %8s %12s %12s %10s\n", "kind", "BOs", "bytes", "largest",
		       "checksums");
	for (size_t i = 0; i < BO_KINDS; i++) {
		struct bo_sum sum = facts_sum(kfd, BO_OF_KIND, facts_bo_kinds[i].flag);

		if (sum.count)
			print_kind(facts_bo_kinds[i].name, &sum);
	}
	if (shared.count)
		print_kind("shared", &shared);
	if (imports.count)
		print_kind("imported", &imports);
}

static void print_objects(const struct tool_image *image)
{
	const struct kfd_layout *layout = &image->priv.layout;
	size_t num_events = image->priv.num_objects - image->num_queues - layout->num_svm_ranges;

	if (!layout->is_known) {
		printf("  private data of an unknown layout: %" PRIu32
		       " queues, events and SVM ranges\n",
		       image->kfd->num_of_objects);
		return;
	}
	for (size_t i = 0; i < image->num_queues; i++)
		printf("  queue %" PRIu32 ": %s on GPU 0x%04" PRIx32 "\n", image->queues[i].id,
		       facts_queue_type(image->queues[i].type), image->queues[i].gpu_id);
	if (num_events)
		printf("  %zu events\n", num_events);
	if (layout->num_svm_ranges)
		printf("  %zu SVM ranges\n", layout->num_svm_ranges);
}

/* The process that makes a shared BO at a restore. */
static uint32_t owner_of(const CriuKfd *kfd, const KfdBoEntry *bo)
{
	return bo->has_owner_pid ? bo->owner_pid : kfd->pid;
}

/* Finds the owner whose pid is the lowest that is not below @pid. Return: false if no owner has
 * such a pid. */
static bool find_owner(const CriuKfd *kfd, uint64_t pid, uint32_t *ret_pid)
{
	bool found = false;

	for (size_t i = 0; i < kfd->n_bo_entries; i++) {
		uint32_t owner = owner_of(kfd, kfd->bo_entries[i]);

		if (!kfd->bo_entries[i]->has_object || owner < pid || (found && owner > *ret_pid))
			continue;
		*ret_pid = owner;
		found = true;
	}
	return found;
}

static void print_owner(const CriuKfd *kfd, uint32_t pid)
{
	uint32_t lowest = UINT32_MAX, highest = 0;
	size_t count = 0, by_share_handle = 0;
	uint64_t bytes = 0;
	char text[16];

	for (size_t i = 0; i < kfd->n_bo_entries; i++) {
		const KfdBoEntry *bo = kfd->bo_entries[i];

		if (!bo->has_object || owner_of(kfd, bo) != pid)
			continue;
		count++;
		bytes += bo->size;
		by_share_handle += bo->by_share_handle != 0;
		lowest = bo->object < lowest ? bo->object : lowest;
		highest = bo->object > highest ? bo->object : highest;
	}
	if (pid == kfd->pid)
		printf("  made by this process: ");
	else
		printf("  made by process %" PRIu32 ": ", pid);
	printf("%zu shared BOs, %s, object%s %" PRIu32, count, text_size(bytes, text),
	       lowest == highest ? "" : "s", lowest);
	if (lowest != highest)
		printf(" to %" PRIu32, highest);
	if (by_share_handle)
		printf(", %zu by share handle%s", by_share_handle, by_share_handle == 1 ? "" : "s");
	printf("\n");
}

static void print_gem_handles_of(const CriuKfd *kfd, uint32_t gpu_id)
{
	size_t count = 0, others = 0, mappings = 0;
	uint32_t lowest = 0, highest = 0;

	for (size_t i = 0; i < kfd->n_gem_handles; i++) {
		const GemHandleEntry *handle = kfd->gem_handles[i];

		if (handle->gpu_id != gpu_id)
			continue;
		lowest = count++ ? lowest : handle->handle;
		highest = handle->handle;
		others += handle->bo == IMAGE_NO_BO;
		mappings += handle->n_mappings;
	}
	if (!count)
		return;
	printf("  %zu GEM handles on GPU 0x%04" PRIx32 ", from %" PRIu32 " to %" PRIu32
	       ", with %zu mappings",
	       count, gpu_id, lowest, highest, mappings);
	if (others)
		printf(", %zu of BOs that only other processes have", others);
	printf("\n");
}

/* "2026-11-28 03:05:00 UTC", of seconds since the epoch. An image may say any number. */
static void print_time(uint64_t seconds)
{
	const time_t since = (time_t)seconds;
	struct tm time;
	char text[40];

	if (gmtime_r(&since, &time) && strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S UTC", &time))
		printf(" %s", text);
	else
		printf(" at %" PRIu64, seconds);
}

/* Older images, and those of other programs, do not say it. */
static void print_saved_on(const SavedOn *saved)
{
	if (!saved)
		return;
	printf("  taken");
	if (saved->has_time)
		print_time(saved->time);
	if (saved->kernel)
		printf(" on Linux %s", saved->kernel);
	if (saved->has_kfd_minor)
		printf(", KFD 1.%" PRIu32, saved->kfd_minor);
	if (saved->driver_version)
		printf(", amdgpu %s", saved->driver_version);
	if (saved->driver_source)
		printf(", source %s", saved->driver_source);
	if (saved->plugin)
		printf(", plugin %s", saved->plugin);
#define PRINT(name)            \
	if (saved->has_##name) \
		printf(", " #name "=%" PRId32, saved->name);
	SAVED_ON_PARAMETERS(PRINT)
#undef PRINT
	if (saved->has_drained_ms)
		printf(", after %" PRIu32 " ms in which kernels ended", saved->drained_ms);
	printf("\n");
}

static void print_kfd(const struct tool_image *image)
{
	const CriuKfd *kfd = image->kfd;
	uint32_t owner = 0;

	if (!kfd->num_of_gpus) {
		printf("amdgpu-kfd-%d.img: /dev/kfd without state\n", image->id);
		return;
	}
	printf("amdgpu-kfd-%d.img: process %" PRIu32 ", %" PRIu32 " GPUs, %zu BOs, %" PRIu32
	       " objects, by %s\n",
	       image->id, kfd->pid, kfd->num_of_gpus, kfd->n_bo_entries, kfd->num_of_objects,
	       facts_writer(kfd));
	print_saved_on(kfd->saved_on);
	print_gpus(kfd);
	print_shared_blocks(image);
	print_bos(kfd);
	for (uint64_t pid = 0; find_owner(kfd, pid, &owner); pid = (uint64_t)owner + 1)
		print_owner(kfd, owner);
	for (size_t i = 0; i < kfd->n_device_entries; i++)
		print_gem_handles_of(kfd, kfd->device_entries[i]->gpu_id);
	print_objects(image);
	if (kfd->shared_mem_size)
		printf("  /dev/shm/hsakmt_shared_mem: %" PRIu64 " bytes\n", kfd->shared_mem_size);
}

static void print_render(const struct tool_image *image)
{
	const CriuRenderNode *node = image->render;

	printf("amdgpu-renderD-%d.img: ", image->id);
	if (node->has_drm_render_minor)
		printf("renderD%" PRIu32 " of ", node->drm_render_minor);
	printf("GPU 0x%04" PRIx32, node->gpu_id);
	if (node->has_compute_pid)
		printf(", compute VM of process %" PRIu32, node->compute_pid);
	if (node->num_of_bos)
		printf(", %" PRIu64 " GEM objects, which a restore refuses", node->num_of_bos);
	printf("\n");
}

static void print_dmabuf(const struct tool_image *image)
{
	const CriuDmabufNode *dmabuf = image->dmabuf;

	printf("amdgpu-dmabuf_%d.img: dma-buf of ", image->id);
	if (dmabuf->has_object)
		printf("object %" PRIu32 ", made by process %" PRIu32 "\n", dmabuf->object,
		       dmabuf->owner_pid);
	else
		printf("GEM handle %" PRIu32 ", which a restore refuses\n", dmabuf->gem_handle);
}

static void print_image(const struct tool_image *image)
{
	if (image->kind == IMAGE_KFD)
		print_kfd(image);
	else if (image->kind == IMAGE_RENDER)
		print_render(image);
	else
		print_dmabuf(image);
}

int show_run(const struct tool_request *request)
{
	_cleanup_(images_done) struct tool_images images = { 0 };

	if (images_read(&images) < 0)
		return TOOL_TROUBLE;
	if (request->json)
		return show_json(&images);
	for (size_t i = 0; i < images.count; i++)
		print_image(&images.list[i]);
	return TOOL_YES;
}
