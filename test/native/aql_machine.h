/* SPDX-License-Identifier: GPL-2.0-only */
/* A machine for tests of AQL queues: two queues, and memory that CPU and GPU share. */
#ifndef TEST_NATIVE_AQL_MACHINE_H
#define TEST_NATIVE_AQL_MACHINE_H

#include <unistd.h>

#include "raw_aql.h"
#include "sim_test.h"

#define DATA_BYTES   0x10000u
#define TURNS        10
#define ALL_GPUS_MAX 64

/* The parts of the memory that CPU and GPU share. */
#define CODE      0x0000u
#define ARGUMENTS 0x2000u
#define SIGNALS   0x3000u
#define COMMANDS  0x3800u
#define IN        0x4000u
#define OUT       0x8000u

struct machine {
	struct raw_process process;
	struct raw_aql queue, other;
	struct raw_bo memory;
};

static inline void *at(const struct machine *machine, uint32_t offset)
{
	return machine->memory.address + offset;
}

static inline struct raw_signal *signal_of(const struct machine *machine, uint32_t index)
{
	return (struct raw_signal *)at(machine, SIGNALS) + index;
}

static inline void start(struct machine *machine)
{
	assert_int_equal(raw_open_acquired(&machine->process), 0);
	assert_int_equal(raw_aql_create(&machine->process, 0, &machine->queue), 0);
	assert_int_equal(raw_aql_create(&machine->process, 0, &machine->other), 0);
	assert_int_equal(
		raw_alloc_mapped(&machine->process, 0, RAW_GTT, DATA_BYTES, &machine->memory), 0);
	memset(machine->memory.address, 0, DATA_BYTES);
	for (uint32_t i = 0; i < 8; i++)
		raw_signal_init(signal_of(machine, i), 1);
}

static inline void stop(struct machine *machine)
{
	for (int i = 0; i < machine->process.gpus && i < ALL_GPUS_MAX; i++)
		(void)close(machine->process.render[i]);
	(void)close(machine->process.kfd);
	sim_write("process_exit", "1");
}

static inline void submit(struct machine *machine, const struct raw_packet *packet)
{
	raw_aql_ring(&machine->queue, raw_aql_put(&machine->queue, packet));
}

/* Queues take turns: when the other queue has run packets one after another, this one had turns. */
static inline void let_queues_have_turns(struct machine *machine)
{
	const struct raw_packet nothing = { .header = RAW_AQL_AND };

	for (int i = 0; i < TURNS; i++) {
		raw_aql_ring(&machine->other, raw_aql_put(&machine->other, &nothing));
		assert_int_equal(raw_aql_wait(&machine->other), 0);
	}
}

#endif
