/* SPDX-License-Identifier: GPL-2.0-only */
/* Refuses queues whose saved hardware state the driver would take as it is, and that would not run
 * as before. The driver does not check this state. */
#ifndef AMDGPU_PLUGIN_RESTORE_QUEUE_CHECK_H
#define AMDGPU_PLUGIN_RESTORE_QUEUE_CHECK_H

#include <stdbool.h>
#include <stdint.h>

#include "criu-amdgpu.pb-c.h"
#include "map/map_tree.h"

struct restored_task;

/* Adds the GPUs, the objects and the queues of an image to @tree. Logs nothing. -EINVAL: the image
 * is damaged; -ENOMEM. */
int queue_check_add_image(const CriuKfd *kfd, struct map_tree *tree);

/* In the task, before RESTORE. @kfd_minor: the second number of KFD's version, or 0 if the driver
 * is not known; then the rules that ask the driver do not count. With @force most refusals are
 * warnings; a queue without its control stack then gets an empty one in the task's image. Logs on
 * error. */
int queue_check_task(struct restored_task *task, uint32_t kfd_minor, bool force);

#endif
