/* SPDX-License-Identifier: GPL-2.0-only */
/* Protobuf's wire format by hand: tests make images of other programs, and read images of the
 * plugin, without the message definitions under test. Supports varints and byte strings only. */
#ifndef TEST_UNIT_WIRE_H
#define TEST_UNIT_WIRE_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct wire {
	uint8_t bytes[4096];
	size_t size;
};

static inline void wire_varint(struct wire *wire, uint64_t value)
{
	assert(wire->size + 10 < sizeof(wire->bytes));
	while (value >= 0x80) {
		wire->bytes[wire->size++] = (uint8_t)(value | 0x80);
		value >>= 7;
	}
	wire->bytes[wire->size++] = (uint8_t)value;
}

static inline void wire_number(struct wire *wire, unsigned int field, uint64_t value)
{
	wire_varint(wire, field << 3);
	wire_varint(wire, value);
}

static inline void wire_bytes(struct wire *wire, unsigned int field, const void *bytes, size_t size)
{
	wire_varint(wire, field << 3 | 2);
	wire_varint(wire, size);
	assert(wire->size + size < sizeof(wire->bytes));
	memcpy(wire->bytes + wire->size, bytes, size);
	wire->size += size;
}

static inline uint64_t wire_take_varint(const uint8_t **at)
{
	uint64_t value = 0;
	unsigned int shift = 0;

	do {
		value |= (uint64_t)(**at & 0x7f) << shift;
		shift += 7;
	} while (*(*at)++ & 0x80);
	return value;
}

/* Finds the @nth field @number of a message: its value, or in @ret_bytes the start of its bytes. */
static inline bool wire_find(const uint8_t *bytes, size_t size, unsigned int number, size_t nth,
			     uint64_t *ret_value, const uint8_t **ret_bytes)
{
	const uint8_t *at = bytes, *end = bytes + size;

	while (at < end) {
		uint64_t key = wire_take_varint(&at);
		uint64_t value = wire_take_varint(&at);
		bool has_bytes = (key & 7) == 2;

		if (key >> 3 == number && nth-- == 0) {
			*ret_value = value;
			*ret_bytes = has_bytes ? at : NULL;
			return true;
		}
		at += has_bytes ? value : 0;
	}
	return false;
}

/* Whether a message has all fields from 1 to @last. */
static inline bool wire_has_up_to(const uint8_t *bytes, size_t size, unsigned int last)
{
	const uint8_t *at;
	uint64_t value;

	for (unsigned int field = 1; field <= last; field++) {
		if (!wire_find(bytes, size, field, 0, &value, &at))
			return false;
	}
	return true;
}

#endif
