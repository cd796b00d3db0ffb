/* SPDX-License-Identifier: GPL-2.0-only */
/* The images in a checkpoint archive. State images are small, and a copy of them is in memory.
 * Contents are large, and stay in the archive. */
#ifndef AMDGPU_PLUGIN_TOOLS_IMAGE_ARCHIVE_H
#define AMDGPU_PLUGIN_TOOLS_IMAGE_ARCHIVE_H

#include <stddef.h>
#include <stdint.h>

#include "image/image.h"
#include "image/image_dir.h"
#include "tar.h"

/* CRIU's list of files. */
#define FILES_NAME "files.img"

struct image_archive;

/* Reads the archive in file @fd, which then belongs to the result. @name, for messages, must stay.
 * Logs on error: -EBADMSG, the archive is damaged; -EOPNOTSUPP, it is no archive of one dump with
 * images of the plugin. Free the result with image_archive_free(). */
int image_archive_read(const char *name, int fd, struct image_archive **ret_archive);
void image_archive_free(struct image_archive **archive);

/* A descriptor of a copy of a state image or of files.img. -ENOENT: it is not in the archive. Logs
 * nothing. */
int image_archive_open(const struct image_archive *archive, const char *name);

/* The ids of all images of @kind in ascending order, in memory that the caller frees. */
int image_archive_list(const struct image_archive *archive, enum image_kind kind, int **ret_ids,
		       size_t *ret_count);

/* The size of a pages file. -ENOENT: it is not in the archive. */
int image_archive_find_pages(const struct image_archive *archive, int id, uint32_t gpu_id,
			     uint64_t *ret_size);

/* Calls @take for each pages file, in the order of the archive, until @take fails. @take reads the
 * contents by tar_read(). Logs if the archive cannot be read. */
struct pages_reader {
	int (*take)(const struct image_name *image, struct tar_member *member, void *argument);
	void *argument;
};
int image_archive_read_pages(const struct image_archive *archive,
			     const struct pages_reader *reader);

#endif
