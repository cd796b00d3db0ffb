// SPDX-License-Identifier: GPL-2.0-only
/* Tests waves that leave the hardware in the middle of a kernel: they come back from the queue's
 * area, and an area that has changed, or is too small, is noticed. */
#include "aql_machine.h"
#include "march.h"

#define ROUNDS      300u
#define PATIENCE_MS 20000
#define WAVE_BYTES  66064u /* struct sim_gcn_wave */
#define WAVES       4u

static struct march_control *control_of(const struct machine *machine)
{
	return at(machine, IN);
}

static void begin_march(struct machine *machine, uint32_t rounds)
{
	const struct march_arguments arguments = { (uintptr_t)at(machine, OUT),
						   (uintptr_t)control_of(machine) };
	uint64_t *cells = at(machine, OUT);
	struct raw_packet packet;

	assert_int_equal(raw_kernel_load("march", at(machine, CODE), &packet), 0);
	memcpy(at(machine, ARGUMENTS), &arguments, sizeof(arguments));
	for (uint32_t i = 0; i < MARCH_ITEMS; i++)
		cells[i] = march_first(i);
	control_of(machine)->wanted = rounds;
	packet.workgroup[0] = MARCH_ITEMS;
	packet.grid[0] = MARCH_ITEMS;
	packet.kernarg = (uintptr_t)at(machine, ARGUMENTS);
	packet.completion = (uintptr_t)signal_of(machine, 0);
	submit(machine, &packet);
}

static void await_rounds(const struct machine *machine, uint32_t rounds)
{
	for (int i = 0; i < PATIENCE_MS && control_of(machine)->rounds < rounds; i++)
		(void)usleep(1000);
	assert_true(control_of(machine)->rounds >= rounds);
}

static void leave_hardware(struct machine *machine)
{
	assert_int_equal(raw_aql_set_percentage(&machine->process, &machine->queue, 0), 0);
}

static void come_back(struct machine *machine)
{
	assert_int_equal(raw_aql_set_percentage(&machine->process, &machine->queue, 100), 0);
}

static void assert_marched(const struct machine *machine)
{
	uint64_t cells[MARCH_ITEMS];

	march_compute(ROUNDS, cells);
	assert_memory_equal(at(machine, OUT), cells, sizeof(cells));
	assert_int_equal(control_of(machine)->rounds, ROUNDS);
	assert_int_equal(control_of(machine)->starts, 1);
}

#define TEST(name) TEST_WITH(name, begin, end)

/* The queue stays off the hardware until another queue has had turns. */
TEST(a_kernel_goes_on_where_it_was)
{
	struct machine machine;

	start(&machine);
	begin_march(&machine, ROUNDS);
	for (uint32_t round = 20; round <= 100; round += 20) {
		uint32_t done;

		await_rounds(&machine, round);
		leave_hardware(&machine);
		assert_int_equal(signal_of(&machine, 0)->value, 1);
		done = control_of(&machine)->rounds;
		let_queues_have_turns(&machine);
		assert_int_equal(control_of(&machine)->rounds, done);
		come_back(&machine);
	}
	assert_int_equal(raw_signal_wait(signal_of(&machine, 0), 0), 0);
	assert_marched(&machine);
	stop(&machine);
}

static void assert_stopped(struct machine *machine, const char *text)
{
	char said[8192];

	for (int i = 0; i < PATIENCE_MS && sim_number("processes", "running=") > 1; i++)
		(void)usleep(1000);
	assert_int_equal(sim_number("violations", NULL), 1);
	assert_true(amdgpu_sim_read("violations", said, sizeof(said)) >= 0);
	if (!strstr(said, text))
		fail_msg("'%s' is not in: %s", text, said);
	assert_int_equal(signal_of(machine, 0)->value, 1);
	sim_write("violations", "0");
	stop(machine);
}

TEST(a_change_of_saved_waves_is_noticed)
{
	/* where from the end of the room for the control stack */
	static const struct {
		uint32_t offset;
		const char *text;
	} rows[] = {
		{ 0, "registers" },
		{ 3 * WAVE_BYTES + 40000, "registers" },
		{ WAVES * WAVE_BYTES - 1, "registers" },
		{ WAVES * WAVE_BYTES, "LDS" },
		{ WAVES * WAVE_BYTES + 2040, "LDS" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct machine machine;
		uint32_t ctl_stack_size;

		start(&machine);
		assert_int_equal(raw_ctl_stack_size(&machine.process.gpu[0], &ctl_stack_size), 0);
		begin_march(&machine, ~0u);
		await_rounds(&machine, 5);
		leave_hardware(&machine);
		machine.queue.waves.address[ctl_stack_size + rows[i].offset] ^= 1;
		come_back(&machine);
		assert_stopped(&machine, rows[i].text);
	}
}

TEST(waves_need_room)
{
	struct machine machine;

	start(&machine);
	assert_int_equal(raw_aql_destroy(&machine.process, &machine.queue), 0);
	assert_int_equal(raw_aql_create_with(&machine.process, 0, 64 * 4096, &machine.queue), 0);
	begin_march(&machine, ~0u);
	await_rounds(&machine, 5);
	leave_hardware(&machine);
	come_back(&machine);
	assert_stopped(&machine, "no room");
}
