/* SPDX-License-Identifier: GPL-2.0-only */
/* The dump of a process's KFD state. */
#ifndef AMDGPU_PLUGIN_DUMP_DUMP_H
#define AMDGPU_PLUGIN_DUMP_DUMP_H

#include "session.h"

/* Saves the /dev/kfd file @fd (borrowed) as image @id. The process stays paused. */
int dump_kfd(struct session *session, int fd, int id);

/* Removes the main images of a dump that failed. */
void dump_remove_images(struct session *session);

void dump_done(struct session *session);

#endif
