/* SPDX-License-Identifier: GPL-2.0-only */
/* The KFD driver: its interface for checkpoints, and one function for each of its five CRIU
 * operations. The interface is that of uapi/linux/kfd_ioctl.h. It is restated because some
 * distributions ship a header that needs drm/drm.h; its layouts are the same in all kernels. */
#ifndef AMDGPU_PLUGIN_KERNEL_KFD_H
#define AMDGPU_PLUGIN_KERNEL_KFD_H

#include <linux/ioctl.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/types.h>

#define KFD_PATH "/dev/kfd"

/* Bytes of a page of a GPU. */
#define KFD_GPU_PAGE 4096u

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

struct kfd_svm_args {
	uint64_t start_addr;
	uint64_t size;
	uint32_t op;
	uint32_t num_attributes;
};

struct kfd_available_args {
	uint64_t bytes; /* of VRAM; on an APU of all memory */
	uint32_t gpu_id;
	uint32_t pad;
};

enum kfd_criu_op {
	KFD_PROCESS_INFO, /* stops the queues of the process */
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
	uint32_t pid;         /* PROCESS_INFO: the vpid */
	uint32_t op;
	uint32_t pad;
};

struct kfd_device_bucket {
	uint32_t user_gpu_id;   /* the id that the process knows */
	uint32_t actual_gpu_id; /* the id that this machine gave */
	uint32_t drm_fd;        /* RESTORE: the file whose VM becomes the compute VM */
	uint32_t pad;
};

struct kfd_bo_bucket {
	uint64_t addr; /* VA on the GPU */
	uint64_t size;
	uint64_t offset;          /* mmap offset at the dump */
	uint64_t restored_offset; /* mmap offset after RESTORE; not written for userptr BOs */
	uint32_t gpu_id;          /* user_gpu_id */
	uint32_t alloc_flags;
	uint32_t dmabuf_fd; /* of VRAM and GTT BOs, else KFD_INVALID_FD */
	uint32_t pad;
};

#define KFD_INVALID_FD 0xffffffffu

struct kfd_alloc_args {
	uint64_t va_addr;
	uint64_t size;
	uint64_t handle;
	uint64_t mmap_offset;
	uint32_t gpu_id; /* user_gpu_id, here and in the next two */
	uint32_t flags;
};

struct kfd_map_args {
	uint64_t handle;
	uint64_t gpu_ids; /* pointer to uint32_t [num_gpus] */
	uint32_t num_gpus;
	uint32_t num_done;
};

struct kfd_import_args {
	uint64_t va_addr;
	uint64_t handle;
	uint32_t gpu_id;
	uint32_t dmabuf_fd;
};

/* Arguments of calls of AMD's out-of-tree driver (kfd_ioctl.h of ROCm). */
struct kfd_ipc_import_args {
	uint64_t handle;
	uint64_t va_addr;
	uint64_t mmap_offset;
	uint32_t share_handle[4];
	uint32_t gpu_id;
	uint32_t flags;
};

#define KFD_IOC_GET_VERSION     _IOR('K', 0x01, struct kfd_version_args)
#define KFD_IOC_ALLOC_MEMORY    _IOWR('K', 0x16, struct kfd_alloc_args)
#define KFD_IOC_FREE_MEMORY     _IOW('K', 0x17, uint64_t)
#define KFD_IOC_MAP_MEMORY      _IOWR('K', 0x18, struct kfd_map_args)
#define KFD_IOC_GET_DMABUF_INFO _IOWR('K', 0x1c, struct kfd_dmabuf_info_args)
#define KFD_IOC_IMPORT_DMABUF   _IOWR('K', 0x1d, struct kfd_import_args)
#define KFD_IOC_SVM             _IOWR('K', 0x20, struct kfd_svm_args)
#define KFD_IOC_CRIU_OP         _IOWR('K', 0x22, struct kfd_criu_args)
#define KFD_IOC_AVAILABLE       _IOWR('K', 0x23, struct kfd_available_args)
#define KFD_IOC_IPC_IMPORT      _IOWR('K', 0x80, struct kfd_ipc_import_args)

_Static_assert(sizeof(struct kfd_criu_args) == 56, "kernel ABI");
_Static_assert(sizeof(struct kfd_device_bucket) == 16, "kernel ABI");
_Static_assert(sizeof(struct kfd_bo_bucket) == 48, "kernel ABI");
_Static_assert(sizeof(struct kfd_alloc_args) == 40, "kernel ABI");
_Static_assert(sizeof(struct kfd_map_args) == 24, "kernel ABI");
_Static_assert(sizeof(struct kfd_import_args) == 24, "kernel ABI");
_Static_assert(sizeof(struct kfd_ipc_import_args) == 48, "kernel ABI");

/* Kinds of BO, bits of alloc_flags. Every BO has exactly one. */
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

/* The other bits of alloc_flags: access, and properties of the memory. GPUs before gfx9 map the
 * ring of an AQL queue twice in a row. */
enum kfd_bo_attribute {
	KFD_BO_CONTIGUOUS = 1u << 23,
	KFD_BO_EXT_COHERENT = 1u << 24,
	KFD_BO_UNCACHED = 1u << 25,
	KFD_BO_COHERENT = 1u << 26,
	KFD_BO_AQL_QUEUE_MEM = 1u << 27,
	KFD_BO_EXECUTABLE = 1u << 30,
	KFD_BO_WRITABLE = 1u << 31,
	KFD_BO_ATTRIBUTES = 0x1ffu << 23,
};

/* mmap offsets of /dev/kfd (kfd_priv.h in the kernel): bits 63:62 hold the type of the mapping,
 * bits 61:46 a gpu_id: the actual one up to Linux 7.2, later the one that the process knows. The
 * offsets that CHECKPOINT and RESTORE return always have the actual id. */
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

/* @offset, but for the GPU with @gpu_id. */
static inline uint64_t kfd_mmap_offset_of(uint64_t offset, uint32_t gpu_id)
{
	return (offset & ~KFD_MMAP_GPU_ID_MASK) | (uint64_t)gpu_id << KFD_MMAP_GPU_ID_SHIFT;
}

/* The number of the driver's device, from sysfs. -ENOENT: there is no driver. Logs nothing. */
int kfd_read_device(dev_t *ret_device);
/* Whether @stat is that of a /dev/kfd, by the device number in sysfs: the major is dynamic, and
 * /dev may lack the file. 1, 0, or -errno, which is logged. */
int kfd_is_file(const struct stat *stat);
/* Whether @fd is a dma-buf of an AMD GPU: 1; 0, also where there is no driver; or -errno, which is
 * logged. */
int kfd_is_dmabuf(int fd);

/* Opens /dev/kfd for the plugin. -EOPNOTSUPP: the driver is older than 1.8, so it cannot save the
 * contents of GTT BOs. Logs on error. */
int kfd_open(int *ret_fd);
/* Checks that the driver can checkpoint at all. The errors are those of kfd_open(). */
int kfd_check_version(uint32_t *ret_minor);
/* Whether the kernel was built with SVM (HSA_AMD_SVM); also if the plugin cannot ask. Logs a
 * failure to open /dev/kfd. */
bool kfd_has_svm(void);
/* The second number of the version of an open /dev/kfd; the first is 1. Logs on error. */
int kfd_read_minor(int fd, uint32_t *ret_minor);

/* What CHECKPOINT says of a process, and what RESTORE needs. Arrays are never NULL: the kernel
 * refuses NULL even for arrays without elements. */
struct kfd_state {
	pid_t vpid;
	struct kfd_device_bucket *devices;
	uint32_t num_devices;
	struct kfd_bo_bucket *bos;
	uint32_t num_bos;
	uint8_t *priv_data;
	uint64_t priv_data_size;
	uint32_t num_objects;
	/* The limit of descriptors before it was raised for the dma-bufs. */
	struct rlimit old_limit;
};

/* Allocates the arrays for the counts in @state, with no dma-buf in any BO. */
int kfd_state_alloc(struct kfd_state *state);
/* The device that the process knows as @user_gpu_id, or NULL. */
const struct kfd_device_bucket *kfd_state_find_device(const struct kfd_state *state,
						      uint32_t user_gpu_id);
/* A user_gpu_id for one more device: @gpu_id, or if the process knows another GPU by it, the next
 * id that is free. Of two devices with the same id, the driver finds only the first. */
uint32_t kfd_state_choose_id(const struct kfd_state *state, uint32_t gpu_id);
/* Closes the dma-bufs. */
void kfd_state_close(struct kfd_state *state);
/* Frees the arrays, closes the dma-bufs and restores the limit of descriptors. */
void kfd_state_done(struct kfd_state *state);

/* PROCESS_INFO: stops the queues, and fills in the counts and the vpid. Each call adds one to a
 * counter in the kernel, so it must be made once a process. Only the tracing thread may call this
 * function and the next two. */
int kfd_pause(int fd, struct kfd_state *ret_counts);
/* CHECKPOINT: fills in the arrays. The dma-bufs get close-on-exec descriptors of at least
 * @lowest_fd, if that many are free. Until kfd_state_done(), the limit of descriptors is higher.
 * -EINVAL: the process is not paused, or the counts have changed. */
int kfd_checkpoint(int fd, struct kfd_state *state, int lowest_fd);
/* CHECKPOINT for the private data of queues, events and SVM ranges, and for the devices: @state has
 * the arrays of kfd_state_alloc(). No dma-buf is opened: the call fails at the first BO with
 * contents, because this process may open no file for that moment, and objects come before BOs
 * (criu_checkpoint() in kfd_chardev.c; they did not before Linux 6.1, where the data stay zero).
 * -EINVAL: as above. */
int kfd_look(int fd, struct kfd_state *state);
/* UNPAUSE: starts the queues. -EINVAL: the process is not paused. */
int kfd_unpause(int fd);

/* RESTORE: rebuilds @state in the calling process, and fills in restored_offset and the dma-bufs,
 * with descriptors as above. The kernel can neither repeat nor undo it: after an error the process
 * must end. */
int kfd_restore(int fd, struct kfd_state *state, int lowest_fd);
/* RESTORE for a child_run(): opens /dev/kfd, and leaves limits and descriptors as they are. Logs
 * nothing. */
int kfd_try_restore(struct kfd_state *state);
/* RESTORE for a child_run() of a process without BOs and with private data that cannot be read.
 * -EFAULT: the kernel rebuilds processes without BOs; -EINVAL: it does not. Logs nothing. */
int kfd_try_restore_without_bos(void);
/* The VRAM that BOs of GPU @gpu_id can still get, in steps of 2 MiB. @gpu_id is one that the
 * process of @fd knows. Logs nothing. */
int kfd_available_vram(int fd, uint32_t gpu_id, uint64_t *ret_bytes);
/* RESUME: starts the queues of process @pid. Call it once, also after an error, and only after
 * kfd_restore(). -ESRCH: no KFD process. Logs on error. */
int kfd_resume(pid_t pid);

/* The flags of an imported BO: its kind, and these (import_obj_create() in amdgpu_amdkfd_gpuvm.c).
 * AMD's out-of-tree driver gives other flags to the import of a BO that KFD has made on the same
 * PCI device: those of the process that made it. */
#define KFD_BO_IMPORTED (KFD_BO_WRITABLE | KFD_BO_EXECUTABLE)

static inline bool kfd_bo_looks_imported(uint32_t alloc_flags)
{
	return alloc_flags == (KFD_BO_VRAM | KFD_BO_IMPORTED) ||
	       alloc_flags == (KFD_BO_GTT | KFD_BO_IMPORTED);
}

/* The attributes of a BO that was made with the flags @gem_flags of a GEM object
 * (amdgpu_amdkfd_gpuvm_alloc_memory_of_gpu() in Linux 6.12). */
static inline uint32_t kfd_bo_flags_of_gem(uint32_t alloc_flags, uint64_t gem_flags)
{
	/* AMDGPU_GEM_CREATE_VRAM_CONTIGUOUS, and from Linux 6.2 and 6.8 on three more */
	const uint64_t contiguous = 1u << 5, coherent = 1u << 13, uncached = 1u << 14,
		       ext_coherent = 1u << 15;
	uint32_t flags = 0;

	if (alloc_flags & KFD_BO_VRAM && gem_flags & contiguous)
		flags |= KFD_BO_CONTIGUOUS;
	if (gem_flags & coherent)
		flags |= KFD_BO_COHERENT;
	if (gem_flags & uncached)
		flags |= KFD_BO_UNCACHED;
	if (gem_flags & ext_coherent)
		flags |= KFD_BO_EXT_COHERENT;
	return flags;
}

/* KFD's own memory calls, for the process that has opened @fd. They also work between
 * RESTORE and RESUME. A handle has the gpu_id that the process knows in its upper half. In the
 * lower half is the lowest number that is free on that GPU. */
#define KFD_HANDLE(gpu_id, number) ((uint64_t)(gpu_id) << 32 | (number))

/* Whether a process of this host has a BO with this share handle of AMD's out-of-tree driver: 1, 0
 * or -errno. @gpu_id is one that the process of @fd knows, and the process has no VM yet. Then the
 * driver looks for the handle, and does no more (kfd_ipc_import_handle() in kfd_ipc.c). */
int kfd_memory_has_share_handle(int fd, uint32_t gpu_id, const uint32_t *handle);
/* Imports the dma-buf for GPU @gpu_id at address @addr. */
int kfd_memory_import(int fd, uint32_t gpu_id, uint64_t addr, int dmabuf_fd, uint64_t *ret_handle);
/* Maps a BO to the GPUs. */
int kfd_memory_map(int fd, uint64_t handle, const uint32_t *gpu_ids, uint32_t num_gpus);
/* Takes a handle by a page without an address, until kfd_memory_free(). */
int kfd_memory_take_handle(int fd, uint32_t gpu_id, uint64_t *ret_handle);
int kfd_memory_free(int fd, uint64_t handle);

/* The cause of @error (-errno) of operation @op, and what helps, to follow the name of the process
 * in a log line. NULL: strerror() is all there is to say. */
const char *kfd_explain(enum kfd_criu_op op, int error);

#endif
