// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <stdlib.h>

#include "amdgpu_plugin_util.h"
#include "criu/log.h"
#include "image/image.h"
#include "tool.h"

static int read_kfd(int id, struct tool_kfd *kfd)
{
	int ret;

	kfd->id = id;
	ret = image_read_kfd(id, &kfd->message);
	if (!ret && kfd->message->num_of_gpus)
		ret = image_validate_kfd(id, kfd->message);
	return ret;
}

static int read_render(int id, struct tool_render *render)
{
	int ret;

	render->id = id;
	ret = image_read_render(id, &render->message);
	return ret ? ret : image_validate_render(id, render->message);
}

/* An image of CRIU's own plugin names no object. */
static int read_dmabuf(int id, struct tool_dmabuf *dmabuf)
{
	struct state_image image;
	int ret = image_read(id, &image);

	if (ret < 0)
		return ret;
	if (image.kind != IMAGE_DMABUF) {
		image_done(&image);
		return log_error(-EINVAL, "images: file %d has images of two kinds", id);
	}
	dmabuf->id = id;
	dmabuf->message = image.dmabuf;
	return dmabuf->message->has_object ? image_validate_dmabuf(id, dmabuf->message) : 0;
}

static int read_dmabufs(struct tool_images *images)
{
	_cleanup_free_ int *ids = NULL;
	size_t count = 0;
	int ret = image_dir_list(IMAGE_DMABUF, &ids, &count);

	if (ret < 0)
		return ret;
	images->dmabufs = calloc(count + 1, sizeof(*images->dmabufs));
	if (!images->dmabufs)
		return log_error(-ENOMEM, "images: cannot read them");
	for (size_t i = 0; !ret && i < count; i++)
		ret = read_dmabuf(ids[i], &images->dmabufs[images->num_dmabufs++]);
	return ret;
}

static int read_kfds(struct tool_images *images)
{
	_cleanup_free_ int *ids = NULL;
	size_t count = 0;
	int ret = image_dir_list(IMAGE_KFD, &ids, &count);

	if (ret < 0)
		return ret;
	images->kfds = calloc(count + 1, sizeof(*images->kfds));
	if (!images->kfds)
		return log_error(-ENOMEM, "images: cannot read them");
	for (size_t i = 0; !ret && i < count; i++)
		ret = read_kfd(ids[i], &images->kfds[images->num_kfds++]);
	return ret;
}

static int read_renders(struct tool_images *images)
{
	_cleanup_free_ int *ids = NULL;
	size_t count = 0;
	int ret = image_dir_list(IMAGE_RENDER, &ids, &count);

	if (ret < 0)
		return ret;
	images->renders = calloc(count + 1, sizeof(*images->renders));
	if (!images->renders)
		return log_error(-ENOMEM, "images: cannot read them");
	for (size_t i = 0; !ret && i < count; i++)
		ret = read_render(ids[i], &images->renders[images->num_renders++]);
	return ret;
}

int images_read(struct tool_images *ret_images)
{
	_cleanup_(images_done) struct tool_images images = { 0 };
	int ret = read_kfds(&images);

	if (!ret)
		ret = read_renders(&images);
	if (!ret)
		ret = read_dmabufs(&images);
	if (ret < 0)
		return ret;
	if (!images.num_kfds && !images.num_renders && !images.num_dmabufs)
		return log_error(-ENOENT, "the directory has no images of AMD GPUs");
	*ret_images = images;
	images = (struct tool_images){ 0 };
	return 0;
}

void images_done(struct tool_images *images)
{
	for (size_t i = 0; i < images->num_kfds; i++) {
		if (images->kfds[i].message)
			criu_kfd__free_unpacked(images->kfds[i].message, NULL);
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
