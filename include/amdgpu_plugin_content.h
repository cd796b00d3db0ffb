/* SPDX-License-Identifier: GPL-2.0-only */
/* Contents of many BOs to and from image files: a worker thread a GPU, bounded memory. All contents,
 * of KFD and of DRM buffers, on dump and on restore, go through here.
 *
 * The contents of a GPU's BOs form one byte stream, in the order of the list. It is cut into ranges of
 * one staging slot each, so that a slot may hold many small BOs or a part of a large one. While the
 * copy engine works on some slots, storage works on the others. */
#ifndef AMDGPU_PLUGIN_CONTENT_H
#define AMDGPU_PLUGIN_CONTENT_H

#include <stddef.h>
#include <stdint.h>

struct content_bo {
	/* Borrowed. */
	int dmabuf_fd;
	/* Whole pages. */
	uint64_t size;
};

/* The BOs of one GPU. */
struct content_job {
	/* For messages: the id the process knows. */
	uint32_t gpu_id;
	uint32_t render_minor;
	const struct content_bo *bos;
	size_t num_bos;
	/* The image; its stream begins at @file_offset. Borrowed. */
	int image_fd;
	uint64_t file_offset;
};

struct content_limits {
	/* Staging memory of a GPU; at least one page is used. */
	uint64_t staging_bytes;
	/* How long one step of the copy engine may take. */
	uint64_t copy_timeout_s;
};

/* Bytes of the stream of @num_bos BOs. */
uint64_t content_size(const struct content_bo *bos, size_t num_bos);

/* Copies all jobs, each in a thread of its own, and returns when all have ended. The first error is
 * returned after a line that says GPU, BO and what was being done. */
int content_save(const struct content_job *jobs, size_t num_jobs,
		 const struct content_limits *limits);
int content_load(const struct content_job *jobs, size_t num_jobs,
		 const struct content_limits *limits);

#endif
