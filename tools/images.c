// SPDX-License-Identifier: GPL-2.0-only
/* Lists the ids of each kind, and reads them one by one. */
#include "images.h"

#include <errno.h>
#include <stdlib.h>

#include "amdgpu_plugin_util.h"
#include "criu/log.h"
#include "host.h"
#include "image/image_dir.h"
#include "image/image_priv.h"
#include "image/image_validate.h"
#include "image_archive.h"

static int read_kfd(struct tool_image *image)
{
	int ret = image_read_kfd(image->id, &image->kfd);

	if (ret < 0 || !image->kfd->num_of_gpus)
		return ret;
	ret = image_validate_kfd(image->id, image->kfd);
	if (ret < 0)
		return ret;
	image->priv = image_priv_of(image->kfd);
	if (image->priv.layout.is_known)
		ret = kfd_priv_list_queues(&image->priv, &image->queues, &image->num_queues);
	return ret < 0 ? log_error(ret, "images: cannot list them") : 0;
}

static int read_render(struct tool_image *image)
{
	int ret = image_read_render(image->id, &image->render);

	return ret ? ret : image_validate_render(image->id, image->render);
}

/* An image of CRIU's own plugin names no object. */
static int read_dmabuf(struct tool_image *image)
{
	struct state_image state;
	int ret = image_read(image->id, &state);

	if (ret < 0)
		return ret;
	if (state.kind != IMAGE_DMABUF) {
		image_done(&state);
		return log_error(-EINVAL, "images: file %d has images of two kinds", image->id);
	}
	image->dmabuf = state.dmabuf;
	return image->dmabuf->has_object ? image_validate_dmabuf(image->id, image->dmabuf) : 0;
}

static int add_image(struct tool_images *images, enum image_kind kind, int id)
{
	static int (*const readers[])(struct tool_image * image) = {
		[IMAGE_KFD] = read_kfd,
		[IMAGE_RENDER] = read_render,
		[IMAGE_DMABUF] = read_dmabuf,
	};
	const struct tool_image image = { .id = id, .kind = kind };
	int ret = array_append(&images->list, &images->count, sizeof(image), &image);

	return ret < 0 ? log_error(ret, "images: cannot list them")
		       : readers[kind](&images->list[images->count - 1]);
}

static int add_kind(struct tool_images *images, enum image_kind kind)
{
	_cleanup_free_ int *ids = NULL;
	size_t count = 0;
	int ret = host_archive() ? image_archive_list(host_archive(), kind, &ids, &count)
				 : image_dir_list(kind, &ids, &count);

	for (size_t i = 0; !ret && i < count; i++)
		ret = add_image(images, kind, ids[i]);
	return ret;
}

int images_read(struct tool_images *ret_images)
{
	_cleanup_(images_done) struct tool_images images = { 0 };
	int ret = 0;

	for (enum image_kind kind = IMAGE_KFD; !ret && kind <= IMAGE_DMABUF; kind++)
		ret = add_kind(&images, kind);
	if (ret < 0)
		return ret;
	if (!images.count)
		return log_error(
			-ENOENT,
			"the directory has no images of AMD GPUs: its job used none, CRIU ran without the plugin, or they are in a directory below, such as checkpoint");
	*ret_images = take_struct(images);
	return 0;
}

void images_done(struct tool_images *images)
{
	for (size_t i = 0; i < images->count; i++) {
		protobuf_c_message_free_unpacked(images->list[i].message, NULL);
		free(images->list[i].queues);
	}
	free(images->list);
}

const struct tool_image *images_next(const struct tool_images *images, enum image_kind kind,
				     const struct tool_image *last)
{
	for (size_t i = last ? (size_t)(last - images->list) + 1 : 0; i < images->count; i++) {
		if (images->list[i].kind == kind)
			return &images->list[i];
	}
	return NULL;
}

const struct tool_image *images_find_process(const struct tool_images *images, uint32_t pid)
{
	IMAGES_FOR_EACH (images, image, IMAGE_KFD) {
		if (image->kfd->num_of_gpus && image->kfd->pid == pid)
			return image;
	}
	return NULL;
}
