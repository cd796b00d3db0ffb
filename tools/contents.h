/* SPDX-License-Identifier: GPL-2.0-only */
/* The contents of the BOs of a process, in its pages files. */
#ifndef AMDGPU_PLUGIN_TOOLS_CONTENTS_H
#define AMDGPU_PLUGIN_TOOLS_CONTENTS_H

#include <stddef.h>
#include <stdint.h>

#include "content/content.h"
#include "content/kfd_jobs.h"
#include "images.h"
#include "kernel/kfd.h"

/* A BO in its pages file. */
struct contents_piece {
	const struct content_job *job;
	/* Index of the BO in the message of its process. */
	uint32_t index;
	uint64_t offset;
	uint64_t size;
};

struct contents {
	struct kfd_jobs jobs;
	struct contents_piece *pieces;
	size_t count;
};

/* Finds the BOs of the process in its pages files. The pieces of a job follow each other. Logs on
 * error. Free the result with contents_close(). */
int contents_list(const struct tool_kfd *kfd, struct contents *ret_contents);
/* The same, and opens the pages files in the image directory. */
int contents_open(const struct tool_kfd *kfd, struct contents *ret_contents);
void contents_close(struct contents *contents);

#endif
