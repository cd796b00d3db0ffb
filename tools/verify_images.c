// SPDX-License-Identifier: GPL-2.0-only
/* Compares the state images of a directory with each other, and with CRIU's list of files. verify.c
 * compares the contents. */
#include "verify_images.h"

#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "amdgpu_plugin_util.h"
#include "criu/log.h"
#include "host.h"
#include "image/image.h"
#include "image_archive.h"
#include "images.h"

/* criu/include/magic.h: the file begins with the first word since CRIU 2.0, and then has the
 * second. */
#define IMG_COMMON_MAGIC 0x54564319u
#define FILES_MAGIC      0x56303138u
/* More than any list of files: CRIU itself reads it whole. */
#define FILES_MAX (256u << 20)
/* enum fd_types in CRIU's fdinfo.proto: a file that a plugin has saved. */
#define TYPE_EXTERNAL 16

/* Two states of one process are from two dumps. */
static int check_kfds(const struct tool_images *images)
{
	IMAGES_FOR_EACH (images, image, IMAGE_KFD) {
		const struct tool_image *first = images_find_process(images, image->kfd->pid);

		if (image->kfd->num_of_gpus && first != image)
			return log_error(
				-EINVAL,
				"images: kfd %d and kfd %d both have the state of process %" PRIu32
				", so they are from two dumps",
				first->id, image->id, image->kfd->pid);
	}
	return 0;
}

/* A shared BO, and the process whose image has its contents. */
struct object {
	uint32_t pid;
	uint32_t number;
	/* How RESTORE makes it. All entries of an object that has a share handle agree. */
	bool by_share_handle;
	uint32_t alloc_flags;
};

struct object_list {
	struct object *list;
	size_t count;
};

static void object_list_done(struct object_list *objects)
{
	free(objects->list);
}

static int compare_objects(const void *left, const void *right)
{
	const struct object *a = left, *b = right;

	return ORDER(a->pid, b->pid) ?: ORDER(a->number, b->number);
}

static int add_objects(const CriuKfd *kfd, struct object_list *objects)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < kfd->n_bo_entries; i++) {
		const KfdBoEntry *bo = kfd->bo_entries[i];
		const struct object object = { kfd->pid, bo->object, bo->by_share_handle,
					       bo->alloc_flags };

		if (bo->has_object && !bo->has_owner_pid)
			ret = array_append(&objects->list, &objects->count, sizeof(object),
					   &object);
	}
	return ret;
}

/* In an order that bsearch() can use. */
static int list_objects(const struct tool_images *images, struct object_list *objects)
{
	int ret = 0;

	IMAGES_FOR_EACH (images, image, IMAGE_KFD) {
		ret = ret ? ret : add_objects(image->kfd, objects);
	}
	if (ret < 0)
		return log_error(ret, "images: cannot list their shared BOs");
	if (objects->count)
		qsort(objects->list, objects->count, sizeof(*objects->list), compare_objects);
	return 0;
}

/* NULL: no image has it. */
static const struct object *find_object(const struct object_list *objects, uint32_t pid,
					uint32_t number)
{
	const struct object object = { .pid = pid, .number = number };

	return objects->count ? bsearch(&object, objects->list, objects->count, sizeof(object),
					compare_objects)
			      : NULL;
}

/* The process that RESTORE comes to first makes an object that has a share handle. */
static bool agree(const struct object *object, const KfdBoEntry *bo)
{
	return object->by_share_handle == (bool)bo->by_share_handle &&
	       (!object->by_share_handle || object->alloc_flags == bo->alloc_flags);
}

static int check_imports(const struct tool_image *image, const struct object_list *objects)
{
	for (size_t i = 0; i < image->kfd->n_bo_entries; i++) {
		const KfdBoEntry *bo = image->kfd->bo_entries[i];
		const struct object *object;

		if (!bo->has_owner_pid)
			continue;
		object = find_object(objects, bo->owner_pid, bo->object);
		if (!object)
			return log_error(-EINVAL,
					 "images: BO %zu of kfd %d imports object %" PRIu32
					 " of process %" PRIu32
					 ", which the directory does not have",
					 i, image->id, bo->object, bo->owner_pid);
		if (!agree(object, bo))
			return log_error(
				-EINVAL,
				"images: BO %zu of kfd %d imports object %" PRIu32
				" of process %" PRIu32
				", whose image shares it in another way, so they are from two dumps",
				i, image->id, bo->object, bo->owner_pid);
	}
	return 0;
}

static int check_gem_handles(const struct tool_image *image, const struct object_list *objects)
{
	for (size_t i = 0; i < image->kfd->n_gem_handles; i++) {
		const GemHandleEntry *handle = image->kfd->gem_handles[i];

		if (handle->bo == IMAGE_NO_BO &&
		    !find_object(objects, handle->owner_pid, handle->object))
			return log_error(
				-EINVAL,
				"images: GEM handle %" PRIu32 " of kfd %d is of object %" PRIu32
				" of process %" PRIu32 ", which the directory does not have",
				handle->handle, image->id, handle->object, handle->owner_pid);
	}
	return 0;
}

static int check_dmabuf(const struct tool_image *image, const struct object_list *objects)
{
	const CriuDmabufNode *dmabuf = image->dmabuf;

	if (!dmabuf->has_object || find_object(objects, dmabuf->owner_pid, dmabuf->object))
		return 0;
	return log_error(-EINVAL,
			 "images: dma-buf %d is of object %" PRIu32 " of process %" PRIu32
			 ", which the directory does not have",
			 image->id, dmabuf->object, dmabuf->owner_pid);
}

/* The process that an import, a GEM handle or a dma-buf names has the contents. */
static int check_objects(const struct tool_images *images)
{
	_cleanup_(object_list_done) struct object_list objects = { 0 };
	int ret = list_objects(images, &objects);

	for (size_t i = 0; !ret && i < images->count; i++) {
		const struct tool_image *image = &images->list[i];

		if (image->kind == IMAGE_DMABUF)
			ret = check_dmabuf(image, &objects);
		if (image->kind == IMAGE_KFD)
			ret = check_imports(image, &objects) ?: check_gem_handles(image, &objects);
	}
	return ret;
}

static int check_renders(const struct tool_images *images)
{
	IMAGES_FOR_EACH (images, image, IMAGE_RENDER) {
		for (size_t i = 0; i < image->render->n_owners; i++) {
			const KfdOwner *owner = image->render->owners[i];
			const struct tool_image *kfd = images_find_process(images, owner->pid);

			if (!kfd || (uint32_t)kfd->id != owner->kfd_id)
				return log_error(-EINVAL,
						 "images: render node %d names kfd %" PRIu32
						 " of process %" PRIu32
						 ", which the directory does not have",
						 image->id, owner->kfd_id, owner->pid);
		}
	}
	return 0;
}

/* Another driver may have written them. */
static void warn_of_layouts(const struct tool_images *images)
{
	IMAGES_FOR_EACH (images, image, IMAGE_KFD) {
		if (image->kfd->num_of_gpus && !image->priv.layout.is_known)
			log_warn(
				"kfd %d: its private data have a layout that this plugin does not know, so they are not checked, and a restore refuses them without AMDGPU_FORCE",
				image->id);
	}
}

static bool has_sum(const struct tool_image *image)
{
	if (image->kind == IMAGE_KFD)
		return image->kfd->has_xxh3;
	return image->kind == IMAGE_RENDER ? image->render->has_xxh3 : image->dmabuf->has_xxh3;
}

static void warn_of_sums(const struct tool_images *images)
{
	static const char *const names[] = {
		[IMAGE_KFD] = IMAGE_KFD_NAME,
		[IMAGE_RENDER] = IMAGE_RENDER_NAME,
		[IMAGE_DMABUF] = IMAGE_DMABUF_NAME,
	};
	char first[IMAGE_NAME_SIZE], more[40] = "";
	size_t count = 0;

	for (size_t i = 0; i < images->count; i++) {
		const struct tool_image *image = &images->list[i];

		if (!has_sum(image) && !count++)
			(void)snprintf(first, sizeof(first), names[image->kind], image->id);
	}
	if (count > 1)
		(void)snprintf(more, sizeof(more), " (like %zu more)", count - 1);
	if (count)
		log_warn(
			"image %s%s has no checksum, as it is of another program, so damage would not be found",
			first, more);
}

static bool has_image(const struct tool_images *images, uint32_t id)
{
	for (size_t i = 0; i < images->count; i++) {
		if ((uint32_t)images->list[i].id == id)
			return true;
	}
	return false;
}

static int damaged(void)
{
	return log_error(-EINVAL, "images: " FILES_NAME " is no list of files");
}

static int check_entry(const struct tool_images *images, const uint8_t *bytes, size_t size)
{
	CriuFileEntry *entry = criu_file_entry__unpack(NULL, size, bytes);
	bool is_missing;
	uint32_t id;

	if (!entry)
		return damaged();
	id = entry->id;
	is_missing = entry->type == TYPE_EXTERNAL && !has_image(images, id);
	criu_file_entry__free_unpacked(entry, NULL);
	return is_missing ? log_error(-ENOENT,
				      "images: file %" PRIu32
				      ", which CRIU saved by a plugin, has no image",
				      id)
			  : 0;
}

static uint32_t word_at(const uint8_t *bytes)
{
	uint32_t word;

	memcpy(&word, bytes, sizeof(word));
	return le32toh(word);
}

/* Two magic words, and then entries with their size before them (pb_write_one() in CRIU's
 * protobuf.c). */
static int check_entries(const struct tool_images *images, const uint8_t *bytes, size_t size)
{
	const size_t word = sizeof(uint32_t);
	size_t at = 2 * word;
	int ret = 0;

	if (size < at || word_at(bytes) != IMG_COMMON_MAGIC || word_at(bytes + word) != FILES_MAGIC)
		return damaged();
	while (!ret && at < size) {
		uint32_t length = size - at < word ? UINT32_MAX : word_at(bytes + at);

		if (length > size - at - word)
			return damaged();
		ret = check_entry(images, bytes + at + word, length);
		at += word + length;
	}
	return ret;
}

/* Whether each file that CRIU has saved by a plugin, according to its files.img, has an image of
 * this plugin. An image of which no other image tells, such as that of a render node, is noticed to
 * be missing in this way only. */
static int check_files(const struct tool_images *images, bool quiet)
{
	_cleanup_close_ int fd = host_open_file(FILES_NAME);
	_cleanup_free_ uint8_t *bytes = NULL;
	struct stat stat;
	int ret;

	if (fd == -ENOENT) {
		if (!quiet)
			log_warn(
				"the images have no " FILES_NAME
				" of CRIU, so a missing image of a render node or of a dma-buf would not be found");
		return 0;
	}
	if (fd < 0 || fstat(fd, &stat) < 0)
		return log_error(fd < 0 ? fd : -errno, "images: cannot open " FILES_NAME);
	if (!S_ISREG(stat.st_mode) || stat.st_size > FILES_MAX)
		return damaged();
	bytes = malloc((size_t)stat.st_size + 1);
	ret = bytes ? pread_full(fd, bytes, (size_t)stat.st_size, 0) : -ENOMEM;
	if (ret < 0)
		return log_error(ret, "images: cannot read " FILES_NAME);
	return check_entries(images, bytes, (size_t)stat.st_size);
}

int verify_images(const struct tool_images *images, bool quiet)
{
	int ret = check_kfds(images);

	if (!ret)
		ret = check_renders(images);
	if (ret < 0)
		return ret;
	warn_of_layouts(images);
	warn_of_sums(images);
	ret = check_objects(images);
	return ret ? ret : check_files(images, quiet);
}
