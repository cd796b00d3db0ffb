/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The DRM amdgpu interface 3.64 restated: the driver's ioctl numbers and argument structs as
 * the kernel contract prints them. The ioctls of the DRM core (handles, PRIME, versions) belong
 * to the front end. */
#ifndef SIM_ABI_DRM_H
#define SIM_ABI_DRM_H

#include "sim_env.h"

#define DRM_DOMAIN_CPU  0x1u
#define DRM_DOMAIN_GTT  0x2u
#define DRM_DOMAIN_VRAM 0x4u
#define DRM_DOMAIN_ALL  0x7fu

#define DRM_BO_CPU_ACCESS      (1u << 0)
#define DRM_BO_NO_CPU_ACCESS   (1u << 1)
#define DRM_BO_CPU_GTT_USWC    (1u << 2)
#define DRM_BO_VRAM_CLEARED    (1u << 3)
#define DRM_BO_VRAM_CONTIGUOUS (1u << 5)
#define DRM_BO_VM_ALWAYS_VALID (1u << 6)
#define DRM_BO_VRAM_WIPE       (1u << 9)
#define DRM_BO_ENCRYPTED       (1u << 10)
#define DRM_BO_PREEMPTIBLE     (1u << 11)
#define DRM_BO_COHERENT        (1u << 13)
#define DRM_BO_UNCACHED        (1u << 14)
#define DRM_BO_EXT_COHERENT    (1u << 15)
/* bits 0-3, 6, 7, 9, 10, 12-16 */
#define DRM_BO_SETTABLE 0x1f6cfu

union sim_drm_gem_create {
	struct {
		u64 bo_size, alignment, domains, domain_flags;
	} in;
	struct {
		u32 handle, pad;
	} out;
};

union sim_drm_gem_mmap {
	struct {
		u32 handle, pad;
	} in;
	struct {
		u64 addr_ptr;
	} out;
};

#define DRM_USERPTR_READONLY 1u
#define DRM_USERPTR_ANONONLY 2u
#define DRM_USERPTR_VALIDATE 4u
#define DRM_USERPTR_REGISTER 8u

struct sim_drm_gem_userptr {
	u64 addr, size;
	u32 flags, handle;
};

#define DRM_VA_MAP          1u
#define DRM_VA_UNMAP        2u
#define DRM_VA_CLEAR        3u
#define DRM_VA_REPLACE      4u
#define DRM_VM_DELAY_UPDATE 0x1u
#define DRM_VM_READ         0x2u
#define DRM_VM_WRITE        0x4u
#define DRM_VM_EXEC         0x8u
#define DRM_VM_PRT          0x10u
#define DRM_VM_MTYPE        0x1e0u
#define DRM_VM_NOALLOC      0x200u

struct sim_drm_gem_va {
	u32 handle, pad, operation, flags;
	u64 va_address, offset_in_bo, map_size;
	u64 vm_timeline_point;
	u32 vm_timeline_syncobj_out, num_syncobj_handles;
	u64 input_fence_syncobj_handles;
};

#define DRM_GEM_OP_CREATE_INFO   0u
#define DRM_GEM_OP_SET_PLACEMENT 1u
#define DRM_GEM_OP_MAPPING_INFO  2u

struct sim_drm_gem_op {
	u32 handle, op;
	u64 value;
	u32 num_entries, padding;
};

struct sim_drm_gem_vm_entry {
	u64 addr, size, offset, flags;
};

struct sim_drm_gem_list_handles {
	u64 entries;
	u32 num_entries, padding;
};

struct sim_drm_gem_list_entry {
	u32 gem_handle, flags;
	u64 size, preferred_domains, alloc_flags, alignment;
};

struct sim_drm_gem_metadata {
	u32 handle, op;
	u64 flags, tiling_info;
	u32 data_size_bytes;
	u32 data[64];
	u32 pad;
};

union sim_drm_gem_wait_idle {
	struct {
		u32 handle, flags;
		u64 timeout;
	} in;
	struct {
		u32 status, domain;
	} out;
};

#define DRM_CTX_ALLOC       1u
#define DRM_CTX_FREE        2u
#define DRM_CTX_QUERY       3u
#define DRM_CTX_QUERY2      4u
#define DRM_CTX_RESET       1u
#define DRM_CTX_VRAMLOST    2u
#define DRM_CTX_GUILTY      4u
#define DRM_CTX_RAS_UE      0x10u
#define DRM_CTX_IN_PROGRESS 0x20u
#define DRM_CTX_GET_PSTATE  5u
#define DRM_CTX_SET_PSTATE  6u

union sim_drm_ctx {
	struct {
		u32 op, flags, ctx_id;
		s32 priority;
	} in;
	struct {
		u32 ctx_id, pad;
	} alloc;
	struct {
		u64 flags;
		u32 hangs, reset_status;
	} state;
};

union sim_drm_bo_list {
	struct {
		u32 operation, list_handle, bo_number, bo_info_size;
		u64 bo_info_ptr;
	} in;
	struct {
		u32 list_handle, pad;
	} out;
};

struct sim_drm_bo_list_entry {
	u32 bo_handle, bo_priority;
};

union sim_drm_cs {
	struct {
		u32 ctx_id, bo_list_handle, num_chunks, flags;
		u64 chunks;
	} in;
	struct {
		u64 handle;
	} out;
};

struct sim_drm_cs_chunk {
	u32 chunk_id, length_dw;
	u64 chunk_data;
};

#define DRM_CHUNK_IB           1u
#define DRM_CHUNK_FENCE        2u
#define DRM_CHUNK_DEPENDENCIES 3u
#define DRM_CHUNK_BO_HANDLES   6u

struct sim_drm_cs_chunk_ib {
	u32 pad, flags;
	u64 va_start;
	u32 ib_bytes, ip_type, ip_instance, ring;
};

struct sim_drm_cs_chunk_dep {
	u32 ip_type, ip_instance, ring, ctx_id;
	u64 handle;
};

union sim_drm_wait_cs {
	struct {
		u64 handle, timeout;
		u32 ip_type, ip_instance, ring, ctx_id;
	} in;
	struct {
		u64 status;
	} out;
};

#define DRM_IP_GFX     0u
#define DRM_IP_COMPUTE 1u
#define DRM_IP_DMA     2u

#define DRM_INFO_ACCEL_WORKING 0x00u
#define DRM_INFO_HW_IP_INFO    0x02u
#define DRM_INFO_VRAM_USAGE    0x10u
#define DRM_INFO_GTT_USAGE     0x11u
#define DRM_INFO_READ_MMR_REG  0x15u
#define DRM_INFO_DEV_INFO      0x16u
#define DRM_INFO_GPUVM_FAULT   0x23u

struct sim_drm_info {
	u64 return_pointer;
	u32 return_size, query;
	/* type, ip_instance | dword_offset, count, instance, flags */
	u32 arg[4];
};

struct sim_drm_hw_ip_info {
	u32 version_major, version_minor;
	u64 capabilities_flags;
	u32 ib_start_alignment, ib_size_alignment, available_rings, ip_discovery_version;
	u32 userq_num_slots, pad;
};

struct sim_drm_info_device {
	u32 device_id, chip_rev, external_rev, pci_rev;
	u32 family, num_shader_engines, num_shader_arrays_per_engine, gpu_counter_freq;
	u64 max_engine_clock, max_memory_clock;
	u32 cu_active_number, cu_ao_mask, cu_bitmap[16];
	u32 enabled_rb_pipes_mask, num_rb_pipes, num_hw_gfx_contexts, pcie_gen;
	u64 ids_flags, virtual_address_offset, virtual_address_max;
	u32 virtual_address_alignment, pte_fragment_size, gart_page_size, ce_ram_size;
	u32 vram_type, vram_bit_width, vce_harvest_config, gc_double_offchip_lds_buf;
	u64 prim_buf_gpu_addr, pos_buf_gpu_addr, cntl_sb_buf_gpu_addr, param_buf_gpu_addr;
	u32 prim_buf_size, pos_buf_size, cntl_sb_buf_size, param_buf_size;
	u32 wave_front_size, num_shader_visible_vgprs, num_cu_per_sh, num_tcc_blocks;
	u32 gs_vgt_table_depth, gs_prim_buffer_depth, max_gs_waves_per_vgt, pcie_num_lanes;
	u32 cu_ao_bitmap[16];
	u64 high_va_offset, high_va_max;
	u32 pa_sc_tile_steering_override, pad2;
	u64 tcc_disabled_mask, min_engine_clock, min_memory_clock;
	u32 tail[16];
};

_Static_assert(sizeof(struct sim_drm_gem_metadata) == 288, "abi");
_Static_assert(sizeof(struct sim_drm_gem_va) == 64, "abi");
_Static_assert(sizeof(struct sim_drm_info) == 32, "abi");
_Static_assert(sizeof(struct sim_drm_hw_ip_info) == 40, "abi");
_Static_assert(sizeof(struct sim_drm_info_device) == 448, "abi");
_Static_assert(__builtin_offsetof(struct sim_drm_info_device, virtual_address_offset) == 144,
	       "abi");
_Static_assert(__builtin_offsetof(struct sim_drm_info_device, wave_front_size) == 240, "abi");
_Static_assert(__builtin_offsetof(struct sim_drm_info_device, high_va_offset) == 336, "abi");
_Static_assert(__builtin_offsetof(struct sim_drm_gem_metadata, data_size_bytes) == 24, "abi");

#endif
