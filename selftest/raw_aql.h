/* SPDX-License-Identifier: GPL-2.0-only */
/* An AQL queue by plain ioctls, its packets and signals, and kernels. Every function that returns
 * an int returns 0 or -errno. */
#ifndef SELFTEST_RAW_AQL_H
#define SELFTEST_RAW_AQL_H

#include "raw_kfd.h"

#define RAW_AQL_SLOTS 64u /* of a queue's ring */

enum {
	RAW_AQL_INVALID = 1,
	RAW_AQL_DISPATCH = 2,
	RAW_AQL_BARRIER_AND = 3,
};
#define RAW_AQL_SYSTEM_SCOPES (2u << 9 | 2u << 11)

/* The 64 bytes, as hsa.h has them; all packets end with the signal. */
struct raw_packet {
	uint16_t header, setup, workgroup[3], reserved1;
	uint32_t grid[3], private_bytes, group_bytes;
	uint64_t kernel, kernarg, reserved2, completion;
};

/* The same bytes of a packet that waits until all its signals are 0, or has none. */
struct raw_barrier {
	uint16_t header, reserved1;
	uint32_t reserved2;
	uint64_t signals[5], reserved3, completion;
};

/* As amd_hsa_signal.h has it. */
struct raw_signal {
	int64_t kind;
	volatile int64_t value;
	uint64_t mailbox;
	uint32_t event_id, reserved1;
	volatile uint64_t start, end;
	uint64_t queue, reserved2;
};

/* What a queue needs for waves that the driver saves: the control stack and the area of one XCC,
 * and the bytes of the buffer for all XCCs (kfd_queue_ctx_save_restore_size() in kfd_queue.c of the
 * kernel). Newer kernels compare the sizes with their own. */
struct raw_aql_sizes {
	uint32_t ctl_stack, save_area, total;
};
int raw_aql_find_sizes(const struct raw_gpu *gpu, struct raw_aql_sizes *ret_sizes);
/* Makes an AQL queue on the buffers that @args has already, and sets the rest of @args. */
int raw_aql_create_on(const struct raw_process *process, const struct raw_gpu *gpu,
		      struct kfd_ioctl_create_queue_args *args);

/* Prepares a signal in memory of CPU and GPU. */
void raw_signal_init(struct raw_signal *signal, int64_t value);

#define RAW_KERNEL_BYTES  1536u
#define RAW_KERNEL_DWORDS ((RAW_KERNEL_BYTES - 256u) / 4)
/* A kernel of test/data/kernels: its descriptor, and its code. */
struct raw_kernel {
	uint32_t descriptor[16];
	uint32_t dwords;
	uint32_t code[RAW_KERNEL_DWORDS];
};
/* Puts a kernel into RAW_KERNEL_BYTES of memory: the kernel object begins at @to. The packet starts
 * one wave of it. */
struct raw_packet raw_kernel_place(const struct raw_kernel *kernel, void *to);

#endif
