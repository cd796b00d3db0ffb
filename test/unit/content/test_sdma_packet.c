// SPDX-License-Identifier: GPL-2.0-only
/* Compares copy packets, dword by dword, with those of the kernel's sdma_v*.c. The tests in the
 * virtual machine run the engine itself. */
#include "host.h"

#include "content/sdma_packet.h"

#define FROM 0x123456789000ULL
#define TO   0xfedcba987000ULL

static const struct {
	const char *name;
	uint32_t major, minor;
	bool minus_one;
	/* The kernel's copy_max_bytes. */
	uint32_t most;
} engines[] = {
	{ "Sea Islands", 2, 0, false, 0x1fffff },
	{ "Iceland", 2, 4, false, 0x3fffe0 },
	{ "Volcanic Islands", 3, 0, false, 0x3fffe0 },
	{ "Stoney", 3, 1, false, 0x3fffe0 },
	{ "gfx9", 4, 0, true, 0x400000 },
	{ "MI300", 4, 4, true, 0x400000 },
	{ "gfx10", 5, 0, true, 0x400000 },
	{ "gfx10.3", 5, 2, true, 0x400000 },
	{ "gfx11", 6, 0, true, 0x400000 },
};

static struct packet_format format_of(size_t row)
{
	struct packet_format format;

	print_message("case %s\n", engines[row].name);
	assert_int_equal(sdma_packet_find_format(engines[row].major, engines[row].minor, &format),
			 0);
	return format;
}

UNIT_TEST(a_copy_is_seven_dwords)
{
	for (size_t i = 0; i < ARRAY_SIZE(engines); i++) {
		struct packet_format format = format_of(i);
		uint32_t dwords[8] = { 0 };

		dwords[7] = 0xdeadbeef;
		assert_int_equal(sdma_packet_copy_dwords(&format, 4096), 7);
		assert_int_equal(sdma_packet_emit_copy(&format, dwords, FROM, TO, 4096), 7);
		/* COPY, linear. */
		assert_int_equal(dwords[0], 1);
		assert_int_equal(dwords[1], engines[i].minus_one ? 4095 : 4096);
		assert_int_equal(dwords[2], 0);
		assert_int_equal(dwords[3], 0x56789000);
		assert_int_equal(dwords[4], 0x1234);
		assert_int_equal(dwords[5], 0xba987000);
		assert_int_equal(dwords[6], 0xfedc);
		assert_int_equal(dwords[7], 0xdeadbeef);
	}
}

UNIT_TEST(no_packet_is_larger_than_the_engine_takes)
{
	for (size_t i = 0; i < ARRAY_SIZE(engines); i++) {
		struct packet_format format = format_of(i);

		assert_in_range(format.copy_max, 4096, engines[i].most);
		/* Pieces must stay whole pages. */
		assert_int_equal(format.copy_max % 4096, 0);
		assert_int_equal(format.count_minus_one, engines[i].minus_one);
	}
}

/* Adds up the bytes of the packets and checks that there is no gap. */
static void check_packets(const struct packet_format *format, const uint32_t *dwords, size_t count,
			  uint64_t size)
{
	uint64_t done = 0;

	assert_int_equal(count % 7, 0);
	for (size_t i = 0; i < count; i += 7) {
		uint64_t bytes = (uint64_t)dwords[i + 1] + format->count_minus_one;

		assert_int_equal(dwords[i], 1);
		assert_in_range(bytes, 1, format->copy_max);
		assert_true((dwords[i + 3] | (uint64_t)dwords[i + 4] << 32) == FROM + done);
		assert_true((dwords[i + 5] | (uint64_t)dwords[i + 6] << 32) == TO + done);
		done += bytes;
	}
	assert_true(done == size);
}

UNIT_TEST(large_copies_are_split_and_cover_every_byte)
{
	for (size_t i = 0; i < ARRAY_SIZE(engines); i++) {
		struct packet_format format = format_of(i);
		const uint64_t max = format.copy_max;
		const struct {
			uint64_t size;
			size_t packets;
		} cases[] = {
			{ 0, 0 },           { 1, 1 },
			{ 4096, 1 },        { max - 1, 1 },
			{ max, 1 },         { max + 1, 2 },
			{ 2 * max, 2 },     { 2 * max + 4096, 3 },
			{ 100 * max, 100 }, { 100 * max - 4096, 100 },
		};

		for (size_t j = 0; j < ARRAY_SIZE(cases); j++) {
			size_t room = sdma_packet_copy_dwords(&format, cases[j].size);
			/* The exact size, so that the sanitizer detects one dword too many. */
			uint32_t *dwords = malloc(room * sizeof(*dwords) + 1);

			assert_int_equal(room, cases[j].packets * 7);
			assert_int_equal(
				sdma_packet_emit_copy(&format, dwords, FROM, TO, cases[j].size),
				room);
			check_packets(&format, dwords, room, cases[j].size);
			free(dwords);
		}
	}
}

UNIT_TEST(addresses_carry_into_the_high_dword)
{
	const struct packet_format format = { .copy_max = 0x400000, .count_minus_one = true };
	uint32_t dwords[14];

	assert_int_equal(sdma_packet_emit_copy(&format, dwords, 0xffc00000, 0x1ffffff000, 0x401000),
			 14);
	assert_int_equal(dwords[7 + 1], 0xfff);
	assert_int_equal(dwords[7 + 3], 0);
	assert_int_equal(dwords[7 + 4], 1);
	assert_int_equal(dwords[7 + 5], 0x3ff000);
	assert_int_equal(dwords[7 + 6], 0x20);
}

/* Southern Islands and gfx12 have packets of another length. */
UNIT_TEST(unknown_engines_are_refused)
{
	static const uint32_t unknown[] = { 0, 1, 7, 8, UINT32_MAX };

	for (size_t i = 0; i < ARRAY_SIZE(unknown); i++) {
		struct packet_format format = { .copy_max = 42 };

		assert_int_equal(sdma_packet_find_format(unknown[i], 0, &format), -EOPNOTSUPP);
		assert_int_equal(format.copy_max, 42);
	}
}
