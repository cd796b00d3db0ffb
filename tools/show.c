// SPDX-License-Identifier: GPL-2.0-only
/* Prints what the images hold, for people. show_json.c does it for programs. */
#include "show.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>

#include "amdgpu_plugin_util.h"
#include "blocks.h"
#include "criu/log.h"
#include "facts.h"
#include "image/image_validate.h"
#include "images.h"
#include "show_json.h"
#include "text.h"
#include "tool.h"

static void print_gpu(const CriuKfd *kfd, const KfdDeviceEntry *gpu)
{
	struct bo_sum sum = facts_sum_contents(kfd, gpu->gpu_id);
	char pci[PCI_SLOT_TEXT], gfx[16], vram[16], contents[16], node[24], unique[TEXT_UNIQUE_ID];

	(void)snprintf(node, sizeof(node), "renderD%" PRIu32, gpu->drm_render_minor);
	printf("  0x%04" PRIx32 "   %-14s %-10s %-8s %10s %12s %8zu  %s\n", gpu->gpu_id,
	       text_pci(gpu, pci), node, text_gfx(gpu, gfx), text_size(gpu->vram_size, vram),
	       text_size(sum.bytes, contents), sum.count, text_unique_id(gpu, unique));
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
static void print_shared_blocks(const struct tool_kfd *image)
{
	const CriuKfd *kfd = image->message;
	char text[16];

	for (size_t i = 0; i < kfd->n_device_entries; i++) {
		const uint32_t gpu_id = kfd->device_entries[i]->gpu_id;
		const uint64_t bytes = gpu_id ? blocks_count_shared(image->id, gpu_id) : 0;

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
	const struct bo_sum shared = facts_sum_shared(kfd), imports = facts_sum_imports(kfd);

	if (kfd->n_bo_entries)
		printf("  %-8s %8s %12s %12s %10s\n", "kind", "BOs", "bytes", "largest",
		       "checksums");
	for (size_t i = 0; i < BO_KINDS; i++) {
		struct bo_sum sum = facts_sum_kind(kfd, facts_bo_kinds[i].flag);

		if (sum.count)
			print_kind(facts_bo_kinds[i].name, &sum);
	}
	if (shared.count)
		print_kind("shared", &shared);
	if (imports.count)
		print_kind("imported", &imports);
}

static void print_objects(const struct tool_kfd *image)
{
	_cleanup_(facts_objects_done) struct objects objects = { 0 };

	facts_read_objects(&image->priv, &objects);
	if (!objects.known) {
		printf("  private data of an unknown layout: %" PRIu32
		       " queues, events and SVM ranges\n",
		       image->message->num_of_objects);
		return;
	}
	for (size_t i = 0; i < objects.num_queues; i++)
		printf("  queue %" PRIu32 ": %s on GPU 0x%04" PRIx32 "\n", objects.queues[i].id,
		       facts_queue_type(objects.queues[i].type), objects.queues[i].gpu_id);
	if (objects.num_events)
		printf("  %zu events\n", objects.num_events);
	if (objects.num_svm_ranges)
		printf("  %zu SVM ranges\n", objects.num_svm_ranges);
}

static void print_owner(const CriuKfd *kfd, const struct owner_sum *owner)
{
	char bytes[16];

	if (owner->owner_pid == kfd->pid)
		printf("  made by this process: ");
	else
		printf("  made by process %" PRIu32 ": ", owner->owner_pid);
	printf("%zu shared BOs, %s, object%s %" PRIu32, owner->bos.count,
	       text_size(owner->bos.bytes, bytes),
	       owner->lowest_object == owner->highest_object ? "" : "s", owner->lowest_object);
	if (owner->lowest_object != owner->highest_object)
		printf(" to %" PRIu32, owner->highest_object);
	if (owner->by_share_handle)
		printf(", %zu by share handle%s", owner->by_share_handle,
		       owner->by_share_handle == 1 ? "" : "s");
	printf("\n");
}

static int print_owners(const CriuKfd *kfd)
{
	_cleanup_free_ struct owner_sum *owners = NULL;
	size_t count = 0;
	int ret = facts_sum_owners(kfd, &owners, &count);

	if (ret < 0)
		return log_error(ret, "images: cannot describe them");
	for (size_t i = 0; i < count; i++)
		print_owner(kfd, &owners[i]);
	return 0;
}

static void print_gem_handles(const CriuKfd *kfd)
{
	for (size_t i = 0; i < kfd->n_device_entries; i++) {
		const struct gem_sum sum =
			facts_sum_gem_handles(kfd, kfd->device_entries[i]->gpu_id);

		if (!sum.count)
			continue;
		printf("  %zu GEM handles on GPU 0x%04" PRIx32 ", from %" PRIu32 " to %" PRIu32
		       ", with %zu mappings",
		       sum.count, kfd->device_entries[i]->gpu_id, sum.lowest, sum.highest,
		       sum.mappings);
		if (sum.others)
			printf(", %zu of BOs that only other processes have", sum.others);
		printf("\n");
	}
}

/* Older images, and those of other programs, do not say it. */
static void print_saved_on(const SavedOn *saved)
{
	if (!saved)
		return;
	printf("  taken");
	if (saved->has_time) {
		char when[40];

		printf(" %s", text_time(saved->time, when));
	}
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

static int print_kfd(const struct tool_kfd *image)
{
	const CriuKfd *kfd = image->message;
	int ret;

	if (!kfd->num_of_gpus) {
		printf("amdgpu-kfd-%d.img: /dev/kfd without state\n", image->id);
		return 0;
	}
	printf("amdgpu-kfd-%d.img: process %" PRIu32 ", %" PRIu32 " GPUs, %zu BOs, %" PRIu32
	       " objects, by %s\n",
	       image->id, kfd->pid, kfd->num_of_gpus, kfd->n_bo_entries, kfd->num_of_objects,
	       facts_writer(kfd));
	print_saved_on(kfd->saved_on);
	print_gpus(kfd);
	print_shared_blocks(image);
	print_bos(kfd);
	ret = print_owners(kfd);
	if (ret < 0)
		return ret;
	print_gem_handles(kfd);
	print_objects(image);
	if (kfd->shared_mem_size)
		printf("  /dev/shm/hsakmt_shared_mem: %" PRIu64 " bytes\n", kfd->shared_mem_size);
	return 0;
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
	if (node->num_of_bos)
		printf(", %" PRIu64 " GEM objects, which a restore refuses", node->num_of_bos);
	printf("\n");
}

static void print_dmabuf(const struct tool_dmabuf *image)
{
	const CriuDmabufNode *dmabuf = image->message;

	printf("amdgpu-dmabuf_%d.img: dma-buf of ", image->id);
	if (dmabuf->has_object)
		printf("object %" PRIu32 ", made by process %" PRIu32 "\n", dmabuf->object,
		       dmabuf->owner_pid);
	else
		printf("GEM handle %" PRIu32 ", which a restore refuses\n", dmabuf->gem_handle);
}

int show_run(const struct tool_request *request)
{
	_cleanup_(images_done) struct tool_images images = { 0 };

	if (images_read(&images) < 0)
		return TOOL_TROUBLE;
	if (request->json)
		return show_json(&images);
	for (size_t i = 0; i < images.num_kfds; i++) {
		if (print_kfd(&images.kfds[i]) < 0)
			return TOOL_TROUBLE;
	}
	for (size_t i = 0; i < images.num_renders; i++)
		print_render(&images.renders[i]);
	for (size_t i = 0; i < images.num_dmabufs; i++)
		print_dmabuf(&images.dmabufs[i]);
	return TOOL_YES;
}
