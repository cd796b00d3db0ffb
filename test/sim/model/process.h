/* SPDX-License-Identifier: GPL-2.0-only */
/* A KFD process: one for each address space, with a part for each GPU that was visible when it was
 * created. Memory, queues, events, SVM ranges and the CRIU operations have files of their own and
 * share these structs. */
#ifndef SIM_PROCESS_H
#define SIM_PROCESS_H

#include "abi_kfd.h"
#include "ids.h"
#include "render.h"

#define SIM_MAX_QUEUES       1024u
#define SIM_EVENT_PAGES      (KFD_EVENT_PAGE_BYTES / 4096)
#define SIM_EVENT_OTHER_BASE 0x40000000u

/* A buffer of KFD. */
struct sim_mem {
	struct sim_pdd *pdd;
	struct sim_bo *bo;
	u32 id; /* low half of the handle */
	u64 va;
	u32 flags;    /* KFD_MEM_* of the caller */
	u64 mapped;   /* a bit for each pdd whose page tables have it */
	u64 attached; /* or have had it */
	u64 user_addr;
	u32 gem_handle;            /* in KFD's own file; 0: this kernel has none */
	struct sim_dmabuf *dmabuf; /* the dma-buf made or imported; NULL: not yet */
	struct sim_ipc *ipc;       /* its share handle; NULL: none */
	bool imported;
};

/* The part of a process on one GPU. */
struct sim_pdd {
	struct sim_process *process;
	struct sim_gpu *gpu;
	u32 index;
	u32 user_gpu_id;
	struct sim_render *render; /* NULL: VM not acquired */
	struct sim_ids mems;
	void *doorbells[KFD_DOORBELL_SLICE / 4096];
	u8 doorbell_used[KFD_DOORBELL_SLICE / 8];
	u32 num_queues;
	u32 evicted;              /* under sim->engine_lock */
	struct sim_bo svm_window; /* the whole address space, as this GPU sees it */
};

struct sim_event {
	u32 id, type;
	bool auto_reset, signaled;
	u8 exception[32];
};

/* Attributes of an SVM range. The access of a GPU is a value of enum kfd_svm attribute types. */
struct sim_svm_range {
	struct sim_svm_range *next; /* ascending */
	u64 first, pages;           /* page numbers */
	u32 preferred_loc, prefetch_loc, flags, granularity;
	u8 access[SIM_MAX_GPUS];
};

/* A queue. The fields that the engine uses are under sim->engine_lock. */
struct sim_queue {
	struct sim_queue *next; /* in sim->queues */
	struct sim_pdd *pdd;
	u32 id, type, format; /* types as the kernel stores them */
	u64 ring_addr, ring_size, rptr_addr, wptr_addr;
	u64 eop_addr, cwsr_addr;
	u32 eop_size, cwsr_size, ctl_stack_size;
	u32 mqd_ctl_stack_size; /* as the MQD has it: RESTORE may make a smaller one */
	u32 percent, priority;
	u32 doorbell_id; /* 8-byte slot in the slice */
	u32 sdma_id;

	u64 rptr, wptr; /* growing bytes */
	bool reload;    /* take the write pointer from memory first: the queue was put (back) on the
			   hardware */
	bool restored;  /* made by CRIU_OP, and has not run since */
	bool hung;      /* had a bad packet or address */
	u64 last_doorbell;
	void *ctl_stack; /* ctl_stack_size bytes */
	char who[40];    /* for messages */
};

struct sim_process {
	struct sim *sim;
	struct sim_lock lock; /* serialises the ioctls */
	struct sim_pdd *pdds[SIM_MAX_GPUS];
	u32 num_pdds;
	bool mm_gone; /* under sim->engine_lock: the queues do not run any more */

	struct sim_ids queues; /* struct sim_queue */
	u64 packets;

	struct sim_lock event_lock;     /* everything about events; held for short times only */
	struct sim_ids signals, others; /* struct sim_event */
	void *event_page[SIM_EVENT_PAGES];
	struct sim_mem *event_mem; /* the owner of these pages; NULL: this process */
	bool event_page_set;
	u32 event_slots; /* usable ones */

	struct sim_lock svm_lock; /* ranges; held for short times only */
	struct sim_svm_range *svm;
	struct sim_svm_range *svm_pending; /* recorded by RESTORE for RESUME */

	/* The front end sets it: not the first KFD process of its address space, but a further
	 * context, which CREATE_PROCESS has made. */
	bool is_context;
	u32 pasid; /* 0: this kernel gives a process none */
	bool paused;
	u32 unpauses;         /* while kernels were running */
	u32 number;           /* of processes of this machine before it */
	bool blocked;         /* notifications, from RESTORE to RESUME */
	u32 resume_evictions; /* released by the worker that RESUME starts */
	u32 xnack;
};

/* The caller passes zeroed memory. Creates the parts for all GPUs that the caller may see: -ENOMEM.
 */
int sim_process_init(struct sim_process *process, struct sim *sim);
/* Releases everything, queues first. */
void sim_process_done(struct sim_process *process);
/* The address space is about to lose its mappings. After this call no queue touches it. */
void sim_process_mm_gone(struct sim_process *process);
/* A line for the file `processes`. The front end has pid and comm. */
int sim_process_print(struct sim_process *process, char *text, u32 size);

struct sim_pdd *sim_process_pdd(struct sim_process *process, u32 user_gpu_id);
/* Its part on a GPU whose VM it has: -EINVAL: the process has no such GPU; -ENODEV: no VM. */
int sim_process_pdd_with_vm(struct sim_process *process, u32 user_gpu_id, struct sim_pdd **ret_pdd);
/* The VRAM of its buffers, without imports. */
u64 sim_pdd_vram_bytes(struct sim_pdd *pdd);
/* The queues of the process in order: copies the first whose id is at least @id; false: there is
 * none. */
struct sim_queue_facts {
	u64 size_bytes;
	u32 id, type, gpu_id;
};
bool sim_process_next_queue(struct sim_process *process, u32 id, struct sim_queue_facts *ret_facts);
struct sim_pdd *sim_process_pdd_by_real_id(struct sim_process *process, u32 gpu_id);

/* The ioctl dispatcher. @user points to the argument in the caller's memory. SIM_KFD_NEW_CONTEXT:
 * the front end gives the open file a KFD process of its own, a context. */
#define SIM_KFD_NEW_CONTEXT 1
long sim_kfd_ioctl(struct sim_process *process, u32 cmd, u64 user);

/* mmap() of /dev/kfd: calls @ret_page for each page number of the pages at @offset (in bytes). */
struct sim_kfd_map {
	void *page[SIM_EVENT_PAGES];
	u32 count;
};
int sim_kfd_mmap(struct sim_process *process, u64 offset, u64 size, struct sim_kfd_map *ret_map);

/* Handlers of ioctls, by file. @size is the size of @args, which the dispatcher has checked to be
 * at least that of the struct. */
#define SIM_KFD_HANDLER(name)                                                     \
	int name(struct sim_process *process, __attribute__((unused)) void *args, \
		 __attribute__((unused)) u32 size)

/* kfd_device.c */
SIM_KFD_HANDLER(sim_kfd_get_version);
SIM_KFD_HANDLER(sim_kfd_acquire_vm);
SIM_KFD_HANDLER(sim_kfd_available_memory);
SIM_KFD_HANDLER(sim_kfd_set_xnack_mode);
/* Whether all GPUs of the process let it have XNACK on. */
bool sim_process_can_xnack(const struct sim_process *process);
/* Makes @render the VM of this GPU. Always takes over the caller's reference. */
int sim_pdd_acquire(struct sim_pdd *pdd, struct sim_render *render);

/* kfd_memory.c */
SIM_KFD_HANDLER(sim_kfd_alloc_memory);
SIM_KFD_HANDLER(sim_kfd_free_memory);
SIM_KFD_HANDLER(sim_kfd_map_memory);
SIM_KFD_HANDLER(sim_kfd_unmap_memory);
struct sim_mem_wanted {
	u64 va, size, user_addr;
	u32 flags;
	bool poisoned;
	bool fixed_id; /* RESTORE: this number or -ENOMEM */
	u32 id;
};
int sim_mem_new(struct sim_pdd *pdd, const struct sim_mem_wanted *wanted, struct sim_mem **ret_mem);
void sim_mem_free(struct sim_mem *mem);
int sim_mem_map(struct sim_mem *mem, struct sim_pdd *pdd);
/* The buffer of a handle, or NULL. */
struct sim_mem *sim_mem_find(struct sim_process *process, u64 handle);
/* The handle of the buffer in ioctls. */
u64 sim_mem_handle(const struct sim_mem *mem);
/* A call named a buffer that does not exist, which crashes some drivers. */
void sim_mem_note_missing(struct sim_process *process, const char *caller);
/* Gives @mem, which has its buffer, number *@id, or the lowest if that is NULL, and allows its
 * process to map it. */
int sim_mem_enter(struct sim_mem *mem, const u32 *id);

/* kfd_share.c */
SIM_KFD_HANDLER(sim_kfd_get_dmabuf_info);
SIM_KFD_HANDLER(sim_kfd_import_dmabuf);
SIM_KFD_HANDLER(sim_kfd_export_dmabuf);
/* Create and delete the buffer's handle in KFD's own file. */
int sim_mem_name(struct sim_mem *mem);
void sim_mem_unname(struct sim_mem *mem);
/* Enters a process's import of mem->bo, with the flags of an import, as number *@id; NULL: the
 * lowest that is free. -EINVAL: it is no GPU memory. */
int sim_mem_enter_import(struct sim_mem *mem, const u32 *id);
/* The buffer holds @dmabuf, which may be NULL, and takes over the caller's reference, or drops it.
 */
void sim_mem_keep_dmabuf(struct sim_mem *mem, struct sim_dmabuf *dmabuf);
void sim_mem_drop_dmabuf(struct sim_mem *mem);
/* The dma-buf of a VRAM or GTT buffer, with a reference. */
int sim_mem_dmabuf(struct sim_mem *mem, struct sim_dmabuf **ret_dmabuf);
/* The same as CHECKPOINT and RESTORE return it. */
int sim_mem_criu_dmabuf(struct sim_mem *mem, struct sim_dmabuf **ret_dmabuf);

/* kfd_ipc.c */
SIM_KFD_HANDLER(sim_kfd_ipc_export);
SIM_KFD_HANDLER(sim_kfd_ipc_import);
struct sim_share {
	u32 handle[SIM_SHARE_WORDS];
	u32 flags; /* of IPC_EXPORT */
};
struct sim_priv_ipc;
void sim_ipc_put(struct sim *sim, struct sim_ipc *ipc);
/* Whether a share handle has a reference to the dma-buf. */
bool sim_ipc_holds(struct sim *sim, const struct sim_dmabuf *dmabuf);
/* What CHECKPOINT says of the buffer. */
void sim_ipc_write_record(const struct sim_mem *mem, struct sim_priv_ipc *record);
/* RESTORE of a buffer whose record has a share handle. */
int sim_ipc_restore(struct sim_pdd *pdd, const struct sim_mem_wanted *wanted,
		    const struct sim_priv_ipc *record, struct sim_mem **ret_mem);

/* kfd_queue.c */
SIM_KFD_HANDLER(sim_kfd_create_queue);
SIM_KFD_HANDLER(sim_kfd_destroy_queue);
#define SIM_QUEUE_COMPUTE    0u
#define SIM_QUEUE_SDMA       1u
#define SIM_QUEUE_SDMA_XGMI  4u
#define SIM_QUEUE_FORMAT_PM4 0u
#define SIM_QUEUE_FORMAT_AQL 1u
/* Numbers that a restored queue must get; ~0: whatever is free. */
struct sim_queue_place {
	u32 id, sdma_id, doorbell_id;
};
/* Adds a copy of @wanted, made with calloc(). The errors of CREATE_QUEUE. The control stack
 * is copied, too; without one it starts empty. */
int sim_queue_add(struct sim_pdd *pdd, const struct sim_queue *wanted,
		  const struct sim_queue_place *place, struct sim_queue **ret_queue);
void sim_queue_remove(struct sim_queue *queue);
bool sim_queue_is_active(const struct sim_queue *queue);
/* Whether the buffers of the queue are mapped as CREATE_QUEUE requires: 0 or -EINVAL. */
int sim_queue_check_buffers(struct sim_pdd *pdd, const struct sim_queue *queue);
/* criu_queue.c: the bytes of hardware state that CHECKPOINT saves of a queue; a record with so many
 * bytes behind it, all zero, that it fills; and the bytes of an MQD of each XCC. */
struct sim_priv_queue;
u32 sim_queue_state_bytes(const struct sim_queue *queue);
void sim_queue_save(const struct sim_queue *queue, struct sim_priv_queue *record);
u32 sim_queue_mqd_bytes(const struct sim_gpu *gpu, u32 type);
/* The XCCs that CHECKPOINT saves. */
u32 sim_queue_saved_xccs(const struct sim_gpu *gpu);
/* The values of the knob gfx11_queues: what happens to queues from gfx11 on, which the firmware
 * schedules. */
#define SIM_GFX11_NOT_SAVED   0u
#define SIM_GFX11_NOT_REBUILT 1u
#define SIM_GFX11_OOPS        2u
#define SIM_GFX11_REBUILT     3u
/* gfx_target_version; no driver saves queues from gfx12 on. */
#define SIM_GFX9   90000u
#define SIM_GFX940 90400u
#define SIM_GFX10  100000u
#define SIM_GFX11  110000u
#define SIM_GFX12  120000u

/* engine.c */
/* Gives each queue a turn; false: no queue has done anything. */
bool sim_engine_pass(struct sim *sim);
/* Takes sim->engine_lock, in turn with an engine that never rests. */
void sim_engine_lock(struct sim *sim);
/* Is there a queue to look at? With no active queue the engine's thread may sleep
 * until woken through engine_wait. */
bool sim_engine_has_work(void *sim);
void sim_engine_kick(struct sim *sim);
/* Counted eviction of all queues of a GPU's part: the turn under way is completed first, waves of
 * kernels are saved. */
void sim_engine_evict(struct sim_pdd *pdd);
void sim_engine_restore(struct sim_pdd *pdd);

/* event.c */
SIM_KFD_HANDLER(sim_kfd_create_event);
void sim_events_init(struct sim_process *process);
void sim_events_done(struct sim_process *process);
int sim_events_set_page(struct sim_process *process, u64 handle);
u32 sim_events_count(struct sim_process *process);
/* The events in order, for CHECKPOINT; NULL at the end. */
struct sim_event *sim_events_next(struct sim_process *process, u32 *id);
/* Adds a copy of @wanted under its own id: -ENOSPC: it is taken. */
int sim_events_restore(struct sim_process *process, const struct sim_event *wanted);

/* svm.c */
SIM_KFD_HANDLER(sim_kfd_svm);
void sim_svm_init(struct sim_pdd *pdd);
void sim_svm_done(struct sim_process *process);
/* A queue's access to memory that is not in the page tables: sim_client.reach, with the GPU's part
 * as argument. Call it under sim->engine_lock, and not after mm_gone. */
int sim_svm_reach(void *pdd, u64 addr, u64 size, bool write, struct sim_reach *ret_reach);
bool sim_svm_overlaps(struct sim_process *process, u64 addr, u64 size);
/* Whether [addr, +size) is within ranges that @pdd may access. */
bool sim_svm_covers(struct sim_process *process, struct sim_pdd *pdd, u64 addr, u64 size);
/* The process has unmapped [start, end). */
void sim_svm_unmapped(struct sim_process *process, u64 start, u64 end);
int sim_svm_set(struct sim_process *process, u64 addr, u64 size,
		const struct kfd_ioctl_svm_attribute *attrs, u32 count);
u32 sim_svm_count(struct sim_process *process);

/* criu.c, criu_restore.c, criu_resume.c */
SIM_KFD_HANDLER(sim_kfd_criu);
int sim_criu_restore(struct sim_process *process, struct kfd_ioctl_criu_args *args);
/* Descriptors of dma-bufs that CHECKPOINT or RESTORE returns: reserved one by one, then all
 * installed or all released. The caller allocates the entries. add: *@ret_fd is set for buffers
 * with contents. */
struct sim_fds {
	struct {
		int fd;
		struct sim_dmabuf *dmabuf;
	} * entries;
	u32 count;
};
int sim_fds_add(struct sim_fds *fds, struct sim_mem *mem, u32 *ret_fd);
void sim_fds_settle(struct sim_fds *fds, bool install);
/* Whether records of BOs end with a struct sim_priv_ipc. */
bool sim_criu_has_ipc(const struct sim *sim);
/* RESUME of another process, by its pid: -ESRCH. */
int sim_criu_resume(u32 pid);
/* The worker that RESUME starts: the queues run again. */
void sim_criu_resume_work(struct sim_process *process);

#define SIM_PRIV_VERSION 1u
struct sim_priv_process {
	u32 version, xnack_mode;
};
/* The knob bo_record_size is the size of a BO's record. In a longer record, opaque words follow the
 * fields. RESTORE checks that they return as CHECKPOINT wrote them. */
struct sim_priv_bo {
	u64 user_addr;
	u32 id;
	u32 mapped_gpu_ids[64];
};
#define SIM_PRIV_BO_MIN    80u /* room for 16 GPUs */
#define SIM_PRIV_BO_MAX    4096u
#define SIM_PRIV_BO_OPAQUE 268u /* where the opaque words of a longer record begin */
/* What AMD's out-of-tree driver (the knob ipc_handles) has in the place of opaque words: zeros,
 * unless the BO has a share handle (kfd_criu_bo_priv_data in kfd_priv.h of 6.7.0 and 6.12.12). */
struct sim_priv_ipc {
	u32 is_imported, flags, share_handle[SIM_SHARE_WORDS], pad;
};
/* The opaque word at @offset in the record of the BO with that address, GPU and id. Never 0. */
u32 sim_priv_bo_word(u64 va, u32 user_gpu_id, u32 id, u32 offset);
#define SIM_PRIV_QUEUE 0u
#define SIM_PRIV_EVENT 1u
#define SIM_PRIV_SVM   2u
struct sim_priv_queue {
	u32 object_type, pad;
	u64 q_address, q_size, read_ptr_addr, write_ptr_addr, doorbell_off, eop_addr, cwsr_addr;
	u32 gpu_id, type, format, q_id, priority, q_percent, doorbell_id, gws, sdma_id;
	u32 eop_size, cwsr_size, ctl_stack_size, mqd_size, tail;
};
/* Start of the MQD: the state of the queue on the hardware. CHECKPOINT saves one for each XCC, and
 * a control stack for each XCC behind them all. */
#define SIM_MQD_MAGIC         0x51444d53414d4953ull
#define SIM_MQD_SDMA_BYTES    512u
#define SIM_MQD_COMPUTE_BYTES 2048u /* of each XCC */
/* Offsets in the MQD of a compute queue: cp_hqd_pq_control and cp_hqd_cntl_stack_size of struct
 * v9_mqd (include/v9_structs.h), and bits of the first: PRIV_STATE and KMD_QUEUE. */
#define SIM_MQD_CONTROL   580u
#define SIM_MQD_CTL_STACK 700u
#define SIM_MQD_STACK_TOP 696u /* cp_hqd_cntl_stack_offset */
#define SIM_MQD_WAVES_END 704u /* cp_hqd_wg_state_offset */
#define SIM_MQD_KERNEL    0xc0000000u
struct sim_mqd {
	u64 magic, rptr, wptr, ring_addr, ring_size;
};
struct sim_priv_event {
	u32 object_type, pad;
	u64 user_handle;
	u32 event_id, auto_reset, type, signaled;
	u8 exception[32];
};
struct sim_priv_svm {
	u32 object_type, pad;
	u64 first, pages;
	struct kfd_ioctl_svm_attribute attrs[];
};

_Static_assert(sizeof(struct sim_priv_queue) == 120, "priv_data");
_Static_assert(sizeof(struct sim_priv_event) == 64, "priv_data");
_Static_assert(sizeof(struct sim_priv_svm) == 24, "priv_data");
_Static_assert(sizeof(struct sim_priv_bo) == 272, "priv_data");
_Static_assert(SIM_PRIV_BO_OPAQUE + sizeof(struct sim_priv_ipc) == 296, "priv_data");

#endif
