/* SPDX-License-Identifier: GPL-2.0-only */
/* The whole simulated machine: its GPUs, its settings and its counters. The parts have headers of
 * their own; this one has what they share. */
#ifndef SIM_H
#define SIM_H

#include "fault.h"
#include "sim_os.h"
#include "violation.h"

#define SIM_MAX_GPUS  64
#define SIM_DMA_RINGS 2

enum sim_count {
	SIM_COUNT_BOS,
	SIM_COUNT_PAGES,
	SIM_COUNT_DMABUFS,
	SIM_COUNT_RENDER_FILES,
	SIM_COUNT_USERPTRS,
	SIM_COUNT_MAPPINGS,
	SIM_COUNT_CONTEXTS,
	SIM_COUNT_BO_LISTS,
	SIM_COUNT_PROCESSES,
	SIM_COUNT_KFD_BOS,
	SIM_COUNT_QUEUES,
	SIM_COUNT_EVENTS,
	SIM_COUNTS
};

/* Settings that a test may change at any time: plain words, read once for each decision. */
struct sim_knobs {
	u64 fence_hang;
	u64 engine_bytes_per_s;
	u64 engine_latency_us;
	u64 bo_count_skew;
	u64 bo_record_size;
	u64 kfd_minor;
	u64 list_handles;
	u64 poison_vram;
	u64 skip_copies;
	u64 one_xcc;
	u64 one_mqd;
	u64 xcc_divisor;
	u64 no_ctl_stack;
	u64 running_kernels;
	u64 later_kernels;
	u64 no_svm;
	s64 noretry;
	u64 acquire_queue_buffers;
	u64 check_queue_buffers;
	u64 gpuvm_first_page;
	u64 in_reset;
	u64 evict_timeout;
	s64 memory_errors;
	u64 fault_queries;
	u64 gtt_bytes;
	/* Used where kernels.c says that kernels differ. */
	u64 last_ioctl;
	u64 process_pasid;
	u64 pause_nests;
	u64 bos_required;
	u64 addressless_bos;
	u64 kfd_client;
	u64 compute_gem_va;
	u64 list_alignment_bytes;
	u64 mmap_user_ids;
	u64 hive_imports;
	u64 kernel_event_page;
	u64 event_types;
	u64 gfx11_queues;
	u64 unacquired_oops;
	u64 unpause_oops;
	u64 ipc_handles;
	u64 maker_flags;
	u64 unchecked_handles;
	u64 unchecked_ids;
	u64 reset_hidden;
	u64 unknown_invalid;
};

/* A knob as a thread other than the test's reads it. */
#define SIM_KNOB(sim, name) __atomic_load_n(&(sim)->knobs.name, __ATOMIC_RELAXED)

/* A knob by its name; NULL: there is none. */
struct sim_knob;
const struct sim_knob *sim_knob_find(const char *name);
/* -EINVAL: the knob does not take the value. */
int sim_knob_set(struct sim *sim, const struct sim_knob *knob, s64 value);

struct sim_gpu {
	struct sim *sim;
	u32 index; /* among the GPUs, in the order of nodes */
	u32 node;
	u32 gpu_id;
	u32 render_minor;
	/* The PCI address, and the first GPU of the same PCI device. Partitions of a device share
	 * the offsets of mmap(). */
	u64 location;
	u32 device;
	u64 hive;      /* GPUs of a hive reach each other by XGMI. 0 if the GPU is in none */
	u32 partition; /* its number in the device */
	bool hidden;
	u64 vram_bytes;
	u64 vram_used, gtt_used; /* under sim->memory_lock */
	u32 device_id;
	u32 gfx_target_version;
	u32 num_xcc; /* 0: the topology does not have it */
	u32 simd_count, simd_per_cu, array_count, arrays_per_engine, cu_per_array;
	u32 num_sdma_engines, num_sdma_xgmi_engines, queues_per_engine;
	u64 sdma_busy[2]; /* queues in use, a bit each: normal, XGMI; under sim->engine_lock */
	struct sim_wait job_wait; /* wakes up: a command buffer has ended, or a hang has */
	u32 resets;               /* the number of resets; each loses VRAM; atomic */
	/* Uncorrectable memory errors since the simulation began, and with those before as the
	 * driver has cached their number; atomic. */
	u32 memory_errors, cached_memory_errors;
	u64 job_end_ns; /* the time when the copy engine will be idle; under sim->job_lock */
	void *front;
};

struct sim {
	struct sim_gpu gpus[SIM_MAX_GPUS];
	u32 num_gpus;
	u32 num_nodes;
	struct sim_knobs knobs;
	u32 pasids;    /* given out so far; atomic */
	u32 processes; /* made so far; atomic */
	struct sim_faults faults;
	struct sim_violations violations;
	s64 counts[SIM_COUNTS];

	struct sim_lock memory_lock;
	u64 system_used;

	/* Share handles of AMD's out-of-tree driver: kfd_ipc.c */
	struct sim_lock ipc_lock;
	struct sim_ipc *ipcs;

	/* Everything the queue engine looks at: list of queues, evictions. Held
	 * while each queue has a turn. */
	struct sim_lock engine_lock;
	u32 engine_waiters; /* for the lock, beside the engine; atomic */
	struct sim_queue *queues;
	struct sim_wait engine_wait; /* a queue became runnable */

	/* which jobs wait, run or are dropped; the last in the lock order */
	struct sim_lock job_lock;

	void *zero_page, *poison_page;
	void *mmio_page; /* stands for the HDP flush registers */
};

/* Whether it is of a generation whose GPUs can have partitions. */
bool sim_gpu_has_partitions(const struct sim_gpu *gpu);
/* Whether these are partitions of one PCI device, which share buffers, offsets and KFD's file. */
bool sim_gpu_same_device(const struct sim_gpu *a, const struct sim_gpu *b);
/* The partition of the device that has the first render node. */
struct sim_gpu *sim_gpu_device(struct sim_gpu *gpu);

/* A number for page tables, or for a process. No number is given out twice. */
u32 sim_pasid_new(struct sim *sim);

int sim_init(struct sim *sim);

void sim_count(struct sim *sim, enum sim_count what, s64 change);
/* The uncorrectable memory errors that sysfs shows of the GPU, since its driver was loaded; -1: the
 * driver counts none. */
s64 sim_gpu_memory_errors(const struct sim_gpu *gpu);
/* A text for the front end's files. Returns the length. */
int sim_print_counts(struct sim *sim, char *text, u32 size);

/* Accounts for @bytes of VRAM of @gpu, or of GTT and user memory: -ENOMEM. */
int sim_memory_charge(struct sim_gpu *gpu, bool vram, bool limited, u64 bytes);
void sim_memory_uncharge(struct sim_gpu *gpu, bool vram, bool limited, u64 bytes);
u64 sim_memory_vram_limit(const struct sim_gpu *gpu);

#endif
