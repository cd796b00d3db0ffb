/* SPDX-License-Identifier: GPL-2.0-only */
/* Blocks of pages files that other files have, too (option base). */
#ifndef AMDGPU_PLUGIN_TOOLS_BLOCKS_H
#define AMDGPU_PLUGIN_TOOLS_BLOCKS_H

#include <stdint.h>

/* Bytes of the pages file of GPU @gpu_id that share their blocks with other files. 0 if the file
 * system does not tell, and in archives. */
uint64_t blocks_count_shared(int id, uint32_t gpu_id);

#endif
