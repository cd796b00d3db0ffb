/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The ioctl interface of KFD 1.18 is the kernel's header. That of Debian bookworm is 1.11; what the
 * later versions and AMD's out-of-tree driver add is here. The DRM interface is in abi_drm.h. */
#ifndef SIM_ABI_KFD_H
#define SIM_ABI_KFD_H

#include <linux/kfd_ioctl.h>

#include "sim_env.h"

enum {
	KFD_GET_VERSION = 0x01,
	KFD_EXPORT_DMABUF = 0x24,
	KFD_CREATE_PROCESS = 0x27,
	KFD_COMMAND_END = 0x28,
	/* of AMD's out-of-tree driver */
	KFD_IPC_IMPORT_HANDLE = 0x80,
	KFD_IPC_EXPORT_HANDLE = 0x81,
};

struct kfd_create_queue_args {
	u64 ring_base_address, write_pointer_address, read_pointer_address;
	u64 doorbell_offset;
	u32 ring_size, gpu_id, queue_type, queue_percentage, queue_priority;
	u32 queue_id;
	u64 eop_buffer_address, eop_buffer_size, ctx_save_restore_address;
	u32 ctx_save_restore_size, ctl_stack_size;
	u32 sdma_engine_id, pad;
};

#define KFD_QUEUE_SDMA_BY_ENG_ID 4u

/* The header shifts 1 out of an int. */
#define KFD_MEM_VRAM         (1u << 0)
#define KFD_MEM_GTT          (1u << 1)
#define KFD_MEM_USERPTR      (1u << 2)
#define KFD_MEM_DOORBELL     (1u << 3)
#define KFD_MEM_MMIO_REMAP   (1u << 4)
#define KFD_MEM_CONTIGUOUS   (1u << 23)
#define KFD_MEM_EXT_COHERENT (1u << 24)
#define KFD_MEM_UNCACHED     (1u << 25)
#define KFD_MEM_COHERENT     (1u << 26)
#define KFD_MEM_PUBLIC       (1u << 29)
#define KFD_MEM_EXECUTABLE   (1u << 30)
#define KFD_MEM_WRITABLE     (1u << 31)

struct kfd_export_dmabuf_args {
	u64 handle;
	u32 flags, dmabuf_fd;
};

/* Of AMD's out-of-tree driver: kfd_ioctl.h of ROCm. */
#define SIM_SHARE_WORDS 4u
struct kfd_ipc_export_args {
	u64 handle;
	u32 share_handle[SIM_SHARE_WORDS];
	u32 gpu_id, flags;
};

struct kfd_ipc_import_args {
	u64 handle, va_addr, mmap_offset;
	u32 share_handle[SIM_SHARE_WORDS];
	u32 gpu_id, flags;
};

#define KFD_MMAP_TYPE(type) ((u64)(type) << 62)
#define KFD_MMAP_DOORBELL   3u
#define KFD_MMAP_EVENTS     2u
#define KFD_MMAP_MMIO       0u
#define KFD_MMAP_GPU_ID(id) ((u64)(id) << 46)

#define KFD_DOORBELL_SLICE   8192u
#define KFD_EVENT_LIMIT      4096u
#define KFD_EVENT_PAGE_BYTES (KFD_EVENT_LIMIT * 8)

_Static_assert(sizeof(struct kfd_create_queue_args) == 96, "abi");

#endif
