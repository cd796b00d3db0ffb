/* SPDX-License-Identifier: GPL-2.0-only */
/* Which state image of a restore has what of which process. task_image_read_tree() reads each image
 * once and adds it, so no task searches the directory. */
#ifndef AMDGPU_PLUGIN_IMAGE_IMAGE_SET_H
#define AMDGPU_PLUGIN_IMAGE_IMAGE_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "criu-amdgpu.pb-c.h"

struct image_set_kfd;
struct image_set_render;

/* Begins all zero. */
struct image_set {
	struct image_set_kfd *kfds;
	size_t num_kfds;
	struct image_set_render *renders;
	size_t num_renders;
};

/* Images without state are left out. -ENOMEM. */
int image_set_add_kfd(struct image_set *set, int id, const CriuKfd *kfd);
int image_set_add_render(struct image_set *set, const CriuRenderNode *render);
void image_set_done(struct image_set *set);

/* The image with the state of process @pid (its vpid). -ENOENT: no image has its state. -EINVAL,
 * logged: two images have it, so they are from two dumps. */
int image_set_find_kfd(const struct image_set *set, pid_t pid, int *ret_id);
/* Whether some render node image is the compute file of process @pid on the GPU that had render
 * minor @minor. */
bool image_set_has_compute_file(const struct image_set *set, pid_t pid, uint32_t minor);
/* The same, or no image names @pid, and an image of that minor names no process. The restore uses
 * such a file as the compute file. */
bool image_set_may_have_compute_file(const struct image_set *set, pid_t pid, uint32_t minor);

#endif
