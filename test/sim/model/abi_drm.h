/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The DRM amdgpu interface 3.64 is libdrm's header. What that of Debian bookworm lacks is here. The
 * ioctls of the DRM core (handles, PRIME, versions) belong to the front end. */
#ifndef SIM_ABI_DRM_H
#define SIM_ABI_DRM_H

#include <amdgpu_drm.h>

#include "sim_env.h"

#define DRM_BO_COHERENT     (1u << 13)
#define DRM_BO_UNCACHED     (1u << 14)
#define DRM_BO_EXT_COHERENT (1u << 15)
/* bits 0-3, 6, 7, 9, 10, 12-16 */
#define DRM_BO_SETTABLE 0x1f6cfu

#define DRM_VM_NOALLOC          0x200u
#define DRM_GEM_OP_MAPPING_INFO 2u
#define DRM_CTX_IN_PROGRESS     0x20u
#define DRM_INFO_GPUVM_FAULT    0x23u

struct sim_drm_gem_va {
	u32 handle, pad, operation, flags;
	u64 va_address, offset_in_bo, map_size;
	u64 vm_timeline_point;
	u32 vm_timeline_syncobj_out, num_syncobj_handles;
	u64 input_fence_syncobj_handles;
};

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

_Static_assert(sizeof(struct sim_drm_gem_va) == 64, "abi");
_Static_assert(sizeof(struct sim_drm_info) == 32, "abi");
_Static_assert(sizeof(struct sim_drm_hw_ip_info) == 40, "abi");

#endif
