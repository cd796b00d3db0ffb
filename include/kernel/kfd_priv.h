/* SPDX-License-Identifier: GPL-2.0-only */
/* The private data that the KFD driver returns from CHECKPOINT: records of the process, its
 * devices, its BOs and its objects, which are queues, events and SVM ranges (kfd_criu_*_priv_data
 * in the kernel's kfd_priv.h). The dump reads how much of each queue the driver has saved, and
 * kfd_queue_repair() changes that where drivers take back less. The restore adds records of devices
 * if more GPUs are visible. Everything else is opaque and stays unchanged.
 *
 * Drivers differ in the size of a BO record. The functions derive it: the objects must fill the
 * data to the last byte. They return -EINVAL if the layout of no known driver fits, or the version
 * is unknown; RESTORE refuses such data. They return -ENOTUNIQ if the data can be read in two
 * layouts. */
#ifndef AMDGPU_PLUGIN_KERNEL_KFD_PRIV_H
#define AMDGPU_PLUGIN_KERNEL_KFD_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel/kfd.h"
#include "kernel/proc.h"

struct kfd_priv_event {
	/* The id that the process knows. */
	uint32_t id;
	uint32_t type;
};

/* What the records say. It stays true if records of BOs are cut out, and if queues are repaired. */
struct kfd_layout {
	/* All else is zero if the layout is not known. */
	bool is_known;
	/* The data can be read in two layouts. */
	bool is_ambiguous;
	/* Bytes of a BO record, the gpu_ids that it has room for, and whether it has legacy IPC. */
	uint64_t bo_size;
	uint32_t bo_gpus;
	bool bo_has_ipc;
	size_t num_queues, num_svm_ranges;
	/* The handle of the BO with the page for signals of events, or 0 if the kernel has made
	 * that page. */
	uint64_t event_page;
	/* The first event of a type that RESTORE does not make. Newer kernels (6.12.105) refuse the
	 * whole process then, older ones drop the event. */
	bool has_unsupported_event;
	struct kfd_priv_event unsupported_event;
};

/* The data, the counts that CHECKPOINT returned with it, and its layout. */
struct kfd_priv {
	const uint8_t *bytes;
	size_t size;
	uint32_t num_devices;
	uint32_t num_bos;
	uint32_t num_objects;
	struct kfd_layout layout;
};

/* Finds the layout of the data. */
struct kfd_layout kfd_priv_parse(const struct kfd_priv *priv);
/* The data of a process that CHECKPOINT has described, in the memory of @state, with its layout. */
struct kfd_priv kfd_priv_of_state(const struct kfd_state *state);

/* Whether XNACK is on (struct kfd_criu_process_priv_data). */
bool kfd_priv_has_xnack(const struct kfd_priv *priv);

/* Values of the driver's enum kfd_queue_type (kfd_priv.h). */
enum kfd_priv_queue_type {
	KFD_PRIV_QUEUE_COMPUTE = 0,
	KFD_PRIV_QUEUE_SDMA = 1,
	KFD_PRIV_QUEUE_SDMA_XGMI = 4,
};

/* The buffers of a queue, by their addresses on the GPU. */
enum kfd_priv_queue_buffer {
	KFD_PRIV_QUEUE_RING,
	KFD_PRIV_QUEUE_RPTR,
	KFD_PRIV_QUEUE_WPTR,
	KFD_PRIV_QUEUE_EOP,
	/* Receives the state of running waves. */
	KFD_PRIV_QUEUE_AREA,
	KFD_PRIV_QUEUE_BUFFERS,
};

/* The fields of a queue record that the plugin uses. */
struct kfd_priv_queue {
	/* Addresses of the buffers, 0 if the queue has no such buffer. */
	uint64_t buffers[KFD_PRIV_QUEUE_BUFFERS];
	/* Where the record is in the data, and the bytes of it with all hardware state. */
	uint64_t offset;
	uint64_t size;
	/* The id that the process knows. */
	uint32_t gpu_id;
	uint32_t type;
	uint32_t id;
	/* Bytes of the area that receives the state of running waves. */
	uint32_t cwsr_size;
	/* Bytes of hardware state after the record: one MQD for each XCC that the driver saved. */
	uint32_t mqd_size;
	/* Bytes of control stacks behind that. */
	uint32_t ctl_stack_size;
};

/* Lists the queues in memory that the caller frees. */
int kfd_priv_list_queues(const struct kfd_priv *priv, struct kfd_priv_queue **ret_queues,
			 size_t *ret_num_queues);

/* Lists the memory of the process that GPUs use, in memory that the caller frees: userptr BOs, of
 * which @bos tells kind and size, and SVM ranges. */
int kfd_priv_list_memory(const struct kfd_priv *priv, const struct kfd_bo_bucket *bos,
			 struct proc_range **ret_ranges, size_t *ret_num_ranges);

/* A BO of the data that kfd_priv_build() makes. */
struct kfd_priv_bo {
	/* The BO whose record is copied; KFD_PRIV_NO_BO: the record is that of a new BO, which no
	 * GPU maps. */
	uint32_t index;
	/* Its address in the process, if it is a userptr BO now. */
	uint64_t user_addr;
};

#define KFD_PRIV_NO_BO UINT32_MAX

struct kfd_priv_parts {
	uint32_t num_devices;
	const struct kfd_priv_bo *bos;
	uint32_t num_bos;
	/* The queue to copy, or NULL. The copy has no GWS, which a GPU has once. */
	const struct kfd_priv_queue *queue;
};

/* Builds the data of another process, in the layout of @priv, from parts of @priv. The caller frees
 * the result. */
int kfd_priv_build(const struct kfd_priv *priv, const struct kfd_priv_parts *parts,
		   uint8_t **ret_data, size_t *ret_size);

/* No driver knows more GPUs (MAX_GPU_INSTANCE in kfd_priv.h). */
#define KFD_PRIV_GPUS_MAX 64

/* A share handle of AMD's out-of-tree driver has 128 random bits (kfd_ipc.c). */
#define KFD_SHARE_WORDS 4

/* What the record of a BO says of legacy IPC. */
struct kfd_priv_ipc {
	/* The driver's records have these fields. */
	bool is_known;
	/* The process has imported the BO. Zero, too, for a BO without a share handle. */
	bool is_imported;
	/* All zero: the BO has none. */
	uint32_t handle[KFD_SHARE_WORDS];
};

/* What a BO record says. */
struct kfd_priv_bo_record {
	/* The number by which the process knows the BO on its GPU. */
	uint32_t handle;
	/* The GPUs that map the BO, by the ids that the process knows. */
	uint32_t gpu_ids[KFD_PRIV_GPUS_MAX];
	uint32_t num_gpus;
	struct kfd_priv_ipc ipc;
};

/* Reads the record of BO @index. -EINVAL: the data has no such record, or its layout is not known.
 */
int kfd_priv_read_bo(const struct kfd_priv *priv, uint32_t index,
		     struct kfd_priv_bo_record *ret_record);

static inline bool kfd_priv_has_share_handle(const struct kfd_priv_ipc *ipc)
{
	return ipc->handle[0] || ipc->handle[1] || ipc->handle[2] || ipc->handle[3];
}

/* Replaces the share handle of BO @index, which has one, in the data at @bytes that @priv
 * describes. */
void kfd_priv_write_share_handle(const struct kfd_priv *priv, uint32_t index,
				 const uint32_t *handle, uint8_t *bytes);

/* Removes the records of the BOs whose element of @cut is true from the @size bytes at @bytes,
 * which @priv describes. Returns the new size. */
int kfd_priv_cut_bos(const struct kfd_priv *priv, const bool *cut, uint8_t *bytes,
		     size_t *ret_size);

/* Marks the data by another version, which the kernel refuses before it does anything
 * (criu_restore_process() in kfd_chardev.c). kfd_priv_unmark() removes the mark. The functions here
 * read marked data, too. */
void kfd_priv_mark(uint8_t *bytes, size_t size);
void kfd_priv_unmark(uint8_t *bytes, size_t size);

/* The size of the data with @num_more more devices. */
size_t kfd_priv_size_with(const struct kfd_priv *priv, uint32_t num_more);
/* Copies the data to @to, which has room for kfd_priv_size_with() bytes, and adds the records of
 * @num_more devices after those of the other devices. */
void kfd_priv_copy_with(const struct kfd_priv *priv, uint32_t num_more, uint8_t *to);

#endif
