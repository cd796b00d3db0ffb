/* SPDX-License-Identifier: GPL-2.0-only */
/* An AQL queue by plain ioctls, its packets and signals, and kernels of the listing. Every function
 * that returns an int returns 0 or -errno. */
#ifndef TEST_LIB_RAW_AQL_H
#define TEST_LIB_RAW_AQL_H

#include "raw_kfd.h"

#define RAW_AQL_SLOTS 64u /* of a queue's ring */

enum {
	RAW_AQL_VENDOR = 0,
	RAW_AQL_INVALID = 1,
	RAW_AQL_DISPATCH = 2,
	RAW_AQL_AND = 3,
	RAW_AQL_OR = 5,
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

struct raw_aql {
	struct raw_bo ring, pointers, eop, waves;
	volatile uint64_t *read, *write, *doorbell;
	uint32_t id;
	char *slice; /* the mapped pages of doorbells */
};

/* The size of the control stack of an XCC's waves (kfd_queue.c in the kernel, for gfx9). */
int raw_ctl_stack_size(const struct raw_gpu *gpu, uint32_t *ret_size);
/* Makes an AQL queue on the buffers that @args has already, and sets the rest of @args. */
int raw_aql_create_on(const struct raw_process *process, const struct raw_gpu *gpu,
		      struct kfd_ioctl_create_queue_args *args);
int raw_aql_create(struct raw_process *process, int gpu, struct raw_aql *ret_queue);
#define RAW_AQL_WAVES (4u << 20)
/* With an area for waves of @waves_bytes instead of RAW_AQL_WAVES. */
int raw_aql_create_with(struct raw_process *process, int gpu, uint32_t waves_bytes,
			struct raw_aql *ret_queue);
/* UPDATE_QUEUE: with 0 the queue is taken off the hardware. */
int raw_aql_set_percentage(struct raw_process *process, struct raw_aql *queue, uint32_t percentage);
int raw_aql_destroy(struct raw_process *process, struct raw_aql *queue);

/* Writes the packet into the next slot, the header last; the write index counts it. Returns the
 * packet's index. */
uint64_t raw_aql_put(struct raw_aql *queue, const struct raw_packet *packet);
void raw_aql_ring(struct raw_aql *queue, uint64_t index);
/* Waits until the read index is at the write index: -ETIME after some time. */
int raw_aql_wait(struct raw_aql *queue);

/* Prepares a signal in memory of CPU and GPU. */
void raw_signal_init(struct raw_signal *signal, int64_t value);
/* -ETIME after some time. */
int raw_signal_wait(const struct raw_signal *signal, int64_t value);

#define RAW_KERNEL_BYTES 1536u
/* Puts a kernel of test/data/kernels into memory: the kernel object begins at @to. */
int raw_kernel_load(const char *name, void *to, struct raw_packet *ret_packet);

#endif
