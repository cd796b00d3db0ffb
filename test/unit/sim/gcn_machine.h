/* SPDX-License-Identifier: GPL-2.0-only */
/* A machine for kernels in a unit test: memory is one array, and what is complained of is kept. */
#ifndef TEST_UNIT_SIM_GCN_MACHINE_H
#define TEST_UNIT_SIM_GCN_MACHINE_H

#include <unistd.h>

#include "gcn.h"
#include "gcn_listing.h"
#include "tests.h"

#define MEMORY_BASE  0x100000000ull
#define MEMORY_BYTES (1u << 20)
#define CODE         0x0u
#define ARGUMENTS    0x10000u
#define DATA         0x20000u
#define DATA_BYTES   0x10000u

struct machine {
	_Alignas(64) u8 memory[MEMORY_BYTES];
	char complaint[256];
	u32 interference; /* so many exchanges find another value than expected */
	struct sim_gcn_env env;
	struct sim_gcn_dispatch dispatch;
	struct sim_gcn_group group;
};

static struct machine machine;

static inline void *at(u64 offset)
{
	return machine.memory + offset;
}

static inline u64 va(u64 offset)
{
	return MEMORY_BASE + offset;
}

static inline bool is_inside(u64 address, u32 bytes)
{
	return address >= MEMORY_BASE && address + bytes <= MEMORY_BASE + MEMORY_BYTES;
}

static inline int machine_read(void *arg, u64 address, void *data, u32 bytes)
{
	(void)arg;
	if (!is_inside(address, bytes))
		return -EFAULT;
	memcpy(data, at(address - MEMORY_BASE), bytes);
	return 0;
}

static inline int machine_write(void *arg, u64 address, const void *data, u32 bytes)
{
	(void)arg;
	if (!is_inside(address, bytes))
		return -EFAULT;
	memcpy(at(address - MEMORY_BASE), data, bytes);
	return 0;
}

static inline int machine_exchange(void *arg, u64 address, u32 bytes, u64 *expected, u64 desired)
{
	u64 seen = 0;

	(void)arg;
	if (!is_inside(address, bytes))
		return -EFAULT;
	if (machine.interference) {
		machine.interference--;
		++*(u32 *)at(address - MEMORY_BASE);
	}
	memcpy(&seen, at(address - MEMORY_BASE), bytes);
	if (seen == *expected)
		memcpy(at(address - MEMORY_BASE), &desired, bytes);
	*expected = seen;
	return 0;
}

static inline u64 machine_now(void *arg)
{
	(void)arg;
	return 12345;
}

static inline void machine_complain(void *arg, const char *text)
{
	(void)arg;
	(void)snprintf(machine.complaint, sizeof(machine.complaint), "%s", text);
}

/* Random numbers, the same in every run. */
static u64 random_state = 88172645463325252ull;

static inline u64 random_number(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state * 2685821657736338717ull;
}

static inline int set_up_machine(void **state)
{
	u32 i;

	(void)state;
	machine.env = (struct sim_gcn_env){ .read = machine_read,
					    .write = machine_write,
					    .exchange = machine_exchange,
					    .now = machine_now,
					    .complain = machine_complain };
	machine.complaint[0] = '\0';
	memset(&machine.dispatch, 0, sizeof(machine.dispatch));
	for (i = 0; i < MEMORY_BYTES; i += 8)
		*(u64 *)at(i) = random_number();
	return sim_gcn_group_init(&machine.group, SIM_GCN_MAX_WAVES);
}

static inline int tear_down_machine(void **state)
{
	(void)state;
	sim_gcn_group_done(&machine.group);
	return 0;
}

/* A kernel of the listing over grid[0] items in groups of group[0]; arguments are at ARGUMENTS. */
static inline int begin_kernel(const char *name, u32 items, u32 group)
{
	struct listed_kernel kernel;

	assert_int_equal(listing_read(name, &kernel), 0);
	memcpy(at(CODE), kernel.code, kernel.dwords * 4);
	memcpy(machine.dispatch.descriptor, kernel.descriptor, sizeof(kernel.descriptor));
	machine.dispatch.entry = va(CODE);
	machine.dispatch.kernarg = va(ARGUMENTS);
	machine.dispatch.lds_bytes = kernel.descriptor[0];
	machine.dispatch.grid[0] = items;
	machine.dispatch.workgroup[0] = group;
	if (!machine.dispatch.grid[1])
		machine.dispatch.grid[1] = machine.dispatch.grid[2] = 1;
	if (!machine.dispatch.workgroup[1])
		machine.dispatch.workgroup[1] = machine.dispatch.workgroup[2] = 1;
	return sim_gcn_begin(&machine.dispatch, &machine.env);
}

/* To its end, in slices of @steps: no slice takes forever, and neither do all of them. */
static inline int run_kernel(u32 steps)
{
	u32 slices;
	int ret = 0;

	for (slices = 0; ret == 0 && slices < 1000000; slices++)
		ret = sim_gcn_run(&machine.dispatch, &machine.group, &machine.env, steps);
	return ret;
}

#endif
