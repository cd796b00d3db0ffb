/* SPDX-License-Identifier: GPL-2.0-only */
/* Says in an image where and when it was taken. */
#ifndef AMDGPU_PLUGIN_DUMP_SAVED_ON_H
#define AMDGPU_PLUGIN_DUMP_SAVED_ON_H

#include <stdint.h>

#include "criu-amdgpu.pb-c.h"

/* What cannot be read is missing in the message, which is the caller's. -ENOMEM. */
int saved_on_new(uint32_t kfd_minor, SavedOn **ret_saved);

#endif
