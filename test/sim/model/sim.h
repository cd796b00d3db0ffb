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

/* What is counted, with the names in the file "objects". */
#define SIM_COUNTERS(X)                 \
	X(BOS, "bos")                   \
	X(PAGES, "pages")               \
	X(DMABUFS, "dmabufs")           \
	X(RENDER_FILES, "render_files") \
	X(USERPTRS, "userptrs")         \
	X(MAPPINGS, "mappings")         \
	X(CONTEXTS, "contexts")         \
	X(BO_LISTS, "bo_lists")         \
	X(PROCESSES, "processes")       \
	X(KFD_BOS, "kfd_bos")           \
	X(QUEUES, "queues")             \
	X(EVENTS, "events")

#define SIM_COUNTER(name, text) SIM_COUNT_##name,
enum sim_count { SIM_COUNTERS(SIM_COUNTER) SIM_COUNTS };

/* Settings that a test may change at any time, read once for each decision: X(name, value at the
 * start). README.md describes each. kernels.c sets those that are 0 here and differ between
 * kernels. */
#define SIM_KNOBS(X)                \
	X(fence_hang, 0)            \
	X(engine_bytes_per_s, 0)    \
	X(engine_latency_us, 100)   \
	X(skip_copies, 0)           \
	X(bo_count_skew, 0)         \
	X(poison_vram, 1)           \
	X(running_kernels, 0)       \
	X(later_kernels, 0)         \
	X(no_svm, 0)                \
	X(noretry, -1)              \
	X(in_reset, 0)              \
	X(evict_timeout, 0)         \
	X(memory_errors, 0)         \
	X(gtt_bytes, 64ull << 30)   \
	X(bo_record_size, 0)        \
	X(kfd_minor, 0)             \
	X(list_handles, 0)          \
	X(one_xcc, 0)               \
	X(one_mqd, 0)               \
	X(xcc_divisor, 0)           \
	X(no_ctl_stack, 0)          \
	X(fault_queries, 0)         \
	X(last_ioctl, 0)            \
	X(process_pasid, 0)         \
	X(pause_nests, 0)           \
	X(bos_required, 0)          \
	X(addressless_bos, 0)       \
	X(kfd_client, 0)            \
	X(compute_gem_va, 0)        \
	X(list_alignment_bytes, 0)  \
	X(mmap_user_ids, 0)         \
	X(hive_imports, 0)          \
	X(kernel_event_page, 0)     \
	X(event_types, 0)           \
	X(gfx11_queues, 0)          \
	X(acquire_queue_buffers, 0) \
	X(check_queue_buffers, 0)   \
	X(gpuvm_first_page, 0)      \
	X(unacquired_oops, 0)       \
	X(unpause_oops, 0)          \
	X(ipc_handles, 0)           \
	X(maker_flags, 0)           \
	X(unchecked_handles, 0)     \
	X(unchecked_ids, 0)         \
	X(reset_hidden, 0)          \
	X(unknown_invalid, 0)

#define SIM_KNOB_MEMBER(name, value) u64 name;
struct sim_knobs {
	SIM_KNOBS(SIM_KNOB_MEMBER)
};

/* A knob as a thread other than the test's reads it. */
#define SIM_KNOB(sim, name) __atomic_load_n(&(sim)->knobs.name, __ATOMIC_RELAXED)

/* Sets the knob @name. -ENOENT: no knob has this name; -EINVAL: the knob does not take the value.
 */
int sim_knob_set(struct sim *sim, const char *name, s64 value);
/* kernels.c: sets each knob that differs between kernels to its value under the kernel @name. A
 * later write to a knob has priority. -EINVAL: there is no such kernel. */
int sim_kernel_set(struct sim *sim, const char *name);

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
};

struct sim {
	struct sim_gpu gpus[SIM_MAX_GPUS];
	u32 num_gpus;
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
