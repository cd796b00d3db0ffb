/* SPDX-License-Identifier: GPL-2.0-only */
/* The option base: the directory of an older dump, with whose pages files new ones share what is
 * equal. Without use for it, all contents are written, and a line of the log says so. */
#ifndef AMDGPU_PLUGIN_DUMP_BASE_DIR_H
#define AMDGPU_PLUGIN_DUMP_BASE_DIR_H

#include <stdint.h>

#include "content/content.h"
#include "session/dump_session.h"

/* Before the first pages file of the dump. Later calls do nothing. -ENOMEM, logged. */
int base_dir_open(struct dump_session *session);
/* Bytes that the images of the dump share at most. */
uint64_t base_dir_size(const struct dump_session *session);
/* For a new pages file of @process. -ENOMEM. */
int base_dir_add(const struct dumped_process *process, struct content_job *job);
/* The contents are complete, and the file is still open: leaves sums for the next dump. */
void base_dir_finish(const struct dumped_process *process, struct content_job *job);

#endif
