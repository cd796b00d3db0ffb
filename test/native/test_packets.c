// SPDX-License-Identifier: GPL-2.0-only
/* Tests the packets that ROCr puts into queues of the copy engine, and malformed packets. */
#include <unistd.h>

#include "raw_kfd.h"
#include "sim_test.h"

#define BYTES       0x10000u
#define PATIENCE_MS 20000
#define ROUNDS      20
#define ADDITIONS   1000
/* how many additions of the CPU lie between two looks for violations */
#define BETWEEN_LOOKS 1000000

struct engine {
	struct raw_process process;
	struct raw_queue queue;
	struct raw_bo from, to;
};

static const uint32_t hdp_flush[] = { 8, 0, 1u << 31, 0, 0, 0 };

static void start(struct engine *engine)
{
	assert_int_equal(raw_open_acquired(&engine->process), 0);
	assert_int_equal(raw_create_queue(&engine->process, 0, &engine->queue), 0);
	assert_int_equal(raw_alloc_mapped(&engine->process, 0, RAW_VRAM, BYTES, &engine->from), 0);
	assert_int_equal(raw_alloc_mapped(&engine->process, 0, RAW_GTT, BYTES, &engine->to), 0);
	for (uint32_t i = 0; i < BYTES; i++)
		engine->from.address[i] = (char)(i * 2654435761u >> 24);
	memset(engine->to.address, 0, BYTES);
}

static void stop(struct engine *engine)
{
	(void)close(engine->process.render[0]);
	(void)close(engine->process.kfd);
	sim_write("process_exit", "1");
}

/* The queue stops at the packet. The only violation is that the packet is malformed. */
static void assert_refused(struct engine *engine, const uint32_t *packet, unsigned int count)
{
	char text[8192];

	raw_queue_put(&engine->queue, packet, count);
	raw_queue_ring(&engine->queue);
	for (int i = 0; i < PATIENCE_MS && !sim_number("violations", NULL); i++)
		(void)usleep(1000);
	assert_int_equal(*engine->queue.read, 0);
	assert_int_equal(sim_number("violations", NULL), 1);
	assert_true(amdgpu_sim_read("violations", text, sizeof(text)) >= 0);
	assert_non_null(strstr(text, "bad packet"));
	sim_write("violations", "0");
	stop(engine);
}

#define TEST(name) TEST_WITH(name, begin, end)

TEST(a_flush_before_a_copy_does_not_stop_it)
{
	struct engine engine;

	start(&engine);
	raw_queue_put(&engine.queue, hdp_flush, 6);
	raw_queue_copy(&engine.queue, engine.from.address, engine.to.address, BYTES);
	raw_queue_ring(&engine.queue);
	assert_int_equal(raw_queue_wait(&engine.queue), 0);
	assert_memory_equal(engine.from.address, engine.to.address, BYTES);
	stop(&engine);
}

TEST(other_polls_of_registers_are_refused)
{
	for (unsigned int i = 0; i < 6; i++) {
		struct engine engine;
		uint32_t packet[6];

		start(&engine);
		memcpy(packet, hdp_flush, sizeof(packet));
		packet[i] ^= i == 2 ? 0x40000000 : 0x10000000;
		assert_refused(&engine, packet, 6);
	}
}

/* 5x3x2 elements of 4 bytes from (3,2,1) of rows of 64 and slices of 1024 elements to (1,4,2) of
 * rows of 32 and slices of 512. */
static void put_box(uint32_t *dw, uint64_t from, uint64_t to)
{
	const uint32_t packet[13] = {
		1 | 4 << 8 | 2u << 29,
		(uint32_t)from,
		(uint32_t)(from >> 32),
		3 | 2 << 16,
		1 | 63 << 13,
		1023,
		(uint32_t)to,
		(uint32_t)(to >> 32),
		1 | 4 << 16,
		2 | 31 << 13,
		511,
		4 | 2 << 16,
		1,
	};

	memcpy(dw, packet, sizeof(packet));
}

static bool is_in_box(uint32_t x, uint32_t y, uint32_t z)
{
	return x >= 1 && x < 6 && y >= 4 && y < 7 && z >= 2 && z < 4;
}

TEST(a_box_is_copied_into_another)
{
	struct engine engine;
	const uint32_t *from, *to;
	uint32_t packet[13];

	start(&engine);
	put_box(packet, (uintptr_t)engine.from.address, (uintptr_t)engine.to.address);
	raw_queue_put(&engine.queue, packet, 13);
	raw_queue_ring(&engine.queue);
	assert_int_equal(raw_queue_wait(&engine.queue), 0);
	from = (const uint32_t *)(void *)engine.from.address;
	to = (const uint32_t *)(void *)engine.to.address;
	for (uint32_t i = 0; i < BYTES / 4; i++) {
		uint32_t x = i % 32, y = i / 32 % 16, z = i / 512;

		assert_int_equal(to[i], is_in_box(x, y, z)
						? from[x + 2 + (y - 2) * 64 + (z - 1) * 1024]
						: 0);
	}
	stop(&engine);
}

TEST(a_box_with_a_bit_that_has_no_meaning_is_refused)
{
	static const struct {
		unsigned int dword;
		uint32_t bits;
	} wrong[] = {
		{ 0, 1u << 18 },  { 0, 1u << 31 | 1u << 29 },
		{ 1, 2 },         { 3, 1u << 14 },
		{ 4, 1u << 11 },  { 5, 1u << 28 },
		{ 6, 1 },         { 8, 1u << 31 },
		{ 9, 1u << 12 },  { 10, 1u << 29 },
		{ 11, 1u << 30 }, { 12, 1u << 16 },
	};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		struct engine engine;
		uint32_t packet[13];

		start(&engine);
		put_box(packet, (uintptr_t)engine.from.address, (uintptr_t)engine.to.address);
		packet[wrong[i].dword] ^= wrong[i].bits;
		assert_refused(&engine, packet, 13);
	}
}

/* Adds ones, by the queue and by this thread meanwhile: returns how many. */
static uint64_t add_on_both(struct engine *engine, volatile uint64_t *word)
{
	uint64_t added = 0;

	for (int i = 0; i < ADDITIONS; i++)
		raw_queue_add(&engine->queue, word, 1);
	raw_queue_ring(&engine->queue);
	while (*engine->queue.read != engine->queue.written) {
		(void)__atomic_add_fetch(word, 1, __ATOMIC_RELAXED);
		if (++added % BETWEEN_LOOKS == 0)
			assert_int_equal(sim_number("violations", NULL), 0);
	}
	return added + ADDITIONS;
}

TEST(no_addition_is_lost_between_cpu_and_queue)
{
	struct engine engine;
	volatile uint64_t *word;
	uint64_t added = 0;

	start(&engine);
	word = (volatile uint64_t *)(void *)engine.to.address;
	for (int i = 0; i < ROUNDS; i++)
		added += add_on_both(&engine, word);
	assert_true(*word == added);
	stop(&engine);
}
