// SPDX-License-Identifier: GPL-2.0-only
/* The form in which a restore gives the driver the state of a queue of a GPU with eight XCCs. */
#include "kernel/kfd_queue.h"

#include "host.h"
#include "priv_builder.h"

#define BO_RECORD 272
#define XCCS      8
#define MQD       2048
#define STACK     12288
#define SDMA_MQD  512
#define RECORD    120

/* In an MQD: cp_hqd_pq_control, and cp_hqd_cntl_stack_offset, which the size and
 * cp_hqd_wg_state_offset follow. */
#define PQ_CONTROL   580
#define STACK_OFFSET 696
/* cp_hqd_pq_rptr and cp_hqd_pq_wptr_lo */
#define PQ_RPTR 552
#define PQ_WPTR 728

static const struct topology_node gpu = {
	.gpu_id = 0xdfd4, .gfx_target_version = 90402, .num_xcc = XCCS, .ctl_stack_size = STACK
};
static struct builder built;
/* The queue as it was saved, and as it was repaired. */
static struct kfd_priv_queue *queues, *repaired_queues;
static struct kfd_priv repaired_priv;
static struct kfd_queue saved, repaired;

/* Byte @at of the MQDs of the queue. */
static uint8_t pattern(size_t at)
{
	return (uint8_t)(at / MQD * 16 + at % 13);
}

static struct kfd_queue read_queue(struct kfd_priv *priv, struct kfd_priv_queue **list)
{
	size_t count = 0;

	free(*list);
	priv->layout = kfd_priv_parse(priv);
	assert_int_equal(kfd_priv_list_queues(priv, list, &count), 0);
	assert_int_equal(count, 1);
	return (struct kfd_queue){ .priv = priv, .saved = *list, .gpu = &gpu, .kfd_minor = 23 };
}

/* A queue, and an event behind it. */
static uint8_t *add_saved(uint32_t type, uint32_t mqd_size, uint32_t stack_size)
{
	uint8_t *record;

	begin(&built, BO_RECORD);
	record = built.bytes + built.priv.size;
	add_queue(&built, mqd_size, stack_size);
	set(record, 68, type);
	for (uint32_t i = 0; i < mqd_size; i++)
		record[RECORD + i] = pattern(i);
	set(add(&built, 64), 0, 1);
	built.priv.num_objects++;
	return record + RECORD;
}

static void add_compute(uint32_t stack_size)
{
	uint8_t *mqd = add_saved(KFD_PRIV_QUEUE_COMPUTE, XCCS * MQD, stack_size);

	for (uint32_t i = 0; i < XCCS; i++, mqd += MQD) {
		set(mqd, PQ_CONTROL, 0);
		for (uint32_t word = 0; word < 3; word++)
			set(mqd, STACK_OFFSET + 4 * word, STACK);
	}
	saved = read_queue(&built.priv, &queues);
}

static uint8_t *saved_mqd(uint32_t xcc)
{
	return built.bytes + saved.saved->offset + RECORD + (size_t)xcc * MQD;
}

static void repair(void)
{
	uint8_t *bytes = NULL;
	size_t size = 0;

	free((void *)repaired_priv.bytes);
	repaired_priv = built.priv;
	assert_int_equal(kfd_queue_repair(&saved, &bytes, &size), 1);
	repaired_priv.bytes = bytes;
	repaired_priv.size = size;
	repaired = read_queue(&repaired_priv, &repaired_queues);
	/* What is before the sizes, and behind the queue, stays. */
	assert_memory_equal(bytes, built.bytes, saved.saved->offset + 108);
	assert_memory_equal(bytes + size - 64, built.bytes + built.priv.size - 64, 64);
	assert_int_equal(kfd_queue_repair(&repaired, &bytes, &size), 0);
}

static const uint8_t *repaired_state(void)
{
	return repaired_priv.bytes + repaired.saved->offset + RECORD;
}

static void assert_as_saved(void)
{
	uint8_t *bytes = NULL;
	size_t size = 0;

	assert_int_equal(kfd_queue_repair(&saved, &bytes, &size), 0);
	assert_null(bytes);
}

UNIT_TEST(a_queue_at_rest_states_one_mqd_and_has_all)
{
	static const uint32_t stacks[] = { 0, XCCS * STACK };

	for (size_t i = 0; i < ARRAY_SIZE(stacks); i++) {
		print_message("case %zu\n", i);
		add_compute(stacks[i]);
		repair();
		assert_int_equal(repaired.saved->mqd_size, MQD);
		assert_int_equal(repaired.saved->ctl_stack_size, XCCS * STACK);
		assert_memory_equal(repaired_state(), saved_mqd(0), XCCS * MQD);
		for (size_t j = XCCS * MQD; j < MQD + XCCS * STACK; j++)
			assert_int_equal(repaired_state()[j], 0);
	}
}

/* No rule takes it for the record of one XCC, which has one control stack. */
UNIT_TEST(a_repaired_queue_has_all_xccs)
{
	add_compute(0);
	repair();
	assert_false(kfd_queue_lacks_xccs(&repaired));
	assert_false(kfd_queue_reads_beyond(&repaired));
	assert_false(kfd_queue_exceeds_xccs(&repaired));
	assert_false(kfd_queue_exceeds_stack(&repaired));
	assert_false(kfd_queue_has_odd_size(&repaired));
	assert_false(kfd_queue_has_waves(&repaired));
	assert_false(kfd_queue_loses_waves(&repaired));
	assert_false(kfd_queue_has_kernel_rights(&repaired));
	repaired.kfd_minor = 17;
	assert_true(kfd_queue_exceeds_xccs(&repaired));
	assert_false(kfd_queue_lacks_xccs(&repaired));
}

UNIT_TEST(the_mqds_of_all_xccs_are_looked_at)
{
	add_compute(0);
	set(saved_mqd(XCCS - 1), PQ_CONTROL, 1u << 31);
	repair();
	assert_true(kfd_queue_has_kernel_rights(&repaired));
}

/* An image may have anything behind one MQD: then it is the record of one XCC. */
UNIT_TEST(a_record_that_is_not_all_at_rest_is_that_of_one_xcc)
{
	static const struct {
		uint32_t offset, value;
	} cases[] = { { STACK_OFFSET, STACK - 8 },
		      { STACK_OFFSET + 8, STACK + 256 },
		      { STACK_OFFSET + 4, 0 } };

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		print_message("case %zu\n", i);
		add_compute(0);
		repair();
		memcpy((uint8_t *)repaired_state() + (XCCS - 1) * MQD + cases[i].offset,
		       &cases[i].value, sizeof(cases[i].value));
		assert_true(kfd_queue_lacks_xccs(&repaired));
		assert_true(kfd_queue_reads_beyond(&repaired));
	}
}

UNIT_TEST(a_queue_with_waves_stays_as_it_was_saved)
{
	add_compute(XCCS * STACK);
	set(saved_mqd(XCCS - 1), STACK_OFFSET, STACK - 8);
	assert_true(kfd_queue_has_waves(&saved));
	assert_as_saved();
}

/* Its packets wait until the CPU changes a signal, which it cannot do during a dump. */
UNIT_TEST(a_queue_that_waits_behind_a_barrier_has_no_waves)
{
	add_compute(0);
	for (uint32_t i = 0; i < XCCS; i++) {
		set(saved_mqd(i), PQ_RPTR, 16);
		set(saved_mqd(i), PQ_WPTR, 48);
	}
	assert_false(kfd_queue_has_waves(&saved));
	assert_false(kfd_queue_loses_waves(&saved));
}

/* The driver would restore one of its MQDs. */
UNIT_TEST(a_queue_for_an_older_driver_stays_as_it_was_saved)
{
	add_compute(XCCS * STACK);
	saved.kfd_minor = 17;
	assert_as_saved();
}

/* The MQDs would not have room in the control stacks. */
UNIT_TEST(a_queue_with_a_small_control_stack_stays_as_it_was_saved)
{
	add_compute(XCCS * STACK);
	for (uint32_t i = 0; i < XCCS; i++) {
		for (uint32_t word = 0; word < 3; word++)
			set(saved_mqd(i), STACK_OFFSET + 4 * word, 1024);
	}
	assert_as_saved();
}

UNIT_TEST(a_copy_queue_has_one_mqd)
{
	static const uint32_t types[] = { KFD_PRIV_QUEUE_SDMA, KFD_PRIV_QUEUE_SDMA_XGMI };

	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		(void)add_saved(types[i], XCCS * SDMA_MQD, 0);
		saved = read_queue(&built.priv, &queues);
		saved.kfd_minor = 17;
		repair();
		assert_int_equal(repaired.saved->mqd_size, SDMA_MQD);
		assert_int_equal(repaired.saved->ctl_stack_size, 0);
		assert_memory_equal(repaired_state(), saved_mqd(0), SDMA_MQD);
	}
	(void)add_saved(KFD_PRIV_QUEUE_SDMA, SDMA_MQD, 0);
	saved = read_queue(&built.priv, &queues);
	assert_as_saved();
}
