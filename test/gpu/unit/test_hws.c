// SPDX-License-Identifier: GPL-2.0-only
#include "command_ring.h"

#include <kfd_pm4_headers_ai.h>
#include <kfd_pm4_headers_aldebaran.h>
#include <v9_structs.h>
#include <vega10_sdma_pkt_open.h>

#define LIST       0x60000u /* the run list, in the guest's memory */
#define FENCE      0x58000u
#define MQDS       0x70000u /* two pages each: the second is for the control stack */
#define RINGS      0x100000u
#define RINGS_VA   0x100000ull
#define WPTRS      0x200000u
#define RING_BYTES 4096u
#define ALL_VMIDS  0xfff8u

static uint32_t list_dwords;

static void add_packet(const void *packet, size_t size_bytes, uint32_t op)
{
	uint32_t *at = (uint32_t *)guest_page(LIST) + list_dwords;

	memcpy(at, packet, size_bytes);
	at[0] = HEADER(op, size_bytes / 4 - 2);
	list_dwords += size_bytes / 4;
}

/* A process whose pages 1 MiB to 4 MiB are those of the guest. */
static void add_process(uint16_t pasid)
{
	struct pm4_mes_map_process_aldebaran packet = { 0 };
	uint64_t root = new_table(), page;

	for (page = 0x100000; page < 0x400000; page += 4096)
		map_page(root, page, (MACHINE_GUEST + page) | PTE_ALL | PTE_SYS);
	packet.bitfields2.pasid = pasid;
	packet.vm_context_page_table_base_addr_lo32 = LOW(root | 1);
	packet.vm_context_page_table_base_addr_hi32 = HIGH(root);
	add_packet(&packet, sizeof(packet), IT_MAP_PROCESS);
}

static uint64_t mqd_of(uint32_t number)
{
	return GART_ADDRESS(MQDS + 0x2000 * number);
}

static struct v9_sdma_mqd *sdma_mqd(uint32_t number)
{
	return guest_page(mqd_of(number));
}

static uint32_t *ring_of(uint32_t number)
{
	return guest_page(RINGS + RING_BYTES * number);
}

static uint64_t *wptr_of(uint32_t number)
{
	return guest_page(WPTRS + 8 * number);
}

/* An SDMA queue, whose doorbell is 0x100 + its number. */
static void add_sdma_queue(uint32_t number, unsigned int engine)
{
	struct pm4_mes_map_queues packet = { 0 };

	memset(sdma_mqd(number), 0, sizeof(struct v9_sdma_mqd));
	sdma_mqd(number)->sdmax_rlcx_rb_base = (RINGS_VA + RING_BYTES * number) >> 8;
	sdma_mqd(number)->sdmax_rlcx_rb_cntl = 10 << SDMA0_RLC0_RB_CNTL__RB_SIZE__SHIFT;
	packet.bitfields2.extended_engine_sel = extended_engine_sel__mes_map_queues__sdma0_to_7_sel;
	packet.bitfields2.engine_sel = engine;
	packet.bitfields3.doorbell_offset = 0x100 + number;
	packet.mqd_addr_lo = LOW(mqd_of(number));
	packet.wptr_addr_lo = WPTRS + 8 * number;
	add_packet(&packet, sizeof(packet), IT_MAP_QUEUES);
}

static void put_fence(uint32_t number, uint32_t value)
{
	uint32_t *at = ring_of(number) + *wptr_of(number) / 4;

	at[0] = SDMA_OP_FENCE;
	at[1] = 0x300000 + 4 * number;
	at[2] = 0;
	at[3] = value;
	*wptr_of(number) += 16;
}

static uint32_t fence_of(uint32_t number)
{
	return ((uint32_t *)guest_page(0x300000))[number];
}

static void end_list(void)
{
	uint32_t next = LIST;

	COMMAND(HEADER(IT_RUN_LIST, 2), next, 0, list_dwords | 1 << 23);
}

static void unmap_all_queues(void)
{
	COMMAND(HEADER(PACKET3_UNMAP_QUEUES, 4), 2 << 4, 0, 0, 0, 0);
	COMMAND(HEADER(PACKET3_QUERY_STATUS, 5), 1u << 30, 0, FENCE, 0, 0x1234, 0);
}

static int setup(void **state)
{
	unsigned int i;

	command_setup(state);
	machine.gpu->queues[0].mqd =
		GART_ADDRESS(0x1000); /* as the driver maps the scheduler's queue */
	list_dwords = 0;
	for (i = 0; i < asic_mi210.sdma_engines; i++)
		regs_write(machine.gpu, asic_mi210.sdma[i].base + regSDMA0_F32_CNTL, 0);
	COMMAND(HEADER(PACKET3_SET_RESOURCES, 6), ALL_VMIDS | 1u << 29, 0, 0, 0, 0, 0, 0);
	return 0;
}

static const struct queue *user_queue(uint32_t number)
{
	unsigned int i;

	for (i = 0; i < QUEUE_MAX; i++)
		if (machine.gpu->queues[i].active &&
		    machine.gpu->queues[i].doorbell == 0x100 + number)
			return &machine.gpu->queues[i];
	return NULL;
}

#define HWS_TEST(name) TEST_WITH(name, setup, machine_teardown)

HWS_TEST(a_queue_that_faulted_runs_again_when_it_is_mapped_anew)
{
	add_process(0x8001);
	add_sdma_queue(0, 0);
	put_fence(0, 7);
	ring_of(0)[1] = 0x900000; /* not mapped */
	end_list();
	assert_int_equal(run_commands(), -1);
	assert_true(user_queue(0)->is_faulted);
	ring_of(0)[1] = 0x300000;
	unmap_all_queues();
	end_list();
	assert_int_equal(run_commands(), -1);
	assert_int_equal(fence_of(0), 7);
	assert_violations(0);
}

HWS_TEST(processes_that_are_too_many_for_the_vmids_take_turns)
{
	uint32_t number, mapped = 0, turn;

	COMMAND(HEADER(PACKET3_SET_RESOURCES, 6), 0x18u | 1u << 29, 0, 0, 0, 0, 0, 0);
	for (number = 0; number < 3; number++) {
		add_process(0x8001 + number);
		add_sdma_queue(number, 0);
		put_fence(number, 1);
	}
	end_list();
	assert_true(run_commands() >= 0);
	for (number = 0; number < 3; number++)
		mapped += user_queue(number) != NULL;
	assert_int_equal(mapped, 2);
	for (turn = 0; turn < 10; turn++) {
		machine.gpu->hws[0].turn_ends_ns = 0;
		(void)machine_run();
	}
	assert_int_equal(fence_of(0) + fence_of(1) + fence_of(2), 3);
	assert_violations(0);
}

HWS_TEST(a_queue_without_a_process_is_a_violation)
{
	add_sdma_queue(0, 0);
	end_list();
	(void)run_commands();
	assert_violations(2); /* the packet, and the RUN_LIST that failed by it */
}
