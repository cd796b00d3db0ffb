/* SPDX-License-Identifier: GPL-2.0-only */
/* The contents in an archive compared with their checksums. */
#ifndef AMDGPU_PLUGIN_TOOLS_VERIFY_ARCHIVE_H
#define AMDGPU_PLUGIN_TOOLS_VERIFY_ARCHIVE_H

#include "image_archive.h"
#include "images.h"
#include "verify_pages.h"

/* Compares the contents in the archive with the checksums of @images. Logs on error: -EBADMSG,
 * they differ; -ENOENT, a pages file is missing; -EINVAL, it has another size. */
int verify_archive(const struct image_archive *archive, const struct tool_images *images,
		   struct verify_totals *totals);

#endif
