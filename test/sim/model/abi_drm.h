/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The DRM amdgpu interface 3.64 is libdrm's header. Flags are here without a sign, and structs that
 * are longer than in Debian bookworm. The ioctls of the DRM core (handles, PRIME, versions) belong
 * to the front end. */
#ifndef SIM_ABI_DRM_H
#define SIM_ABI_DRM_H

#include <amdgpu_drm.h>

#include "sim_env.h"

#define DRM_DOMAIN_CPU  0x1u
#define DRM_DOMAIN_GTT  0x2u
#define DRM_DOMAIN_VRAM 0x4u

#define DRM_BO_CPU_ACCESS      (1u << 0)
#define DRM_BO_NO_CPU_ACCESS   (1u << 1)
#define DRM_BO_CPU_GTT_USWC    (1u << 2)
#define DRM_BO_VRAM_CLEARED    (1u << 3)
#define DRM_BO_VRAM_CONTIGUOUS (1u << 5)
#define DRM_BO_VM_ALWAYS_VALID (1u << 6)
#define DRM_BO_VRAM_WIPE       (1u << 9)
#define DRM_BO_ENCRYPTED       (1u << 10)
#define DRM_BO_COHERENT        (1u << 13)
#define DRM_BO_UNCACHED        (1u << 14)
#define DRM_BO_EXT_COHERENT    (1u << 15)
/* bits 0-3, 6, 7, 9, 10, 12-16 */
#define DRM_BO_SETTABLE 0x1f6cfu

#define DRM_USERPTR_READONLY 1u
#define DRM_USERPTR_ANONONLY 2u
#define DRM_USERPTR_VALIDATE 4u
#define DRM_USERPTR_REGISTER 8u

#define DRM_VA_MAP          1u
#define DRM_VA_UNMAP        2u
#define DRM_VA_CLEAR        3u
#define DRM_VA_REPLACE      4u
#define DRM_VM_DELAY_UPDATE 0x1u
#define DRM_VM_READ         0x2u
#define DRM_VM_WRITE        0x4u
#define DRM_VM_EXEC         0x8u
#define DRM_VM_MTYPE        0x1e0u
#define DRM_VM_NOALLOC      0x200u

struct sim_drm_gem_va {
	u32 handle, pad, operation, flags;
	u64 va_address, offset_in_bo, map_size;
	u64 vm_timeline_point;
	u32 vm_timeline_syncobj_out, num_syncobj_handles;
	u64 input_fence_syncobj_handles;
};

#define DRM_METADATA_SET 1u
#define DRM_METADATA_GET 2u

#define DRM_GEM_OP_CREATE_INFO  0u
#define DRM_GEM_OP_MAPPING_INFO 2u

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

#define DRM_CTX_ALLOC       1u
#define DRM_CTX_FREE        2u
#define DRM_CTX_QUERY       3u
#define DRM_CTX_QUERY2      4u
#define DRM_CTX_RESET       1u
#define DRM_CTX_VRAMLOST    2u
#define DRM_CTX_GUILTY      4u
#define DRM_CTX_RAS_UE      0x10u
#define DRM_CTX_IN_PROGRESS 0x20u

#define DRM_CHUNK_IB         1u
#define DRM_CHUNK_BO_HANDLES 6u

#define DRM_IP_DMA 2u

#define DRM_INFO_ACCEL_WORKING 0x00u
#define DRM_INFO_HW_IP_INFO    0x02u
#define DRM_INFO_READ_MMR_REG  0x15u
#define DRM_INFO_DEV_INFO      0x16u
#define DRM_INFO_MEMORY        0x19u
#define DRM_INFO_GPUVM_FAULT   0x23u

struct sim_drm_info {
	u64 return_pointer;
	u32 return_size, query;
	/* type, ip_instance | dword_offset, count, instance, flags */
	u32 arg[4];
};

struct sim_drm_heap_info {
	u64 total_heap_size, usable_heap_size, heap_usage, max_allocation;
};

struct sim_drm_memory_info {
	struct sim_drm_heap_info vram, cpu_accessible_vram, gtt;
};

struct sim_drm_hw_ip_info {
	u32 version_major, version_minor;
	u64 capabilities_flags;
	u32 ib_start_alignment, ib_size_alignment, available_rings, ip_discovery_version;
	u32 userq_num_slots, pad;
};

_Static_assert(sizeof(struct sim_drm_gem_va) == 64, "abi");
_Static_assert(sizeof(struct sim_drm_info) == 32, "abi");
_Static_assert(sizeof(struct sim_drm_hw_ip_info) == 40, "abi");

#endif
