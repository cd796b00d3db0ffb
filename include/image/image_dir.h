/* SPDX-License-Identifier: GPL-2.0-only */
/* The image directory: which images are there, of this dump and of older ones. Where images are
 * streamed it says nothing of them, and nothing in it is touched. */
#ifndef AMDGPU_PLUGIN_IMAGE_IMAGE_DIR_H
#define AMDGPU_PLUGIN_IMAGE_IMAGE_DIR_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "criu-amdgpu.pb-c.h"

/* Of files: the image of process @pid (as it sees itself) that holds its state. -ENOENT: none. */
int image_dir_find_kfd(pid_t pid, int *ret_id, CriuKfd **ret_kfd);
/* Of files: whether there is a main image of anything of ours. */
bool image_dir_has_any(void);
/* For an id that no image is of: a line with the names it could have had, if @expected
 * or if there are other images of ours, so that a file that got lost is told from one
 * that is another plugin's. */
void image_dir_report_missing(int id, bool expected);
/* Of files: 0 if some image is that of the file whose VM process @pid computes in on the GPU that
 * had render minor @minor; else -ENOENT. */
int image_dir_find_compute_render(pid_t pid, uint32_t minor);
/* The same, and 0 too if no image says so and some image of that minor says it of no process: such
 * a file is taken for it. */
int image_dir_expect_render(pid_t pid, uint32_t minor);

/* 0: this dump is an incremental one, in which CRIU leaves pages that no CPU has written since to
 * the images of the dump before; -ENOENT: it is not. */
int image_dir_find_parent(void);
/* When CRIU's core image of the process that knows itself as @vpid was last written, in this
 * dump or in an older one. -ENOENT: there is none, or it is streamed. */
int image_dir_task_time(pid_t vpid, struct timespec *ret_time);
/* Removes the main images, of this dump and of an older one to the same directory, so that what is
 * left cannot be taken for a whole dump. Quick, as contents stay. */
int image_dir_remove_state(void);
/* Removes all images of an older dump: its main images could be taken for this one's, and its
 * contents take the room for them. Nothing may have been written yet. */
int image_dir_remove_old(void);

#endif
