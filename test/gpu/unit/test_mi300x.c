// SPDX-License-Identifier: GPL-2.0-only
/* What several XCCs, AIDs and partitions add. Everything else is common with the MI210. */
#include "command_ring.h"

#include <kfd_pm4_headers_ai.h>
#include <kfd_pm4_headers_aldebaran.h>
#include <v9_structs.h>

#include "aql.h"
#include "ih.h"
#include "xcp.h"

#define XCCS       8u
#define LIST       0x60000u
#define MQDS       0x70000u
#define STRIDE     0x2000u
#define RING       0x100000u
#define WPTR       0x180000u
#define RPTR       0x181000u
#define SIGNAL     0x182000u
#define DOORBELL   0x700u
#define RING_BYTES 4096u
#define ALL_VMIDS  0xfff8u
#define BARRIER    3u

static int setup(void **state)
{
	(void)state;
	machine_setup_chip(&asic_mi300x);
	command_wptr = 0;
	return 0;
}

static void set_partitions(uint32_t xccs)
{
	unsigned int xcc;

	for (xcc = 0; xcc < XCCS; xcc++)
		regs_write(machine.gpu, gpu_register_of(xcc, asic_mi300x.xcp_control),
			   xccs << 3 | xcc % xccs);
}

#define CHIP_TEST(name) TEST_WITH(name, setup, machine_teardown)

CHIP_TEST(two_engines_of_an_xcc_have_numbers_of_its_partition)
{
	struct xcp last = { 7, 1 }, all = { 0, 8 };

	assert_int_equal(xcp_sdma_engine(machine.gpu, &last, 1), 15);
	assert_int_equal(xcp_sdma_engine(machine.gpu, &last, 2), -1);
	assert_int_equal(xcp_sdma_engine(machine.gpu, &all, 15), 15);
}

static struct v9_mqd *mqd_of(unsigned int xcc)
{
	return guest_page(MQDS + STRIDE * xcc);
}

static void make_mqds(void)
{
	unsigned int xcc;

	for (xcc = 0; xcc < XCCS; xcc++) {
		mqd_of(xcc)->cp_hqd_pq_base_lo = RING >> 8;
		mqd_of(xcc)->cp_hqd_pq_control = 9;
		mqd_of(xcc)->cp_hqd_aql_control = 1;
		mqd_of(xcc)->cp_hqd_pq_rptr_report_addr_lo = RPTR;
		mqd_of(xcc)->cp_mqd_stride_size = STRIDE;
		mqd_of(xcc)->compute_current_logic_xcc_id = xcc;
	}
}

/* A process with pages 1 MiB to 2 MiB, and a queue. @xcc: the first of the partition. */
static void run_list(unsigned int xcc)
{
	struct pm4_mes_map_process_aldebaran process = { 0 };
	struct pm4_mes_map_queues queue = { 0 };
	uint8_t *list = guest_page(LIST);
	uint64_t root = new_table(), page;

	for (page = 0x100000; page < 0x200000; page += 4096)
		map_page(root, page, (MACHINE_GUEST + page) | PTE_ALL | PTE_SYS);
	process.bitfields2.pasid = 0x8001;
	process.vm_context_page_table_base_addr_lo32 = LOW(root | 1);
	queue.bitfields3.doorbell_offset = DOORBELL;
	queue.mqd_addr_lo = MQDS;
	queue.wptr_addr_lo = WPTR;
	memcpy(list, &process, sizeof(process));
	*(uint32_t *)list = HEADER(IT_MAP_PROCESS, sizeof(process) / 4 - 2);
	memcpy(list + sizeof(process), &queue, sizeof(queue));
	*(uint32_t *)(list + sizeof(process)) = HEADER(IT_MAP_QUEUES, sizeof(queue) / 4 - 2);
	command_start(xcc);
	machine.gpu->queues[0].mqd = GART_ADDRESS(0x1000); /* the scheduler's queue */
	COMMAND(HEADER(PACKET3_SET_RESOURCES, 6), ALL_VMIDS | 1u << 29, 0, 0, 0, 0, 0, 0);
	COMMAND(HEADER(IT_RUN_LIST, 2), LIST, 0, (sizeof(process) + sizeof(queue)) / 4 | 1 << 23);
	run_commands();
}

static const struct queue *queue_on(unsigned int xcc)
{
	unsigned int i;

	for (i = 0; i < QUEUE_MAX; i++)
		if (machine.gpu->queues[i].active && machine.gpu->queues[i].is_user &&
		    machine.gpu->queues[i].space.instance == xcc)
			return &machine.gpu->queues[i];
	return NULL;
}

static void put_barriers(unsigned int count)
{
	unsigned int i;

	for (i = 0; i < RING_BYTES / AQL_PACKET_BYTES; i++)
		*(uint16_t *)guest_page(RING + AQL_PACKET_BYTES * i) = i < count ? BARRIER : 1;
}

CHIP_TEST(a_queue_is_on_each_xcc_and_its_packets_go_round)
{
	unsigned int xcc;

	make_mqds();
	put_barriers(9);
	*(uint64_t *)guest_page(SIGNAL) = 1; /* AMD_SIGNAL_KIND_USER */
	((uint64_t *)guest_page(RING))[7] = SIGNAL;
	run_list(0);
	for (xcc = 0; xcc < XCCS; xcc++) {
		assert_non_null(queue_on(xcc));
		assert_int_equal(aql_has_turn(queue_on(xcc)), xcc == 0);
		regs_write(machine.gpu, gpu_register_of(xcc, REG(GC, mmCP_MEC_CNTL)), 0);
	}
	queues_ring(machine.gpu, DOORBELL, 8);
	machine_run();
	for (xcc = 0; xcc < XCCS; xcc++)
		assert_int_equal(queue_on(xcc)->rptr, 9 * AQL_PACKET_BYTES);
	assert_int_equal(*(uint64_t *)guest_page(RPTR), 9);
	assert_int_equal(((int64_t *)guest_page(SIGNAL))[1], -1);
	assert_int_equal(machine.gpu->counters.aql_packets, 9);
	assert_violations(0);
}

CHIP_TEST(a_queue_waits_for_the_xcc_that_has_the_turn)
{
	make_mqds();
	put_barriers(3);
	run_list(0);
	regs_write(machine.gpu, gpu_register_of(7, REG(GC, mmCP_MEC_CNTL)), 0);
	queues_ring(machine.gpu, DOORBELL, 2);
	machine_run();
	/* packet 0 is for XCC 0, packet 1 for XCC 7: no other XCC runs */
	assert_int_equal(queue_on(7)->rptr, 2 * AQL_PACKET_BYTES);
}

CHIP_TEST(a_queue_of_one_xcc_stays_there)
{
	unsigned int xcc;

	set_partitions(1);
	make_mqds();
	run_list(5);
	for (xcc = 0; xcc < XCCS; xcc++)
		assert_int_equal(queue_on(xcc) != NULL, xcc == 5);
	assert_int_equal(ih_pasid_of(machine.gpu, &(struct space){ HUB_GFX, 3, 5 }), 0x8001);
	assert_int_equal(ih_pasid_of(machine.gpu, &(struct space){ HUB_MM, 3, 2 }), 0x8001);
	assert_int_equal(ih_pasid_of(machine.gpu, &(struct space){ HUB_GFX, 3, 0 }), 0);
	assert_violations(0);
}

CHIP_TEST(an_mqd_that_was_not_restored_is_a_violation)
{
	make_mqds();
	memset(mqd_of(6), 0, sizeof(struct v9_mqd));
	run_list(0);
	assert_violations(1);
	assert_non_null(strstr(machine.gpu->report.kept[0], "MQD"));
}
