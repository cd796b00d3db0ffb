/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The KFD ioctl interface 1.18 restated: numbers, structs and flags with the sizes that the kernel
 * contract gives. Headers of distributions differ in version, so the model brings its own; it
 * leaves the DRM interface to abi_drm.h. */
#ifndef SIM_ABI_KFD_H
#define SIM_ABI_KFD_H

#include "sim_env.h"

enum {
	KFD_GET_VERSION = 0x01,
	KFD_CREATE_QUEUE = 0x02,
	KFD_DESTROY_QUEUE = 0x03,
	KFD_SET_MEMORY_POLICY = 0x04,
	KFD_GET_CLOCK_COUNTERS = 0x05,
	KFD_GET_PROCESS_APERTURES = 0x06,
	KFD_UPDATE_QUEUE = 0x07,
	KFD_CREATE_EVENT = 0x08,
	KFD_DESTROY_EVENT = 0x09,
	KFD_SET_EVENT = 0x0a,
	KFD_RESET_EVENT = 0x0b,
	KFD_WAIT_EVENTS = 0x0c,
	KFD_DBG_REGISTER = 0x0d,
	KFD_DBG_UNREGISTER = 0x0e,
	KFD_DBG_ADDRESS_WATCH = 0x0f,
	KFD_DBG_WAVE_CONTROL = 0x10,
	KFD_SET_SCRATCH_BACKING_VA = 0x11,
	KFD_GET_TILE_CONFIG = 0x12,
	KFD_SET_TRAP_HANDLER = 0x13,
	KFD_GET_PROCESS_APERTURES_NEW = 0x14,
	KFD_ACQUIRE_VM = 0x15,
	KFD_ALLOC_MEMORY_OF_GPU = 0x16,
	KFD_FREE_MEMORY_OF_GPU = 0x17,
	KFD_MAP_MEMORY_TO_GPU = 0x18,
	KFD_UNMAP_MEMORY_FROM_GPU = 0x19,
	KFD_SET_CU_MASK = 0x1a,
	KFD_GET_QUEUE_WAVE_STATE = 0x1b,
	KFD_GET_DMABUF_INFO = 0x1c,
	KFD_IMPORT_DMABUF = 0x1d,
	KFD_ALLOC_QUEUE_GWS = 0x1e,
	KFD_SMI_EVENTS = 0x1f,
	KFD_SVM = 0x20,
	KFD_SET_XNACK_MODE = 0x21,
	KFD_CRIU_OP = 0x22,
	KFD_AVAILABLE_MEMORY = 0x23,
	KFD_EXPORT_DMABUF = 0x24,
	KFD_RUNTIME_ENABLE = 0x25,
	KFD_DBG_TRAP = 0x26,
	KFD_CREATE_PROCESS = 0x27,
	KFD_COMMAND_END = 0x28,
	/* of AMD's out-of-tree driver */
	KFD_IPC_IMPORT_HANDLE = 0x80,
	KFD_IPC_EXPORT_HANDLE = 0x81,
};

struct kfd_get_version_args {
	u32 major, minor;
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

#define KFD_QUEUE_COMPUTE        0u
#define KFD_QUEUE_SDMA           1u
#define KFD_QUEUE_COMPUTE_AQL    2u
#define KFD_QUEUE_SDMA_XGMI      3u
#define KFD_QUEUE_SDMA_BY_ENG_ID 4u

struct kfd_destroy_queue_args {
	u32 queue_id, pad;
};

struct kfd_update_queue_args {
	u64 ring_base_address;
	u32 queue_id, ring_size, queue_percentage, queue_priority;
};

struct kfd_set_cu_mask_args {
	u32 queue_id, num_cu_mask;
	u64 cu_mask_ptr;
};

struct kfd_alloc_queue_gws_args {
	u32 queue_id, num_gws, first_gws, pad;
};

struct kfd_set_memory_policy_args {
	u64 alternate_aperture_base, alternate_aperture_size;
	u32 gpu_id, default_policy, alternate_policy, misc_process_flag;
};

struct kfd_get_clock_counters_args {
	u64 gpu_clock_counter, cpu_clock_counter, system_clock_counter, system_clock_freq;
	u32 gpu_id, pad;
};

struct kfd_process_device_apertures {
	u64 lds_base, lds_limit, scratch_base, scratch_limit, gpuvm_base, gpuvm_limit;
	u32 gpu_id, pad;
};

#define KFD_OLD_APERTURES 7

struct kfd_get_process_apertures_args {
	struct kfd_process_device_apertures apertures[KFD_OLD_APERTURES];
	u32 num_of_nodes, pad;
};

struct kfd_get_process_apertures_new_args {
	u64 apertures_ptr;
	u32 num_of_nodes, pad;
};

struct kfd_acquire_vm_args {
	u32 drm_fd, gpu_id;
};

#define KFD_MEM_VRAM         (1u << 0)
#define KFD_MEM_GTT          (1u << 1)
#define KFD_MEM_USERPTR      (1u << 2)
#define KFD_MEM_DOORBELL     (1u << 3)
#define KFD_MEM_MMIO_REMAP   (1u << 4)
#define KFD_MEM_CONTIGUOUS   (1u << 23)
#define KFD_MEM_EXT_COHERENT (1u << 24)
#define KFD_MEM_UNCACHED     (1u << 25)
#define KFD_MEM_COHERENT     (1u << 26)
#define KFD_MEM_AQL_QUEUE    (1u << 27)
#define KFD_MEM_PUBLIC       (1u << 29)
#define KFD_MEM_EXECUTABLE   (1u << 30)
#define KFD_MEM_WRITABLE     (1u << 31)

struct kfd_alloc_memory_args {
	u64 va_addr, size, handle, mmap_offset;
	u32 gpu_id, flags;
};

struct kfd_free_memory_args {
	u64 handle;
};

struct kfd_map_memory_args {
	u64 handle, device_ids_ptr;
	u32 n_devices, n_success;
};

struct kfd_set_scratch_args {
	u64 va_addr;
	u32 gpu_id, pad;
};

struct kfd_get_tile_config_args {
	u64 tile_config_ptr, macro_tile_config_ptr;
	u32 num_tile_configs, num_macro_tile_configs;
	u32 gpu_id, gb_addr_config, num_banks, num_ranks;
};

struct kfd_set_trap_handler_args {
	u64 tba_addr, tma_addr;
	u32 gpu_id, pad;
};

struct kfd_get_dmabuf_info_args {
	u64 size, metadata_ptr;
	u32 metadata_size, gpu_id, flags, dmabuf_fd;
};

struct kfd_import_dmabuf_args {
	u64 va_addr, handle;
	u32 gpu_id, dmabuf_fd;
};

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

struct kfd_available_memory_args {
	u64 available;
	u32 gpu_id, pad;
};

struct kfd_set_xnack_mode_args {
	s32 xnack_enabled;
};

struct kfd_runtime_enable_args {
	u64 r_debug;
	u32 mode_mask, capabilities_mask;
};

struct kfd_create_event_args {
	u64 event_page_offset;
	u32 event_trigger_data, event_type, auto_reset, node_id, event_id, event_slot_index;
};

struct kfd_event_id_args {
	u32 event_id, pad;
};

struct kfd_event_data {
	union {
		u8 exception[32];
		u64 last_event_age;
	};
	u64 ext;
	u32 event_id, pad;
};

struct kfd_wait_events_args {
	u64 events_ptr;
	u32 num_events, wait_for_all, timeout, wait_result;
};

#define KFD_EVENT_SIGNAL       0u
#define KFD_EVENT_HW_EXCEPTION 3u
#define KFD_EVENT_DEBUG        5u
#define KFD_EVENT_MEMORY       8u

#define KFD_WAIT_COMPLETE 0u
#define KFD_WAIT_TIMEOUT  1u
#define KFD_WAIT_FAIL     2u

struct kfd_svm_attribute {
	u32 type, value;
};

struct kfd_svm_args {
	u64 start_addr, size;
	u32 op, nattr;
	struct kfd_svm_attribute attrs[];
};

#define KFD_SVM_PREFERRED_LOC   0u
#define KFD_SVM_PREFETCH_LOC    1u
#define KFD_SVM_ACCESS          2u
#define KFD_SVM_ACCESS_IN_PLACE 3u
#define KFD_SVM_NO_ACCESS       4u
#define KFD_SVM_SET_FLAGS       5u
#define KFD_SVM_CLR_FLAGS       6u
#define KFD_SVM_GRANULARITY     7u

struct kfd_criu_args {
	u64 devices, bos, priv_data, priv_data_size;
	u32 num_devices, num_bos, num_objects, pid, op, pad;
};

enum {
	KFD_CRIU_PROCESS_INFO,
	KFD_CRIU_CHECKPOINT,
	KFD_CRIU_UNPAUSE,
	KFD_CRIU_RESTORE,
	KFD_CRIU_RESUME
};

struct kfd_criu_device_bucket {
	u32 user_gpu_id, actual_gpu_id, drm_fd, pad;
};

struct kfd_criu_bo_bucket {
	u64 addr, size, offset, restored_offset;
	u32 gpu_id, alloc_flags, dmabuf_fd, pad;
};

#define KFD_INVALID_FD 0xffffffffu

#define KFD_MMAP_TYPE(type) ((u64)(type) << 62)
#define KFD_MMAP_DOORBELL   3u
#define KFD_MMAP_EVENTS     2u
#define KFD_MMAP_RESERVED   1u
#define KFD_MMAP_MMIO       0u
#define KFD_MMAP_GPU_ID(id) ((u64)(id) << 46)

#define KFD_DOORBELL_SLICE   8192u
#define KFD_EVENT_LIMIT      4096u
#define KFD_EVENT_PAGE_BYTES (KFD_EVENT_LIMIT * 8)

#define KFD_GPUVM_LIMIT 0x7fffffffffffull

_Static_assert(sizeof(struct kfd_create_queue_args) == 96, "abi");
_Static_assert(sizeof(struct kfd_get_process_apertures_args) == 400, "abi");
_Static_assert(sizeof(struct kfd_criu_args) == 56, "abi");
_Static_assert(sizeof(struct kfd_criu_bo_bucket) == 48, "abi");
_Static_assert(sizeof(struct kfd_event_data) == 48, "abi");
_Static_assert(sizeof(struct kfd_create_event_args) == 32, "abi");
_Static_assert(sizeof(struct kfd_get_tile_config_args) == 40, "abi");
_Static_assert(sizeof(struct kfd_alloc_memory_args) == 40, "abi");

#endif
