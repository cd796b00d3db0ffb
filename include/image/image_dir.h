/* SPDX-License-Identifier: GPL-2.0-only */
/* The image directory, with the images of this dump and of older ones. If images are streamed,
 * these functions do not change the directory. They log their errors, but not -ENOENT. */
#ifndef AMDGPU_PLUGIN_IMAGE_IMAGE_DIR_H
#define AMDGPU_PLUGIN_IMAGE_IMAGE_DIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "image/image.h"

/* What the name of an image says. */
struct image_name {
	enum image_kind kind;
	int id;
	/* Of a pages file or its sums, or 0. */
	uint32_t gpu_id;
};

/* False: the file is not an image of the plugin. */
bool image_dir_parse_name(const char *name, struct image_name *ret_name);

/* Not for streams: the ids of all images of this kind in ascending order, in memory that the caller
 * frees. -ENOMEM. */
int image_dir_list(enum image_kind kind, int **ret_ids, size_t *ret_count);
/* Not for streams: whether the directory has a state image of the plugin. */
bool image_dir_has_any(void);
/* For an id without an image: logs the possible file names if @expected, or if the directory has
 * other state images. This distinguishes a lost image from a file of another plugin. */
void image_dir_report_missing(int id, bool expected);
/* Whether the directory is on a file system in memory. */
bool image_dir_is_in_memory(void);
/* 0: this dump is incremental, so CRIU takes pages that no CPU has written since from the images of
 * the previous dump. -ENOENT: it is not. */
int image_dir_find_parent(void);
/* The time when CRIU's core image of process @vpid was last written, in this dump or in an older
 * one. -ENOENT: the process has no core image, or images are streamed. */
int image_dir_task_time(pid_t vpid, struct timespec *ret_time);
/* Removes the state images of this dump and of older ones, so that a failed dump does not look
 * complete. Quick, because the pages files stay. */
int image_dir_remove_state(void);
/* Removes all images of an older dump: a restore could take its state images for images of this
 * dump, and its pages files use disk space. Call this before this dump writes an image. */
int image_dir_remove_old(void);

#endif
