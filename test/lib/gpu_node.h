/* SPDX-License-Identifier: GPL-2.0-only */
/* The topology node of a GPU in tests of the mapper. */
#ifndef TEST_LIB_GPU_NODE_H
#define TEST_LIB_GPU_NODE_H

#include "amdgpu_plugin_topology.h"

/* The properties that all these tests need, of gfx90a. The caller sets the others. */
static inline struct topology_node gpu_node(uint32_t node_id, uint32_t gpu_id)
{
	return (struct topology_node){
		.node_id = node_id,
		.gpu_id = gpu_id,
		.actual_gpu_id = gpu_id,
		.vram_size = 64ULL << 30,
		.vram_public = 1,
		.simd_count = 416,
		.max_waves_per_simd = 8,
		.num_gws = 64,
		.vendor_id = 0x1002,
		.device_id = 0x740f,
		.fw_version = 92,
		.sdma_fw_version = 9,
		.gfx_target_version = 90010,
		.drm_render_minor = 128 + node_id,
	};
}

#endif
