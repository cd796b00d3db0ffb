// SPDX-License-Identifier: GPL-2.0-only
/* Dumps the open dma-bufs of BOs. shared_bos.c knows the BOs. */
#include "dump/dmabuf_files.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "amdgpu_plugin_util.h"
#include "criu/log.h"
#include "dump/dump_image.h"
#include "image/image.h"
#include "preflight/preflight.h"
#include "session/dump_session.h"
#include "sharing/object_rules.h"
#include "sharing/shared_bos.h"

/* GEM handles are those of CRIU's own plugin. */
#define NO_HANDLE UINT32_MAX

struct dumped_dmabuf {
	int id;
	uint32_t object;
	/* The process that makes the object. */
	const struct dumped_process *owner;
};

int dmabuf_files_check(const struct dump_session *session)
{
	const struct dmabuf_files *files = &session->shared->files;
	const struct dumped_process *owner;
	uint32_t object;
	int ret = 0;

	for (size_t i = 0; !ret && i < files->count; i++) {
		const struct dmabuf_file *file = &files->list[i];
		const struct stat stat = { .st_dev = file->device, .st_ino = file->inode };

		if (file->is_dmabuf && shared_bos_find_file(session, &stat, &object, &owner) < 0)
			ret = preflight_refuse(session, DUMP_HAS_DMABUF,
					       "process %d: descriptor %d", file->pid,
					       file->number);
	}
	return ret;
}

int dmabuf_files_dump(struct dump_session *session, int fd, int id)
{
	struct dumped_dmabuf dmabuf = { .id = id };
	struct stat stat;
	int ret;

	if (fstat(fd, &stat) < 0)
		return log_error(-errno, "file %d: cannot examine", id);
	if (shared_bos_find_file(session, &stat, &dmabuf.object, &dmabuf.owner) < 0)
		return preflight_refuse(session, DUMP_HAS_DMABUF, "file %d", id);
	ret = array_append(&session->dmabufs, &session->num_dmabufs, sizeof(dmabuf), &dmabuf);
	return ret < 0 ? log_error(ret, "file %d: cannot record the dma-buf", id) : 0;
}

static int write_image(const struct dump_session *session, const struct dumped_dmabuf *dmabuf)
{
	CriuDmabufNode *image = malloc(sizeof(*image));
	int ret;

	if (!image)
		return log_error(-ENOMEM, "file %d: cannot write its image", dmabuf->id);
	criu_dmabuf_node__init(image);
	image->gem_handle = NO_HANDLE;
	image->has_object = image->has_owner_pid = true;
	image->object = dmabuf->object;
	image->owner_pid = (uint32_t)dmabuf->owner->vpid;
	ret = dump_image_list_owners(session, &image->owners, &image->n_owners);
	ret = ret < 0 ? log_error(ret, "file %d: cannot write its image", dmabuf->id)
		      : image_write_dmabuf(dmabuf->id, image);
	criu_dmabuf_node__free_unpacked(image, NULL);
	if (!ret)
		log_info("file %d: saved the dma-buf of a BO of process %d", dmabuf->id,
			 dmabuf->owner->vpid);
	return ret;
}

int dmabuf_files_write(struct dump_session *session)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < session->num_dmabufs; i++)
		ret = write_image(session, &session->dmabufs[i]);
	session->num_dmabufs = 0;
	return ret;
}
