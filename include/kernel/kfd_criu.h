/* SPDX-License-Identifier: GPL-2.0-only */
/* What the plugin uses of the kernel's KFD interface (uapi/linux/kfd_ioctl.h). Restated because the
 * header of some distributions cannot be included by itself (it wants drm/drm.h), and because the
 * layouts have been the same in every kernel. */
#ifndef AMDGPU_PLUGIN_KERNEL_KFD_CRIU_H
#define AMDGPU_PLUGIN_KERNEL_KFD_CRIU_H

#include <linux/ioctl.h>
#include <stdbool.h>
#include <stdint.h>

struct kfd_version_args {
	uint32_t major;
	uint32_t minor;
};

struct kfd_dmabuf_info_args {
	uint64_t size;
	uint64_t metadata_ptr;
	uint32_t metadata_size;
	uint32_t gpu_id;
	uint32_t flags;
	uint32_t dmabuf_fd;
};

enum kfd_criu_op {
	KFD_PROCESS_INFO,
	KFD_CHECKPOINT,
	KFD_UNPAUSE,
	KFD_RESTORE,
	KFD_RESUME,
};

struct kfd_criu_args {
	uint64_t devices;   /* pointer to struct kfd_device_bucket [num_devices] */
	uint64_t bos;       /* pointer to struct kfd_bo_bucket [num_bos] */
	uint64_t priv_data; /* pointer to priv_data_size opaque bytes */
	uint64_t priv_data_size;
	uint32_t num_devices;
	uint32_t num_bos;
	uint32_t num_objects; /* queues, events and SVM ranges */
	uint32_t pid;         /* PROCESS_INFO: in the process's own pid namespace */
	uint32_t op;
	uint32_t pad;
};

struct kfd_device_bucket {
	uint32_t user_gpu_id;   /* the id the process knows */
	uint32_t actual_gpu_id; /* the id this machine gave */
	uint32_t drm_fd;        /* RESTORE: render node whose VM becomes the compute VM */
	uint32_t pad;
};

struct kfd_bo_bucket {
	uint64_t addr; /* GPU virtual address */
	uint64_t size;
	uint64_t offset;          /* mmap offset at the dump */
	uint64_t restored_offset; /* mmap offset after RESTORE; not written for userptrs */
	uint32_t gpu_id;          /* user_gpu_id */
	uint32_t alloc_flags;
	uint32_t dmabuf_fd; /* of VRAM and GTT BOs, else KFD_INVALID_FD */
	uint32_t pad;
};

#define KFD_INVALID_FD 0xffffffffu

#define KFD_IOC_GET_VERSION     _IOR('K', 0x01, struct kfd_version_args)
#define KFD_IOC_GET_DMABUF_INFO _IOWR('K', 0x1c, struct kfd_dmabuf_info_args)
#define KFD_IOC_CRIU_OP         _IOWR('K', 0x22, struct kfd_criu_args)

_Static_assert(sizeof(struct kfd_criu_args) == 56, "kernel ABI");
_Static_assert(sizeof(struct kfd_device_bucket) == 16, "kernel ABI");
_Static_assert(sizeof(struct kfd_bo_bucket) == 48, "kernel ABI");

/* Kinds of BO, bits of alloc_flags; exactly one is set. */
enum kfd_bo_kind {
	KFD_BO_VRAM = 1u << 0,
	KFD_BO_GTT = 1u << 1,
	KFD_BO_USERPTR = 1u << 2,
	KFD_BO_DOORBELL = 1u << 3,
	KFD_BO_MMIO_REMAP = 1u << 4,
	KFD_BO_KINDS = 0x1f,
	/* Only these have contents that the GPU must copy. */
	KFD_BO_WITH_CONTENTS = KFD_BO_VRAM | KFD_BO_GTT,
};

static inline bool kfd_bo_has_one_kind(uint32_t alloc_flags)
{
	uint32_t kind = alloc_flags & KFD_BO_KINDS;

	return kind && !(kind & (kind - 1));
}

/* The other bits of alloc_flags: access, and properties of the memory. A BO of queues is mapped
 * twice in a row on GPUs before gfx9. */
enum kfd_bo_attribute {
	KFD_BO_AQL_QUEUE_MEM = 1u << 27,
	KFD_BO_ATTRIBUTES = 0x1ffu << 23,
};

/* mmap offsets of /dev/kfd (kfd_priv.h): bits 63:62 say what is mapped, bits 61:46 carry the actual
 * (never the user) gpu_id. */
#define KFD_MMAP_TYPE_SHIFT   62
#define KFD_MMAP_GPU_ID_SHIFT 46
#define KFD_GPU_ID_MAX        0xffffu
#define KFD_MMAP_GPU_ID_MASK  ((uint64_t)KFD_GPU_ID_MAX << KFD_MMAP_GPU_ID_SHIFT)
enum kfd_mmap_type {
	KFD_MMAP_MMIO,
	KFD_MMAP_RESERVED_MEM,
	KFD_MMAP_EVENTS,
	KFD_MMAP_DOORBELL,
};

#endif
