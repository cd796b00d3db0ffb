// SPDX-License-Identifier: GPL-2.0-only
#include "machine.h"

#include <v9_structs.h>

#include "aql.h"
#include "gcn_listing.h"
#include "mqd.h"

#define DOORBELL   0x400u
#define RING_BYTES 4096u
/* Places in the guest's memory, which the process sees at the same addresses. */
#define RING        0x100000u
#define SIGNAL      0x110000u
#define MAILBOX     0x111000u
#define RPTR        0x112080u
#define KERNEL      0x120000u
#define CODE_OFFSET 256u
#define ARGUMENTS   0x121000u
#define CELLS       0x122000u
#define QUEUE       (RPTR - 128u) /* amd_queue_t */
#define INACTIVE    0x113000u
#define SCRATCH     0x130000u
#define WAVE_BYTES  5120u
#define SAVE_AREA   0x200000u
#define MQD         0x60000u
#define STACK       8192u
#define SAVE_BYTES  (2u << 20)

#define ROUNDS 20000u
#define ITEMS  64u

enum { VENDOR, INVALID, DISPATCH, BARRIER_AND, AGENT, BARRIER_OR };

static struct queue *queue(void)
{
	return &machine.gpu->queues[0];
}

static struct v9_mqd *mqd(void)
{
	return guest_page(MQD);
}

static void map_queue(void)
{
	*queue() = (struct queue){ .is_user = true };
	assert_int_equal(mqd_load_compute(machine.gpu, GART_ADDRESS(MQD), 0, queue()), 0);
	queue()->active = true;
	queue()->is_user = true;
	queue()->has_doorbell = true;
	queue()->doorbell = DOORBELL;
	queue()->space = (struct space){ HUB_GFX, 5, 0 };
}

static int setup(void **state)
{
	uint64_t root, page;

	machine_setup(state);
	regs_write(machine.gpu, REG(GC, mmCP_MEC_CNTL), 0);
	root = new_directory(5);
	for (page = 0; page < MACHINE_GUEST_BYTES; page += 4096)
		map_page(root, page, (MACHINE_GUEST + page) | PTE_ALL | PTE_SYS);
	for (page = 0; page < RING_BYTES; page += AQL_PACKET_BYTES)
		*(uint16_t *)guest_page(RING + page) = INVALID;
	*(int64_t *)guest_page(SIGNAL) = 1; /* AMD_SIGNAL_KIND_USER */
	mqd()->cp_hqd_pq_base_lo = RING >> 8;
	mqd()->cp_hqd_pq_control = 9;
	mqd()->cp_hqd_aql_control = 1;
	mqd()->cp_hqd_pq_rptr_report_addr_lo = RPTR;
	mqd()->cp_hqd_ctx_save_base_addr_lo = SAVE_AREA;
	mqd()->cp_hqd_ctx_save_size = SAVE_BYTES;
	mqd()->cp_hqd_cntl_stack_size = STACK;
	mqd()->cp_hqd_cntl_stack_offset = STACK;
	map_queue();
	return 0;
}

static void *packet(uint32_t index)
{
	return guest_page(RING + index * AQL_PACKET_BYTES);
}

static void put_barrier(uint32_t index, uint16_t type, uint64_t signal, uint64_t completion)
{
	uint64_t *at = packet(index);

	at[1] = signal;
	at[7] = completion;
	at[0] = type;
}

static int ring(uint64_t index)
{
	queues_ring(machine.gpu, DOORBELL, index);
	return machine_run();
}

static void put_kernel_of(uint32_t index, const char *name)
{
	struct listed_kernel kernel;
	uint32_t *at = packet(index);

	assert_int_equal(listing_read(name, &kernel), 0);
	memcpy(guest_page(KERNEL), kernel.descriptor, sizeof(kernel.descriptor));
	((uint32_t *)guest_page(KERNEL))[4] = CODE_OFFSET;
	((uint32_t *)guest_page(KERNEL))[5] = 0;
	memcpy(guest_page(KERNEL + CODE_OFFSET), kernel.code, 4ull * kernel.dwords);
	((uint64_t *)guest_page(ARGUMENTS))[0] = CELLS;
	((uint64_t *)guest_page(ARGUMENTS))[1] = ROUNDS;
	at[1] = ITEMS | 1 << 16;
	at[2] = 1;
	at[3] = ITEMS;
	at[4] = at[5] = 1;
	((uint64_t *)at)[4] = KERNEL;
	((uint64_t *)at)[5] = ARGUMENTS;
	((uint64_t *)at)[7] = SIGNAL;
	at[6] = kernel.descriptor[1];
	at[0] = DISPATCH | 1 << 16;
}

static void put_kernel(uint32_t index)
{
	put_kernel_of(index, "count");
}

static void assert_counted(void)
{
	const uint64_t *cells = guest_page(CELLS);
	uint64_t i, round, sum;

	for (i = 0; i < ITEMS; i++) {
		for (sum = 0, round = 0; round < ROUNDS; round++)
			sum = sum * 6364136223846793005ull + round + i;
		assert_true(cells[i] == sum);
	}
}

#define AQL_TEST(name) TEST_WITH(name, setup, machine_teardown)

AQL_TEST(a_packet_of_an_unknown_type_is_a_violation)
{
	put_barrier(0, AGENT, 0, 0);
	assert_int_equal(ring(0), -1);
	assert_true(queue()->is_faulted);
	assert_violations(1);
}

AQL_TEST(a_doorbell_more_than_a_ring_ahead_is_a_violation)
{
	assert_int_equal(ring(RING_BYTES / AQL_PACKET_BYTES), -1);
	assert_violations(1);
}

/* HIP 5.7.1 fills it with random values for RCCL. */
AQL_TEST(the_second_reserved_field_of_a_kernel_is_not_looked_at)
{
	put_kernel(0);
	((uint64_t *)packet(0))[6] = 0x5e1f;
	assert_int_equal(ring(0), -1);
	assert_counted();
	assert_violations(0);
}

/* Tests keep a kernel in its loop for minutes, on hosts whose processors have other work. */
AQL_TEST(a_kernel_that_runs_for_long_rests_between_its_turns)
{
	put_kernel(0);
	((uint64_t *)guest_page(ARGUMENTS))[1] = UINT64_MAX;
	assert_int_equal(ring(0), 1);
	assert_int_equal(queues_run(machine.gpu), 1);
	assert_true(queue()->aql->kernel.group.waves);
	assert_violations(0);
}

AQL_TEST(a_kernel_that_faults_stops_its_queue)
{
	put_kernel(0);
	((uint64_t *)guest_page(ARGUMENTS))[0] = 1ull << 40;
	assert_int_equal(ring(0), -1);
	assert_true(queue()->is_faulted);
	assert_int_equal(machine.interrupts, 1);
	assert_violations(0);
}

/* Runs the kernel for a while, and takes the queue off the hardware. */
static void save_in_the_middle(void)
{
	put_kernel(0);
	queues_ring(machine.gpu, DOORBELL, 0);
	(void)queues_run(machine.gpu);
	assert_true(queue()->aql && queue()->aql->kernel.group.waves);
	assert_int_equal(mqd_save(machine.gpu, queue(), true), 0);
	queue_remove(queue());
	assert_true(mqd()->cp_hqd_cntl_stack_offset < STACK);
	assert_true(mqd()->cp_hqd_wg_state_offset > STACK);
}

AQL_TEST(waves_that_were_changed_in_memory_are_lost)
{
	save_in_the_middle();
	map_queue();
	*(uint32_t *)guest_page(SAVE_AREA + STACK + 256) ^= 1;
	assert_true(mqd_load_waves(machine.gpu, queue()) < 0);
	assert_violations(1);
}

/* What ROCr's handler does for a queue without private memory. */
static void give_scratch(void)
{
	uint32_t *scratch = guest_page(QUEUE + 140);

	scratch[0] = WAVE_BYTES / 1024 << 12 | 1;
	scratch[1] = SCRATCH;
	scratch[2] = 1u << 31;
	scratch[3] = WAVE_BYTES;
	scratch[4] = 0x00ea4fac;
	*(uint64_t *)guest_page(QUEUE + 160) = SCRATCH;
	*(int64_t *)guest_page(INACTIVE + 8) = 0;
}

static void put_private_kernel(void)
{
	uint64_t *arguments = guest_page(ARGUMENTS);
	uint32_t i;

	put_kernel_of(0, "turn");
	arguments[1] = CELLS + 4096;
	arguments[2] = ROUNDS;
	for (i = 0; i < 64; i++)
		((uint32_t *)guest_page(CELLS + 4096))[i] = i * 2654435761u;
	*(uint64_t *)guest_page(QUEUE + 192) = INACTIVE;
	*(int64_t *)guest_page(INACTIVE) = 1;
	*(uint64_t *)guest_page(INACTIVE + 16) = MAILBOX;
	*(uint32_t *)guest_page(INACTIVE + 24) = 55;
}

static void assert_turned(void)
{
	const uint32_t *out = guest_page(CELLS), *in = guest_page(CELLS + 4096);
	uint32_t i, k, part[16], at;

	for (i = 0; i < ITEMS; i++) {
		for (k = 0; k < 16; k++)
			part[k] = in[(i + k) & 63] + k;
		for (at = in[i] & 15, k = 0; k < ROUNDS; k++) {
			part[at] += k * i;
			at = part[(at + 5) & 15] & 15;
		}
		assert_int_equal(out[i], part[at] + at);
	}
}

AQL_TEST(a_kernel_asks_for_private_memory)
{
	put_private_kernel();
	assert_int_equal(ring(0), 1);
	assert_int_equal(*(int64_t *)guest_page(INACTIVE + 8), 1);
	assert_int_equal(*(uint64_t *)guest_page(MAILBOX), 55);
	assert_int_equal(machine.interrupts, 1);
	assert_int_equal(machine_run(), 1);
	assert_int_equal(machine.interrupts, 1);
	give_scratch();
	assert_int_equal(machine_run(), -1);
	assert_turned();
	assert_violations(0);
}

AQL_TEST(waves_with_private_memory_leave_and_come_back)
{
	put_private_kernel();
	give_scratch();
	queues_ring(machine.gpu, DOORBELL, 0);
	(void)queues_run(machine.gpu);
	assert_true(queue()->aql && queue()->aql->kernel.group.waves);
	assert_int_equal(mqd_save(machine.gpu, queue(), true), 0);
	queue_remove(queue());
	map_queue();
	queue()->wptr = AQL_PACKET_BYTES;
	assert_int_equal(mqd_load_waves(machine.gpu, queue()), 0);
	assert_int_equal(machine_run(), -1);
	assert_turned();
	assert_violations(0);
}
