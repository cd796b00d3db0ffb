/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef AMDGPU_PLUGIN_CONTENT_GPU_NAMES_H
#define AMDGPU_PLUGIN_CONTENT_GPU_NAMES_H

/* Whether libdrm can read its list of GPU names (amdgpu.ids). libdrm reads it in sdma_open(), to
 * the end of the file. 0, also without a list; -EMEDIUMTYPE: the list is no regular file of at most
 * 1 MiB. */
int gpu_names_check(void);

#endif
