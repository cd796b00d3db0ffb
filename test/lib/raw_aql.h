/* SPDX-License-Identifier: GPL-2.0-only */
/* An AQL queue by plain ioctls, its packets and signals, and kernels of the listing. Every function
 * that returns an int returns 0 or -errno. */
#ifndef TEST_LIB_RAW_AQL_H
#define TEST_LIB_RAW_AQL_H

#include "raw_kfd.h"

#define RAW_AQL_SLOTS 64u /* of a queue's ring */

enum {
	RAW_AQL_INVALID = 1,
	RAW_AQL_DISPATCH = 2,
};
#define RAW_AQL_SYSTEM_SCOPES (2u << 9 | 2u << 11)

/* The 64 bytes, as hsa.h has them; all packets end with the signal. */
struct raw_packet {
	uint16_t header, setup, workgroup[3], reserved1;
	uint32_t grid[3], private_bytes, group_bytes;
	uint64_t kernel, kernarg, reserved2, completion;
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

/* The size of the control stack of an XCC's waves (kfd_queue.c in the kernel, for gfx9). */
int raw_ctl_stack_size(const struct raw_gpu *gpu, uint32_t *ret_size);
/* Makes an AQL queue on the buffers that @args has already, and sets the rest of @args. */
int raw_aql_create_on(const struct raw_process *process, const struct raw_gpu *gpu,
		      struct kfd_ioctl_create_queue_args *args);

/* Prepares a signal in memory of CPU and GPU. */
void raw_signal_init(struct raw_signal *signal, int64_t value);

#define RAW_KERNEL_BYTES 1536u
/* Puts a kernel of test/data/kernels into memory: the kernel object begins at @to. */
int raw_kernel_load(const char *name, void *to, struct raw_packet *ret_packet);

#endif
