/* SPDX-License-Identifier: GPL-2.0-only */
/* Describes this machine and this moment, for the image that is taken on it. */
#ifndef AMDGPU_PLUGIN_DUMP_THIS_MACHINE_H
#define AMDGPU_PLUGIN_DUMP_THIS_MACHINE_H

#include "criu-amdgpu.pb-c.h"

struct dump_session;

/* What cannot be read is missing in the message, which is the caller's. -ENOMEM. */
int this_machine_describe(const struct dump_session *session, SavedOn **ret_saved);

#endif
