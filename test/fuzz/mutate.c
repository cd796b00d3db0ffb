// SPDX-License-Identifier: GPL-2.0-only
/* libFuzzer's custom mutator for targets that read protobuf messages. For other targets it mutates
 * bytes. */
#include "mutate.h"

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* Targets without messages do not define it. */
extern const struct ProtobufCMessageDescriptor *mutate_descriptor __attribute__((weak));
extern const size_t mutate_offset __attribute__((weak));
size_t LLVMFuzzerMutate(uint8_t *bytes, size_t size, size_t room) __attribute__((weak));
size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t size, size_t room, unsigned int seed);

struct mutation {
	unsigned int seed;
	/* A value from another part of the message. */
	uint64_t seen;
};

static unsigned int pick(struct mutation *m, unsigned int count)
{
	return (unsigned int)rand_r(&m->seed) % count;
}

static uint64_t pick_value(struct mutation *m, uint64_t old)
{
	static const uint64_t values[] = { 0,         1,          2,
					   128,       255,        4095,
					   4096,      4097,       65535,
					   65536,     INT32_MAX,  UINT32_MAX,
					   INT64_MAX, UINT64_MAX, UINT64_MAX - 4095,
					   1ULL << 62 };

	switch (pick(m, 6)) {
	case 0:
		return values[pick(m, sizeof(values) / sizeof(values[0]))];
	case 1:
		return old + 1 - 2 * (uint64_t)pick(m, 2);
	case 2:
		return old ^ 1ULL << pick(m, 64);
	case 3:
		return old + 4096 - 8192 * (uint64_t)pick(m, 2);
	case 4:
		return -old;
	default:
		return m->seen;
	}
}

static size_t width_of(const ProtobufCFieldDescriptor *field)
{
	switch (field->type) {
	case PROTOBUF_C_TYPE_UINT64:
	case PROTOBUF_C_TYPE_FIXED64:
		return 8;
	case PROTOBUF_C_TYPE_MESSAGE:
	case PROTOBUF_C_TYPE_STRING:
		return sizeof(void *);
	default:
		return 4;
	}
}

static void change_number(struct mutation *m, void *at, size_t width)
{
	uint64_t value = 0;

	memcpy(&value, at, width);
	value = pick_value(m, value);
	memcpy(at, &value, width);
}

static void change_bytes(struct mutation *m, ProtobufCBinaryData *data)
{
	if (!data->len)
		return;
	if (pick(m, 2))
		data->len -= pick(m, (unsigned int)data->len + 1);
	else
		data->data[pick(m, (unsigned int)data->len)] = (uint8_t)pick(m, 256);
}

static void change_text(struct mutation *m, char *text)
{
	if (text && *text)
		text[pick(m, (unsigned int)strlen(text))] = (char)pick(m, 256);
}

static void change_message(struct mutation *m, ProtobufCMessage *message);

/* Swaps two elements, removes the last, or changes one. */
static void change_repeated(struct mutation *m, void **elements, size_t *count)
{
	size_t a, b;
	void *swapped;

	if (!*count)
		return;
	a = pick(m, (unsigned int)*count);
	b = pick(m, (unsigned int)*count);
	switch (pick(m, 8)) {
	case 0:
		swapped = elements[a];
		elements[a] = elements[b];
		elements[b] = swapped;
		break;
	case 1:
		protobuf_c_message_free_unpacked(elements[--*count], NULL);
		break;
	default:
		change_message(m, elements[a]);
	}
}

static void change_field(struct mutation *m, ProtobufCMessage *message,
			 const ProtobufCFieldDescriptor *field)
{
	char *base = (char *)message;
	void *at = base + field->offset;

	if (field->label == PROTOBUF_C_LABEL_REPEATED) {
		change_repeated(m, *(void ***)at, (size_t *)(base + field->quantifier_offset));
		return;
	}
	if (field->type == PROTOBUF_C_TYPE_MESSAGE) {
		if (*(ProtobufCMessage **)at)
			change_message(m, *(ProtobufCMessage **)at);
		return;
	}
	if (field->type == PROTOBUF_C_TYPE_BYTES) {
		change_bytes(m, at);
		return;
	}
	if (field->type == PROTOBUF_C_TYPE_STRING) {
		change_text(m, *(char **)at);
		return;
	}
	if (field->label == PROTOBUF_C_LABEL_OPTIONAL)
		*(protobuf_c_boolean *)(base + field->quantifier_offset) = pick(m, 4) != 0;
	change_number(m, at, width_of(field));
}

static void change_message(struct mutation *m, ProtobufCMessage *message)
{
	const ProtobufCMessageDescriptor *descriptor = message->descriptor;
	const ProtobufCFieldDescriptor *field;

	if (!descriptor->n_fields)
		return;
	/* Values that the next change may copy. */
	field = &descriptor->fields[pick(m, descriptor->n_fields)];
	if (field->label == PROTOBUF_C_LABEL_REQUIRED && width_of(field) == 8 &&
	    field->type != PROTOBUF_C_TYPE_BYTES)
		memcpy(&m->seen, (char *)message + field->offset, 8);
	change_field(m, message, &descriptor->fields[pick(m, descriptor->n_fields)]);
}

/* Appends the message to itself: lists become longer, and have entries twice. */
static size_t double_message(uint8_t *bytes, size_t size, size_t room)
{
	if (2 * size > room)
		return size;
	memcpy(bytes + size, bytes, size);
	return 2 * size;
}

/* The checksum of what is before it, if the message ends with that field, as those of this plugin.
 */
static void mend_sum(uint8_t *bytes, size_t size)
{
	static const uint8_t tag[] = { 0xf9, 0x7c };
	uint64_t sum;

	if (size < sizeof(tag) + sizeof(sum) ||
	    memcmp(bytes + size - sizeof(sum) - sizeof(tag), tag, sizeof(tag)) != 0)
		return;
	sum = XXH3_64bits(bytes, size - sizeof(sum) - sizeof(tag));
	memcpy(bytes + size - sizeof(sum), &sum, sizeof(sum));
}

static size_t mutate_message(uint8_t *bytes, size_t size, size_t room, unsigned int seed)
{
	ProtobufCMessage *message = protobuf_c_message_unpack(mutate_descriptor, NULL, size, bytes);
	struct mutation m = { .seed = seed };
	size_t packed;

	if (!message)
		return LLVMFuzzerMutate(bytes, size, room);
	for (unsigned int left = 1 + pick(&m, 3); left; left--)
		change_message(&m, message);
	packed = protobuf_c_message_get_packed_size(message);
	if (packed <= room)
		size = protobuf_c_message_pack(message, bytes);
	protobuf_c_message_free_unpacked(message, NULL);
	if (!pick(&m, 64))
		size = double_message(bytes, size, room);
	if (pick(&m, 64))
		mend_sum(bytes, size);
	return size;
}

size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t size, size_t room, unsigned int seed)
{
	if (!&mutate_descriptor || seed % 8 == 0 || size < mutate_offset)
		return LLVMFuzzerMutate(bytes, size, room);
	return mutate_offset + mutate_message(bytes + mutate_offset, size - mutate_offset,
					      room - mutate_offset, seed);
}
