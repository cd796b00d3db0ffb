/* SPDX-License-Identifier: GPL-2.0-only */
/* The fields of the message saved_on, which says where an image was taken, as tables. */
#ifndef AMDGPU_PLUGIN_IMAGE_SAVED_ON_H
#define AMDGPU_PLUGIN_IMAGE_SAVED_ON_H

#include <stdbool.h>

/* The longest text, with its end. A kernel's release has 65 bytes. */
#define SAVED_ON_TEXT 128

#define SAVED_ON_TEXTS(X) X(kernel) X(driver_version) X(driver_source) X(plugin)

/* amdgpu's parameters, by the names of their files. */
#define SAVED_ON_PARAMETERS(X) \
	X(cwsr_enable) X(noretry) X(sched_policy) X(vm_update_mode) X(user_queue)

/* Whether @text is short enough, and programs can print it. */
bool saved_on_is_text(const char *text);

#endif
