/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Helpers on stock libhsakmt: opening all GPUs, buffers with the flags that runtimes use, and an
 * SDMA queue that is fed by hand. */
#ifndef ACCEPT_KFD_H
#define ACCEPT_KFD_H

#include <hsakmt.h>
#include <sys/mman.h>

#include "accept.h"

#define RING_BYTES 65536u

struct kfd {
	HsaSystemProperties system;
	HsaNodeProperties nodes[64];
	HSAuint32 gpus[64]; /* nodes with a GPU */
	unsigned num_gpus;
};

struct queue {
	HsaQueueResource resource;
	uint32_t *ring;
	uint64_t wptr; /* bytes */
};

static inline void kfd_open(struct kfd *kfd)
{
	HSAuint32 node;

	memset(kfd, 0, sizeof(*kfd));
	CHECK_INT(hsaKmtOpenKFD(), HSAKMT_STATUS_SUCCESS);
	CHECK_INT(hsaKmtAcquireSystemProperties(&kfd->system), HSAKMT_STATUS_SUCCESS);
	for (node = 0; node < kfd->system.NumNodes; node++) {
		CHECK_INT(hsaKmtGetNodeProperties(node, &kfd->nodes[node]), HSAKMT_STATUS_SUCCESS);
		if (kfd->nodes[node].NumFComputeCores)
			kfd->gpus[kfd->num_gpus++] = node;
	}
}

static inline void *kfd_alloc(HSAuint32 node, HSAuint64 size, int vram)
{
	HsaMemFlags flags = { .Value = 0 };
	HSAuint64 gpu_va;
	void *memory;

	flags.ui32.HostAccess = 1;
	flags.ui32.NonPaged = 1;
	flags.ui32.PageSize = HSA_PAGE_SIZE_4KB;
	flags.ui32.ExecuteAccess = !vram;
	flags.ui32.CoarseGrain = vram;
	CHECK_INT(hsaKmtAllocMemory(vram ? node : 0, size, flags, &memory), HSAKMT_STATUS_SUCCESS);
	CHECK_INT(hsaKmtMapMemoryToGPU(memory, size, &gpu_va), HSAKMT_STATUS_SUCCESS);
	return memory;
}

/* Paged system memory: a user pointer buffer. */
static inline void *kfd_alloc_user(HSAuint64 size)
{
	HsaMemFlags flags = { .Value = 0 };
	HSAuint64 gpu_va;
	void *memory;

	flags.ui32.HostAccess = 1;
	flags.ui32.PageSize = HSA_PAGE_SIZE_4KB;
	CHECK_INT(hsaKmtAllocMemory(0, size, flags, &memory), HSAKMT_STATUS_SUCCESS);
	CHECK_INT(hsaKmtMapMemoryToGPU(memory, size, &gpu_va), HSAKMT_STATUS_SUCCESS);
	return memory;
}

/* Ordinary memory that a program registers: SVM attributes are all it gets. Nothing else comes to
 * lie right behind it. */
static inline void *kfd_register(HSAuint64 size)
{
	HSAuint64 gpu_va = 0;
	void *memory;

	memory =
		mmap(NULL, size + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(memory != MAP_FAILED);
	CHECK_INT(mprotect((char *)memory + size, 4096, PROT_NONE), 0);
	CHECK_INT(hsaKmtRegisterMemory(memory, size), HSAKMT_STATUS_SUCCESS);
	CHECK_INT(hsaKmtMapMemoryToGPU(memory, size, &gpu_va), HSAKMT_STATUS_SUCCESS);
	CHECK(gpu_va == 0 || gpu_va == (HSAuint64)memory);
	return memory;
}

static inline void kfd_free(void *memory, HSAuint64 size)
{
	CHECK_INT(hsaKmtUnmapMemoryToGPU(memory), HSAKMT_STATUS_SUCCESS);
	CHECK_INT(hsaKmtFreeMemory(memory, size), HSAKMT_STATUS_SUCCESS);
}

static inline void queue_open(struct queue *queue, HSAuint32 node)
{
	memset(queue, 0, sizeof(*queue));
	queue->ring = kfd_alloc(node, RING_BYTES, 0);
	CHECK_INT(hsaKmtCreateQueue(node, HSA_QUEUE_SDMA, 100, HSA_QUEUE_PRIORITY_NORMAL,
				    queue->ring, RING_BYTES, NULL, &queue->resource),
		  HSAKMT_STATUS_SUCCESS);
}

static inline void queue_close(struct queue *queue)
{
	CHECK_INT(hsaKmtDestroyQueue(queue->resource.QueueId), HSAKMT_STATUS_SUCCESS);
	kfd_free(queue->ring, RING_BYTES);
}

/* A place for @dwords in one piece; the rest of the ring is skipped with NOPs. */
static inline uint32_t *queue_reserve(struct queue *queue, unsigned dwords)
{
	uint32_t *at;

	while (RING_BYTES - queue->wptr % RING_BYTES < dwords * 4) {
		queue->ring[queue->wptr % RING_BYTES / 4] = 0;
		queue->wptr += 4;
	}
	while (queue->wptr + dwords * 4 -
		       *(volatile HSAuint64 *)queue->resource.Queue_read_ptr_aql >
	       RING_BYTES)
		usleep(100);
	at = queue->ring + queue->wptr % RING_BYTES / 4;
	queue->wptr += dwords * 4;
	return at;
}

static inline void queue_ring_doorbell(struct queue *queue)
{
	__atomic_store_n(queue->resource.Queue_write_ptr_aql, queue->wptr, __ATOMIC_RELEASE);
	__atomic_store_n(queue->resource.Queue_DoorBell_aql, queue->wptr, __ATOMIC_RELEASE);
}

static inline void queue_copy(struct queue *queue, void *dst, const void *src, uint64_t size)
{
	uint64_t done, piece;

	for (done = 0; done < size; done += piece) {
		piece = size - done < 0x400000 ? size - done : 0x400000;
		put_copy(queue_reserve(queue, 7), (uint64_t)dst + done, (uint64_t)src + done,
			 (uint32_t)piece);
	}
}

static inline void queue_fence(struct queue *queue, void *addr, uint32_t value)
{
	uint32_t *at = queue_reserve(queue, 4);

	at[0] = 5;
	at[1] = (uint32_t)(uint64_t)addr;
	at[2] = (uint32_t)((uint64_t)addr >> 32);
	at[3] = value;
}

/* What a runtime emits at the end of work: write the event's slot, then interrupt. */
static inline void queue_signal(struct queue *queue, HsaEvent *event)
{
	uint32_t *at;

	queue_fence(queue, (void *)event->EventData.HWData2, event->EventId);
	at = queue_reserve(queue, 2);
	at[0] = 6;
	at[1] = event->EventId;
}

static inline HsaEvent *event_new(void)
{
	HsaEventDescriptor descriptor = { .EventType = HSA_EVENTTYPE_SIGNAL };
	HsaEvent *event;

	CHECK_INT(hsaKmtCreateEvent(&descriptor, 0, 0, &event), HSAKMT_STATUS_SUCCESS);
	return event;
}

static inline void queue_wait(struct queue *queue, HsaEvent *event)
{
	queue_signal(queue, event);
	queue_ring_doorbell(queue);
	CHECK_INT(hsaKmtWaitOnEvent(event, 60000), HSAKMT_STATUS_SUCCESS);
}

#endif
