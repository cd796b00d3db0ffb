// SPDX-License-Identifier: GPL-2.0-only
/* Lists the ids of each kind, and reads them one by one. */
#include "images.h"

#include <errno.h>
#include <stdlib.h>

#include "amdgpu_plugin_util.h"
#include "criu/log.h"
#include "host.h"
#include "image/image.h"
#include "image/image_dir.h"
#include "image/image_priv.h"
#include "image/image_validate.h"
#include "image_archive.h"

/* Appends @image, which has no message yet. */
static int add_image(void *list, size_t *count, size_t size, const void *image)
{
	int ret = array_append(list, count, size, image);

	return ret < 0 ? log_error(ret, "images: cannot list them") : 0;
}

static int read_kfd(struct tool_images *images, int id)
{
	const struct tool_kfd image = { .id = id };
	int ret = add_image(&images->kfds, &images->num_kfds, sizeof(image), &image);
	struct tool_kfd *kfd;

	if (ret < 0)
		return ret;
	kfd = &images->kfds[images->num_kfds - 1];
	ret = image_read_kfd(id, &kfd->message);
	if (ret < 0 || !kfd->message->num_of_gpus)
		return ret;
	ret = image_validate_kfd(id, kfd->message);
	if (ret < 0)
		return ret;
	kfd->priv = image_priv_of(kfd->message);
	if (kfd->priv.layout.is_known)
		ret = kfd_priv_list_queues(&kfd->priv, &kfd->queues, &kfd->num_queues);
	return ret < 0 ? log_error(ret, "images: cannot list them") : 0;
}

static int read_render(struct tool_images *images, int id)
{
	const struct tool_render image = { .id = id };
	int ret = add_image(&images->renders, &images->num_renders, sizeof(image), &image);
	CriuRenderNode **message;

	if (ret < 0)
		return ret;
	message = &images->renders[images->num_renders - 1].message;
	ret = image_read_render(id, message);
	return ret ? ret : image_validate_render(id, *message);
}

/* An image of CRIU's own plugin names no object. */
static int read_dmabuf(struct tool_images *images, int id)
{
	struct tool_dmabuf dmabuf = { .id = id };
	struct state_image image;
	int ret = image_read(id, &image);

	if (ret < 0)
		return ret;
	if (image.kind != IMAGE_DMABUF) {
		image_done(&image);
		return log_error(-EINVAL, "images: file %d has images of two kinds", id);
	}
	dmabuf.message = image.dmabuf;
	ret = add_image(&images->dmabufs, &images->num_dmabufs, sizeof(dmabuf), &dmabuf);
	if (ret < 0) {
		image_done(&image);
		return ret;
	}
	return dmabuf.message->has_object ? image_validate_dmabuf(id, dmabuf.message) : 0;
}

/* @read appends the image of a file to a list of @images. */
static int read_kind(struct tool_images *images, enum image_kind kind,
		     int (*read)(struct tool_images *images, int id))
{
	_cleanup_free_ int *ids = NULL;
	size_t count = 0;
	int ret = host_archive() ? image_archive_list(host_archive(), kind, &ids, &count)
				 : image_dir_list(kind, &ids, &count);

	for (size_t i = 0; !ret && i < count; i++)
		ret = read(images, ids[i]);
	return ret;
}

int images_read(struct tool_images *ret_images)
{
	_cleanup_(images_done) struct tool_images images = { 0 };
	int ret = read_kind(&images, IMAGE_KFD, read_kfd);

	if (!ret)
		ret = read_kind(&images, IMAGE_RENDER, read_render);
	if (!ret)
		ret = read_kind(&images, IMAGE_DMABUF, read_dmabuf);
	if (ret < 0)
		return ret;
	if (!images.num_kfds && !images.num_renders && !images.num_dmabufs)
		return log_error(
			-ENOENT,
			"the directory has no images of AMD GPUs: its job used none, CRIU ran without the plugin, or they are in a directory below, such as checkpoint");
	*ret_images = take_struct(images);
	return 0;
}

void images_done(struct tool_images *images)
{
	for (size_t i = 0; i < images->num_kfds; i++) {
		if (images->kfds[i].message)
			criu_kfd__free_unpacked(images->kfds[i].message, NULL);
		free(images->kfds[i].queues);
	}
	for (size_t i = 0; i < images->num_renders; i++) {
		if (images->renders[i].message)
			criu_render_node__free_unpacked(images->renders[i].message, NULL);
	}
	for (size_t i = 0; i < images->num_dmabufs; i++) {
		if (images->dmabufs[i].message)
			criu_dmabuf_node__free_unpacked(images->dmabufs[i].message, NULL);
	}
	free(images->dmabufs);
	free(images->kfds);
	free(images->renders);
}

const struct tool_kfd *images_find_process(const struct tool_images *images, uint32_t pid)
{
	for (size_t i = 0; i < images->num_kfds; i++) {
		const CriuKfd *kfd = images->kfds[i].message;

		if (kfd->num_of_gpus && kfd->pid == pid)
			return &images->kfds[i];
	}
	return NULL;
}
