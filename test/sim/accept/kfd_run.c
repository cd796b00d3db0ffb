// SPDX-License-Identifier: GPL-2.0-only
/*
 * Stock libhsakmt on every simulated GPU: open, topology, VRAM, GTT and user memory through CPU and
 * queue, events. Checkpoints are criu_self.c's. */
#include <time.h>

#include "kfd.h"

#define MIB (1ull << 20)

static void expect_standstill(struct queue *queue)
{
	int tries;

	queue_ring_doorbell(queue);
	for (tries = 0; tries < 20000 && !sim_read("violations"); tries++)
		usleep(1000);
	expect_violations(1);
}

static void test_memory(HSAuint32 node, HsaEvent *event)
{
	uint32_t *vram = kfd_alloc(node, 8 * MIB, 1), *gtt = kfd_alloc(node, 8 * MIB, 0),
		 *user = kfd_alloc_user(8 * MIB);
	struct queue queue;
	uint32_t *at;

	CHECK_INT(vram[1000], 0);
	fill_pattern(user, 8 * MIB, node);
	queue_open(&queue, node);
	queue_copy(&queue, vram, user, 8 * MIB);
	queue_copy(&queue, gtt, vram, 8 * MIB);
	queue_wait(&queue, event);
	CHECK(has_pattern(vram, 8 * MIB, node));
	CHECK(has_pattern(gtt, 8 * MIB, node));
	/* constant fill */
	at = queue_reserve(&queue, 5);
	at[0] = 11 | 2u << 30;
	at[1] = (uint32_t)(uint64_t)user;
	at[2] = (uint32_t)((uint64_t)user >> 32);
	at[3] = 0xabcd1234;
	at[4] = 8192 - 1;
	queue_wait(&queue, event);
	CHECK(user[0] == 0xabcd1234 && user[2047] == 0xabcd1234 &&
	      user[2048] == pattern(2048, node));
	queue_close(&queue);
	kfd_free(vram, 8 * MIB);
	kfd_free(gtt, 8 * MIB);
	kfd_free(user, 8 * MIB);
}

/* What a queue may reach of registered memory: all of it, nothing beside it, and nothing once the
 * process has unmapped it. A queue that went too far stands still. */
static void test_registered(HSAuint32 node, HsaEvent *event)
{
	uint8_t *vram = kfd_alloc(node, MIB, 1), *memory = kfd_register(MIB);
	struct queue queue;

	fill_pattern(memory, MIB, 21);
	queue_open(&queue, node);
	queue_copy(&queue, vram, memory, MIB);
	queue_copy(&queue, memory, vram + MIB / 2, MIB / 2);
	queue_wait(&queue, event);
	CHECK(has_pattern(vram, MIB, 21));
	CHECK(!memcmp(memory, vram + MIB / 2, MIB / 2));
	expect_violations(0);
	queue_copy(&queue, vram, memory + MIB - 16, 17);
	expect_standstill(&queue);
	queue_close(&queue);
	queue_open(&queue, node);
	CHECK_INT(munmap(memory + 8192, 4096), 0);
	queue_copy(&queue, memory + 12288, memory, 8192);
	queue_wait(&queue, event);
	expect_violations(0);
	queue_copy(&queue, memory + 8192, vram, 4);
	expect_standstill(&queue);
	queue_close(&queue);
	(void)hsaKmtDeregisterMemory(memory);
	CHECK_INT(munmap(memory, MIB + 4096), 0);
	kfd_free(vram, MIB);
}

/* Many small packets around the ring, none lost and none twice: an atomic counter tells. */
static void test_many_packets(HSAuint32 node, HsaEvent *event)
{
	uint64_t *counter = kfd_alloc(node, 4096, 0);
	struct timespec start, end;
	struct queue queue;
	uint32_t *at;
	int i;

	queue_open(&queue, node);
	clock_gettime(CLOCK_MONOTONIC, &start);
	for (i = 0; i < 10000; i++) {
		at = queue_reserve(&queue, 8);
		memset(at, 0, 32);
		at[0] = 10 | 47u << 25;
		at[1] = (uint32_t)(uint64_t)counter;
		at[2] = (uint32_t)((uint64_t)counter >> 32);
		at[3] = 3;
		queue_ring_doorbell(&queue);
	}
	queue_wait(&queue, event);
	clock_gettime(CLOCK_MONOTONIC, &end);
	CHECK_INT(*counter, 30000);
	printf("  10000 packets in %ld us\n",
	       (end.tv_sec - start.tv_sec) * 1000000 + (end.tv_nsec - start.tv_nsec) / 1000);
	queue_close(&queue);
	kfd_free(counter, 4096);
}

static void test_events(void)
{
	HsaEventDescriptor descriptor = { .EventType = HSA_EVENTTYPE_SIGNAL };
	HsaEvent *event, *manual, *both[2];

	event = event_new();
	CHECK_INT(hsaKmtCreateEvent(&descriptor, 1, 1, &manual), HSAKMT_STATUS_SUCCESS);
	CHECK_INT(hsaKmtWaitOnEvent(event, 20), HSAKMT_STATUS_WAIT_TIMEOUT);
	CHECK_INT(hsaKmtSetEvent(event), HSAKMT_STATUS_SUCCESS);
	CHECK_INT(hsaKmtWaitOnEvent(event, 1000), HSAKMT_STATUS_SUCCESS);
	CHECK_INT(hsaKmtWaitOnEvent(event, 0), HSAKMT_STATUS_WAIT_TIMEOUT);
	CHECK_INT(hsaKmtWaitOnEvent(manual, 0), HSAKMT_STATUS_SUCCESS);
	both[0] = event;
	both[1] = manual;
	CHECK_INT(hsaKmtWaitOnMultipleEvents(both, 2, 1, 20), HSAKMT_STATUS_WAIT_TIMEOUT);
	CHECK_INT(hsaKmtWaitOnMultipleEvents(both, 2, 0, 20), HSAKMT_STATUS_SUCCESS);
	CHECK_INT(hsaKmtResetEvent(manual), HSAKMT_STATUS_SUCCESS);
	CHECK_INT(hsaKmtWaitOnEvent(manual, 0), HSAKMT_STATUS_WAIT_TIMEOUT);
	CHECK_INT(hsaKmtDestroyEvent(event), HSAKMT_STATUS_SUCCESS);
	CHECK_INT(hsaKmtDestroyEvent(manual), HSAKMT_STATUS_SUCCESS);
}

static void test_compute_queue(HSAuint32 node)
{
	HsaQueueResource resource;
	void *ring = kfd_alloc(node, 65536, 0);

	memset(&resource, 0, sizeof(resource));
	CHECK_INT(hsaKmtCreateQueue(node, HSA_QUEUE_COMPUTE, 100, HSA_QUEUE_PRIORITY_NORMAL, ring,
				    65536, NULL, &resource),
		  HSAKMT_STATUS_SUCCESS);
	CHECK_INT(hsaKmtDestroyQueue(resource.QueueId), HSAKMT_STATUS_SUCCESS);
	kfd_free(ring, 65536);
}

int main(void)
{
	static struct kfd kfd;
	HsaEvent *event;
	unsigned i;

	sim_write("violations", "0");
	kfd_open(&kfd);
	CHECK(kfd.num_gpus > 0);
	event = event_new();
	for (i = 0; i < kfd.num_gpus; i++) {
		test_memory(kfd.gpus[i], event);
		test_compute_queue(kfd.gpus[i]);
		test_registered(kfd.gpus[i], event);
	}
	test_many_packets(kfd.gpus[0], event);
	test_events();
	expect_violations(0);
	printf("kfd_run: ok on %u GPUs\n", kfd.num_gpus);
	return 0;
}
