/* SPDX-License-Identifier: GPL-2.0-only */
/* Compares the driver that has saved an image with that of this machine. */
#ifndef AMDGPU_PLUGIN_TOOLS_FIT_DRIVER_H
#define AMDGPU_PLUGIN_TOOLS_FIT_DRIVER_H

#include <stdint.h>

#include "images.h"

/* Refuses records of BOs that a driver with KFD 1.@kfd_minor does not read. Logs on error. */
int fit_driver_check(const struct tool_image *image, uint32_t kfd_minor);
/* Prints both drivers if the image is of another one than that of this machine, KFD 1.@kfd_minor.
 */
void fit_driver_print(const struct tool_image *image, uint32_t kfd_minor);

#endif
