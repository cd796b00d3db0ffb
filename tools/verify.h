/* SPDX-License-Identifier: GPL-2.0-only */
/* The command verify: whether all images are whole. Its comparisons of contents in a directory and
 * in an archive share the functions below. */
#ifndef AMDGPU_PLUGIN_TOOLS_VERIFY_H
#define AMDGPU_PLUGIN_TOOLS_VERIFY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "contents.h"
#include "criu-amdgpu.pb-c.h"
#include "tool.h"

int verify_run(const struct tool_request *request);

/* A terminal shows the progress this often. */
#define VERIFY_PROGRESS_MS 200

/* The processes that are verified. */
struct verify_totals {
	bool shows_progress;
	size_t num_bos;
	size_t num_unchecked;
	uint64_t bytes;
	/* With those of the processes that follow. */
	uint64_t all_bytes;
};

/* @done: the verified bytes that @totals do not have yet. */
void verify_show_progress(const struct verify_totals *totals, uint64_t done);
void verify_end_progress(const struct verify_totals *totals);

/* The checksum that was saved with the BO. */
uint64_t verify_expect(const struct contents *contents, const struct contents_piece *bo);
/* Logs that a BO of image @id has other contents (-EBADMSG), or cannot be read. Returns @result. */
int verify_report_bo(int id, const CriuKfd *kfd, const struct contents_piece *piece, int result);

#endif
