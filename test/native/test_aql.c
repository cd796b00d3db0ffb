// SPDX-License-Identifier: GPL-2.0-only
/* Tests AQL queues: kernels, barriers and cache commands run, signals are completed, packets wait
 * until they are rung and valid, queues take turns, and malformed packets stop the queue. */
#include <unistd.h>

#include "aql_machine.h"

#define ITEMS       256u
#define PATIENCE_MS 20000

/* The kernel adds the two halves of IN into OUT. */
static struct raw_packet addition(const struct machine *machine)
{
	const uint64_t arguments[] = { (uintptr_t)at(machine, OUT), (uintptr_t)at(machine, IN),
				       (uintptr_t)at(machine, IN) + ITEMS * 4, ITEMS };
	uint32_t *in = at(machine, IN);
	struct raw_packet packet;

	assert_int_equal(raw_kernel_load("add", at(machine, CODE), &packet), 0);
	memcpy(at(machine, ARGUMENTS), arguments, sizeof(arguments));
	for (uint32_t i = 0; i < 2 * ITEMS; i++)
		in[i] = i * 2654435761u;
	packet.grid[0] = ITEMS;
	packet.kernarg = (uintptr_t)at(machine, ARGUMENTS);
	packet.completion = (uintptr_t)signal_of(machine, 0);
	return packet;
}

static void assert_added(const struct machine *machine)
{
	const uint32_t *in = at(machine, IN), *out = at(machine, OUT);

	for (uint32_t i = 0; i < ITEMS; i++)
		assert_int_equal(out[i], in[i] + in[i + ITEMS]);
}

/* The kernel that counts @rounds in the cells at OUT; with a great number it does not end. */
static struct raw_packet counting(const struct machine *machine, uint64_t rounds)
{
	const uint64_t arguments[] = { (uintptr_t)at(machine, OUT), rounds };
	struct raw_packet packet;

	assert_int_equal(raw_kernel_load("count", at(machine, CODE), &packet), 0);
	memcpy(at(machine, ARGUMENTS), arguments, sizeof(arguments));
	packet.kernarg = (uintptr_t)at(machine, ARGUMENTS);
	packet.completion = (uintptr_t)signal_of(machine, 0);
	return packet;
}

#define TEST(name) TEST_WITH(name, begin, end)

TEST(a_kernel_runs_and_its_signal_says_so)
{
	struct kfd_ioctl_get_clock_counters_args clock = { 0 };
	struct machine machine;
	struct raw_packet packet;
	struct raw_signal *signal;

	start(&machine);
	packet = addition(&machine);
	signal = signal_of(&machine, 0);
	clock.gpu_id = machine.process.gpu[0].gpu_id;
	assert_int_equal(raw_ioctl(machine.process.kfd, AMDKFD_IOC_GET_CLOCK_COUNTERS, &clock), 0);
	submit(&machine, &packet);
	assert_int_equal(raw_signal_wait(signal, 0), 0);
	assert_added(&machine);
	assert_int_equal(*machine.queue.read, 1);
	assert_int_equal(*(uint16_t *)(void *)machine.queue.ring.address, RAW_AQL_INVALID);
	assert_true(signal->start >= clock.gpu_clock_counter);
	assert_true(signal->end >= signal->start);
	stop(&machine);
}

TEST(packets_wait_until_they_are_rung_and_valid)
{
	struct machine machine;
	struct raw_packet packet;
	uint16_t header;

	start(&machine);
	packet = addition(&machine);
	header = packet.header;
	packet.header = RAW_AQL_INVALID;
	submit(&machine, &packet);
	let_queues_have_turns(&machine);
	assert_int_equal(*machine.queue.read, 0);
	__atomic_store_n((uint16_t *)(void *)machine.queue.ring.address, header, __ATOMIC_RELEASE);
	assert_int_equal(raw_aql_wait(&machine.queue), 0);
	assert_added(&machine);
	/* not rung */
	packet.header = header;
	(void)raw_aql_put(&machine.queue, &packet);
	let_queues_have_turns(&machine);
	assert_int_equal(*machine.queue.read, 1);
	/* with a value that was rung before */
	raw_aql_ring(&machine.queue, 0);
	assert_int_equal(raw_aql_wait(&machine.queue), 0);
	stop(&machine);
}

TEST(a_ring_is_filled_again_and_again)
{
	struct machine machine;
	struct raw_packet packet;

	start(&machine);
	packet = addition(&machine);
	signal_of(&machine, 0)->value = 300;
	for (int i = 0; i < 300; i++) {
		while (*machine.queue.write - *machine.queue.read >= RAW_AQL_SLOTS)
			(void)usleep(100);
		submit(&machine, &packet);
	}
	assert_int_equal(raw_signal_wait(signal_of(&machine, 0), 0), 0);
	assert_int_equal(*machine.queue.read, 300);
	stop(&machine);
}

static void set_signal_of(struct raw_packet *packet, uint32_t index, const void *signal)
{
	((uint64_t *)(void *)packet)[1 + index] = (uintptr_t)signal;
}

static struct raw_packet barrier(const struct machine *machine, uint16_t type)
{
	return (struct raw_packet){ .header = type,
				    .completion = (uintptr_t)signal_of(machine, 7) };
}

TEST(barriers_wait_for_all_or_for_one)
{
	struct machine machine;
	struct raw_packet packet;

	start(&machine);
	packet = barrier(&machine, RAW_AQL_AND);
	set_signal_of(&packet, 0, signal_of(&machine, 1));
	set_signal_of(&packet, 4, signal_of(&machine, 2));
	submit(&machine, &packet);
	signal_of(&machine, 1)->value = 0;
	let_queues_have_turns(&machine);
	assert_int_equal(*machine.queue.read, 0);
	signal_of(&machine, 2)->value = 0;
	assert_int_equal(raw_signal_wait(signal_of(&machine, 7), 0), 0);

	packet.header = RAW_AQL_OR;
	signal_of(&machine, 1)->value = signal_of(&machine, 2)->value = 5;
	signal_of(&machine, 7)->value = 1;
	submit(&machine, &packet);
	let_queues_have_turns(&machine);
	assert_int_equal(*machine.queue.read, 1);
	signal_of(&machine, 2)->value = 0;
	assert_int_equal(raw_signal_wait(signal_of(&machine, 7), 0), 0);
	/* without signals both are satisfied */
	packet = barrier(&machine, RAW_AQL_OR);
	submit(&machine, &packet);
	packet.header = RAW_AQL_AND;
	submit(&machine, &packet);
	assert_int_equal(raw_signal_wait(signal_of(&machine, 7), -2), 0);
	stop(&machine);
}

/* hsa_amd_barrier_value_packet_t */
static struct raw_packet barrier_value(const struct machine *machine, uint32_t condition,
				       int64_t value, int64_t mask)
{
	struct raw_packet packet = barrier(machine, RAW_AQL_VENDOR);
	uint64_t *words = (uint64_t *)(void *)&packet;

	packet.setup = 2;
	words[1] = (uintptr_t)signal_of(machine, 1);
	words[2] = (uint64_t)value;
	words[3] = (uint64_t)mask;
	words[4] = condition;
	return packet;
}

/* As HIP 6.4.3 does. */
static void leave_garbage(struct raw_packet *packet)
{
	static const uint32_t reserved[] = { 1, 9, 10, 11, 12, 13 };

	for (size_t i = 0; i < sizeof(reserved) / sizeof(*reserved); i++)
		((uint32_t *)(void *)packet)[reserved[i]] = 0xf8015e60;
}

TEST(a_barrier_waits_for_a_value)
{
	/* equal, not equal, less, greater or equal; first the value that does not satisfy */
	static const struct {
		uint32_t condition;
		int64_t value, mask, unsatisfied, satisfied;
	} rows[] = {
		{ 0, 0x10, 0xf0, 0x20, 0x1f }, { 1, 7, -1, 7, -7 },          { 2, -3, -1, -3, -4 },
		{ 3, -3, -1, -4, -3 },         { 0, 0, 0xf00, 0x100, 0xff },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct machine machine;
		struct raw_packet packet;

		start(&machine);
		packet = barrier_value(&machine, rows[i].condition, rows[i].value, rows[i].mask);
		leave_garbage(&packet);
		signal_of(&machine, 1)->value = rows[i].unsatisfied;
		submit(&machine, &packet);
		let_queues_have_turns(&machine);
		assert_int_equal(*machine.queue.read, 0);
		signal_of(&machine, 1)->value = rows[i].satisfied;
		assert_int_equal(raw_signal_wait(signal_of(&machine, 7), 0), 0);
		/* without a signal it is satisfied */
		set_signal_of(&packet, 0, NULL);
		submit(&machine, &packet);
		assert_int_equal(raw_aql_wait(&machine.queue), 0);
		stop(&machine);
	}
}

/* amd_aql_pm4_ib: a jump to one ACQUIRE_MEM packet, as ROCr makes it. */
static struct raw_packet cache_command(const struct machine *machine)
{
	static const uint32_t acquire[] = { 0xc0055800, 0x28c40000, 0xffffffff, 0xff, 0, 0, 4 };
	struct raw_packet packet = barrier(machine, RAW_AQL_VENDOR);
	uint64_t address = (uintptr_t)at(machine, COMMANDS);
	const uint32_t jump[] = { 0xc0023f00, (uint32_t)address, (uint32_t)(address >> 32),
				  7 | 1u << 23, 10 };

	packet.setup = 1;
	memcpy((char *)&packet + 4, jump, sizeof(jump));
	memcpy(at(machine, COMMANDS), acquire, sizeof(acquire));
	return packet;
}

TEST(commands_for_caches_do_nothing)
{
	struct machine machine;
	struct raw_packet packet;

	start(&machine);
	packet = cache_command(&machine);
	submit(&machine, &packet);
	assert_int_equal(raw_signal_wait(signal_of(&machine, 7), 0), 0);
	stop(&machine);
}

TEST(completion_wakes_a_thread_that_waits_for_the_event)
{
	struct kfd_ioctl_create_event_args event = { .event_type = KFD_IOC_EVENT_SIGNAL,
						     .auto_reset = 1 };
	struct kfd_event_data data = { 0 };
	struct kfd_ioctl_wait_events_args wait = { .num_events = 1,
						   .wait_for_all = 1,
						   .timeout = PATIENCE_MS,
						   .events_ptr = (uintptr_t)&data };
	struct machine machine;
	struct raw_packet packet;
	struct raw_signal *signal;
	struct raw_bo page;
	uint64_t *slots;

	start(&machine);
	packet = addition(&machine);
	signal = signal_of(&machine, 0);
	assert_int_equal(
		raw_alloc_mapped(&machine.process, 0, RAW_GTT, KFD_SIGNAL_EVENT_LIMIT * 8, &page),
		0);
	event.event_page_offset = page.handle;
	slots = (uint64_t *)(void *)page.address;
	assert_int_equal(raw_ioctl(machine.process.kfd, AMDKFD_IOC_CREATE_EVENT, &event), 0);
	data.event_id = signal->event_id = event.event_id;
	signal->mailbox = (uintptr_t)&slots[event.event_slot_index];
	submit(&machine, &packet);
	assert_int_equal(raw_ioctl(machine.process.kfd, AMDKFD_IOC_WAIT_EVENTS, &wait), 0);
	assert_int_equal(wait.wait_result, KFD_IOC_WAIT_RESULT_COMPLETE);
	assert_int_equal(signal->value, 0);
	stop(&machine);
}

TEST(queues_take_turns_and_leave_the_hardware_in_time)
{
	struct machine machine;
	struct raw_packet endless;

	start(&machine);
	endless = counting(&machine, ~0ull);
	submit(&machine, &endless);
	let_queues_have_turns(&machine);
	assert_int_equal(*machine.queue.read, 0);
	assert_int_equal(raw_aql_set_percentage(&machine.process, &machine.queue, 0), 0);
	assert_int_equal(raw_aql_set_percentage(&machine.process, &machine.queue, 100), 0);
	assert_int_equal(raw_aql_destroy(&machine.process, &machine.queue), 0);
	stop(&machine);
}

/* The queue stops after exactly one violation, whose text is @text. */
static void assert_refused(struct machine *machine, const struct raw_packet *packet,
			   const char *text)
{
	char said[8192];

	submit(machine, packet);
	for (int i = 0; i < PATIENCE_MS && sim_number("processes", "running=") > 1; i++)
		(void)usleep(1000);
	assert_int_equal(sim_number("processes", "running="), 1);
	assert_int_equal(sim_number("violations", NULL), 1);
	assert_true(amdgpu_sim_read("violations", said, sizeof(said)) >= 0);
	if (!strstr(said, text))
		fail_msg("'%s' is not in: %s", text, said);
	assert_int_equal(*machine->queue.read, 0);
	sim_write("violations", "0");
	stop(machine);
}

/* A good packet of which bits of one word (of eight bytes) are flipped, and the violation. */
struct malformed {
	struct raw_packet (*make)(const struct machine *machine);
	uint32_t word;
	uint64_t flip;
	const char *text;
};

static void assert_malformed(const struct malformed *row)
{
	struct machine machine;
	struct raw_packet packet;

	start(&machine);
	packet = row->make(&machine);
	((uint64_t *)(void *)&packet)[row->word] ^= row->flip;
	assert_refused(&machine, &packet, row->text);
}

TEST(malformed_packets_stop_the_queue)
{
	static const struct malformed rows[] = {
		{ addition, 0, 1ull << 13, "no meaning" },
		{ addition, 0, 1ull << 9, "scope" },
		{ addition, 0, 6, "unknown type" },
		{ addition, 0, 5ull << 16, "dimensions" },
		{ addition, 0, 1ull << 16, "dimensions" },
		{ addition, 0, 64ull << 32, "size of 0" },
		{ addition, 0, 3ull << 48, "does not have" },
		{ addition, 1, 1ull << 16, "reserved" },
		{ addition, 1, (uint64_t)ITEMS << 32, "size of 0" },
		{ addition, 3, 4, "private memory" },
		{ addition, 3, 0x10001ull << 32, "LDS beyond" },
		{ addition, 4, 8, "not aligned" },
		{ addition, 4, 1ull << 46, "not mapped" },
		{ addition, 5, 1ull << 46, "not mapped" },
		{ addition, 6, 1, "reserved" },
		{ cache_command, 0, 7ull << 16, "vendor format" },
		{ cache_command, 0, 1ull << 62, "jump" },
		{ cache_command, 1, 1ull << 46, "not mapped" },
		{ cache_command, 2, 1, "understood" },
		{ cache_command, 2, 3ull << 32, "remaining" },
		{ cache_command, 5, 1, "reserved" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		assert_malformed(&rows[i]);
}

static struct raw_packet waits_for_all(const struct machine *machine)
{
	return barrier(machine, RAW_AQL_AND);
}

static struct raw_packet waits_for_a_value(const struct machine *machine)
{
	return barrier_value(machine, 1, 5, -1);
}

TEST(malformed_barriers_stop_the_queue)
{
	static const struct malformed rows[] = {
		{ waits_for_all, 0, 1ull << 16, "reserved" },
		{ waits_for_all, 0, 1ull << 32, "reserved" },
		{ waits_for_all, 1, 1ull << 46, "not mapped" },
		{ waits_for_all, 6, 1, "reserved" },
		{ waits_for_a_value, 0, 1ull << 24, "reserved" },
		{ waits_for_a_value, 4, 4, "condition" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		assert_malformed(&rows[i]);
}

TEST(a_write_index_before_the_read_index_stops_the_queue)
{
	struct machine machine;
	struct raw_packet packet;

	start(&machine);
	*machine.queue.write = ~0ull - 1;
	packet = barrier(&machine, RAW_AQL_AND);
	assert_refused(&machine, &packet, "is before read index");
}
