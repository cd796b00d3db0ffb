/* SPDX-License-Identifier: GPL-2.0-only */
/* What the kernel's module amdgpu says of itself in sysfs. */
#ifndef AMDGPU_PLUGIN_KERNEL_AMDGPU_MODULE_H
#define AMDGPU_PLUGIN_KERNEL_AMDGPU_MODULE_H

#include <stdbool.h>
#include <stddef.h>

/* Whether the module has the parameter @name, with a number. */
bool amdgpu_module_parameter(const char *name, int *ret_value);
/* Whether the module has the file @name. @text takes its first line, without the end, up to @size.
 */
bool amdgpu_module_text(const char *name, char *text, size_t size);

#endif
