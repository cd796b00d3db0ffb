// SPDX-License-Identifier: GPL-2.0-only
#include "machine.h"

#include <vega10_sdma_pkt_open.h>

#define RING_BYTES 4096u
#define DOORBELL   0x1e0u
#define RPTR_COPY  0x40000u /* in the guest's memory */
#define VA         0x100000000ull
#define LOW(x)     ((uint32_t)(x))
#define HIGH(x)    ((uint32_t)((uint64_t)(x) >> 32))

/* Where the next packet goes. */
static struct {
	uint32_t *dwords;
	uint64_t wptr;
} ring;

static uint32_t *engine(void)
{
	return machine.gpu->regs + asic_mi210.sdma[0].base;
}

/* What sdma_v4_0_gfx_resume() does. */
static int setup(void **state)
{
	uint64_t base = GART_ADDRESS(MACHINE_RING);

	machine_setup(state);
	ring.dwords = guest_page(MACHINE_RING);
	ring.wptr = 0;
	regs_write(machine.gpu, asic_mi210.sdma[0].base + regSDMA0_F32_CNTL, 0);
	engine()[regSDMA0_GFX_RB_BASE] = LOW(base >> 8);
	engine()[regSDMA0_GFX_RB_BASE_HI] = HIGH(base >> 8);
	engine()[regSDMA0_GFX_RB_RPTR_ADDR_LO] = RPTR_COPY;
	engine()[regSDMA0_GFX_DOORBELL] = SDMA0_GFX_DOORBELL__ENABLE_MASK;
	engine()[regSDMA0_GFX_DOORBELL_OFFSET] = DOORBELL << 2;
	regs_write(machine.gpu, asic_mi210.sdma[0].base + regSDMA0_GFX_RB_CNTL,
		   SDMA0_GFX_RB_CNTL__RB_ENABLE_MASK | 10 << SDMA0_GFX_RB_CNTL__RB_SIZE__SHIFT);
	return 0;
}

/* The same ring, as a queue of a process in VMID 5. */
static uint64_t become_user_queue(void)
{
	uint64_t root = new_directory(5), page;
	struct queue *queue = &machine.gpu->queues[0];

	for (page = 0; page < MACHINE_GUEST_BYTES; page += 4096)
		map_page(root, page, (MACHINE_GUEST + page) | PTE_ALL | PTE_SYS);
	queue->is_user = true;
	queue->space.vmid = 5;
	return root;
}

#define PUT(...) put((const uint32_t[]){ __VA_ARGS__ }, sizeof((uint32_t[]){ __VA_ARGS__ }) / 4)

static void put(const uint32_t *dwords, size_t count)
{
	size_t i;

	for (i = 0; i < count; i++, ring.wptr += 4)
		ring.dwords[ring.wptr % RING_BYTES / 4] = dwords[i];
}

static void put_copy(uint64_t to, uint64_t from, uint32_t size_bytes)
{
	PUT(SDMA_OP_COPY, size_bytes - 1, 0, LOW(from), HIGH(from), LOW(to), HIGH(to));
}

static void put_fence(uint64_t at, uint32_t value)
{
	PUT(SDMA_OP_FENCE, LOW(at), HIGH(at), value);
}

static int run(void)
{
	queues_ring(machine.gpu, DOORBELL, ring.wptr);
	return machine_run();
}

#define SDMA_TEST(name) TEST_WITH(name, setup, machine_teardown)

SDMA_TEST(a_window_is_copied_row_by_row)
{
	uint8_t *from = guest_page(0x50000), *to = guest_page(0x60000);
	uint32_t i;

	for (i = 0; i < 64; i++)
		from[i] = i;
	/* 3 bytes of 2 rows, from (1, 1) of rows of 8 to (0, 0) of rows of 16 */
	PUT(SDMA_OP_COPY | SDMA_SUBOP_COPY_LINEAR_SUB_WIND << 8, 0x50000, 0, 1 | 1 << 16, 7 << 13,
	    63, 0x60000, 0, 0, 15 << 13, 255, 2 | 1 << 16, 0);
	assert_int_equal(run(), -1);
	assert_memory_equal(to, from + 9, 3);
	assert_memory_equal(to + 16, from + 17, 3);
	assert_int_equal(to[3], 0);
}

/* The packet behind it shows that the ring goes on. */
SDMA_TEST(a_copy_of_nothing_by_the_driver_is_a_violation)
{
	*(uint32_t *)guest_page(0x50000) = 7;
	put_copy(0x60000, 0x50000, 0);
	put_fence(GART_ADDRESS(0x70000), 1);
	assert_int_equal(run(), -1);
	assert_int_equal(*(uint32_t *)guest_page(0x60000), 0);
	assert_int_equal(*(uint32_t *)guest_page(0x70000), 1);
	assert_violations(1);
}

/* Hardware tells the driver, reads zeros and goes on: the fence must come. */
SDMA_TEST(a_fault_of_a_command_buffer_does_not_stop_the_ring)
{
	(void)new_directory(5);
	PUT(SDMA_OP_INDIRECT | 5 << 16, LOW(VA), HIGH(VA), 8, 0, 0);
	put_fence(GART_ADDRESS(0x60000), 2);
	assert_int_equal(run(), -1);
	assert_int_equal(machine.interrupts, 1);
	assert_int_equal(*(uint32_t *)guest_page(0x60000), 2);
	assert_violations(0);
}

SDMA_TEST(a_queue_of_a_process_stops_in_front_of_what_faults)
{
	uint64_t fence_at;

	(void)become_user_queue();
	put_fence(0x50000, 1);
	fence_at = ring.wptr;
	put_fence(VA, 1);
	assert_int_equal(run(), -1);
	assert_true(machine.gpu->queues[0].is_faulted);
	assert_int_equal(machine.gpu->queues[0].rptr, fence_at);
	assert_int_equal(machine.interrupts, 1);
	assert_int_equal(machine.gpu->counters.faults, 1);
	assert_violations(0);
}

SDMA_TEST(a_process_writes_no_registers)
{
	(void)become_user_queue();
	PUT(SDMA_OP_SRBM_WRITE, 0x1000, 1);
	assert_int_equal(run(), -1);
	assert_true(machine.gpu->queues[0].is_faulted);
	assert_violations(1);
}

SDMA_TEST(an_unknown_packet_is_a_violation)
{
	PUT(0x5a);
	assert_int_equal(run(), -1);
	assert_true(machine.gpu->queues[0].is_faulted);
	assert_violations(1);
}

SDMA_TEST(a_doorbell_that_goes_back_or_too_far_is_a_violation)
{
	queues_ring(machine.gpu, DOORBELL, 64);
	queues_ring(machine.gpu, DOORBELL, 32);
	queues_ring(machine.gpu, DOORBELL, RING_BYTES + 4);
	assert_int_equal(machine.gpu->queues[0].wptr, 64);
	assert_violations(2);
}

SDMA_TEST(an_engine_that_hangs_goes_on_afterwards)
{
	machine.gpu->hangs = true;
	put_fence(GART_ADDRESS(0x70000), 1);
	assert_int_equal(run(), -1);
	assert_int_equal(*(uint32_t *)guest_page(0x70000), 0);
	machine.gpu->hangs = false;
	assert_int_equal(run(), -1);
	assert_int_equal(*(uint32_t *)guest_page(0x70000), 1);
}

SDMA_TEST(a_reset_that_no_test_expects_is_a_violation)
{
	regs_write(machine.gpu, REG(NBIO, mmBIOS_SCRATCH_3), 1u << 29);
	assert_false(machine.gpu->queues[0].active);
	assert_violations(1);
	machine.gpu->expects_reset = true;
	machine.gpu->hangs = true;
	regs_write(machine.gpu, REG(NBIO, mmBIOS_SCRATCH_3), 0);
	regs_write(machine.gpu, REG(NBIO, mmBIOS_SCRATCH_3), 1u << 29);
	assert_int_equal(machine.gpu->counters.resets, 2);
	assert_false(machine.gpu->hangs);
	assert_violations(1);
}
