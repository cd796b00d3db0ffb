// SPDX-License-Identifier: GPL-2.0-only
/* Gives protobuf-c an allocator with a budget, so that a hostile image cannot fill all memory, and
 * walks through messages by their descriptors. */
#include "image/unpack.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>

#include "criu/log.h"

/* The memory for a message: its packed size, its unpacked size, and a fixed allowance. One BO takes
 * 49 bytes in the message and 184 in memory: 112 for its entry, 8 for the pointer to it, and 64
 * while protobuf-c scans the message. Its private data takes 272 bytes in both (kfd_priv.h). A real
 * message therefore takes 1.4 times its size. 100,000 BOs without private data fit in the
 * allowance. */
#define MEMORY_TIMES 4
#define MEMORY_PLUS  (24ULL << 20)

/* The most bytes that malloc() adds to an allocation below the size of its own mappings. */
#define MALLOC_COST 32

struct budget {
	uint64_t left;
	bool exceeded;
	bool failed;
};

static void *budget_alloc(void *argument, size_t size)
{
	struct budget *budget = argument;
	void *memory;

	budget->exceeded |= size > budget->left || budget->left - size < MALLOC_COST;
	if (budget->exceeded)
		return NULL;
	budget->left -= size + MALLOC_COST;
	memory = malloc(size);
	budget->failed |= !memory;
	return memory;
}

/* Freed memory does not return to the budget: protobuf-c frees little while it unpacks. */
static void budget_free(void *budget, void *memory)
{
	(void)budget;
	free(memory);
}

/* The first number of this plugin's fields. */
#define OWN_FIELDS 1000

static const void *member(const ProtobufCMessage *message, unsigned int offset)
{
	return (const char *)message + offset;
}

/* How many values the field has. */
static size_t count_values(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
	if (field->label == PROTOBUF_C_LABEL_REQUIRED)
		return 1;
	if (field->label == PROTOBUF_C_LABEL_REPEATED)
		return *(const size_t *)member(message, field->quantifier_offset);
	if (field->type == PROTOBUF_C_TYPE_MESSAGE || field->type == PROTOBUF_C_TYPE_STRING)
		return *(const void *const *)member(message, field->offset) != NULL;
	return *(const protobuf_c_boolean *)member(message, field->quantifier_offset);
}

/* Value @index of a field whose values are messages. */
static const ProtobufCMessage *value_at(const ProtobufCMessage *message,
					const ProtobufCFieldDescriptor *field, size_t index)
{
	const void *at = member(message, field->offset);

	if (field->label == PROTOBUF_C_LABEL_REPEATED)
		return (*(ProtobufCMessage *const *const *)at)[index];
	return *(const ProtobufCMessage *const *)at;
}

/* The first message in @message, or itself, that @is_wanted() takes. Messages nest four levels at
 * most. */
static const ProtobufCMessage *find_message(const ProtobufCMessage *message,
					    bool (*is_wanted)(const ProtobufCMessage *message))
{
	const ProtobufCMessage *found = is_wanted(message) ? message : NULL;

	for (unsigned int i = 0; !found && i < message->descriptor->n_fields; i++) {
		const ProtobufCFieldDescriptor *field = &message->descriptor->fields[i];
		size_t count = count_values(message, field);

		if (field->type != PROTOBUF_C_TYPE_MESSAGE)
			continue;
		for (size_t j = 0; !found && j < count; j++)
			found = find_message(value_at(message, field, j), is_wanted);
	}
	return found;
}

static bool has_own_field(const ProtobufCMessage *message)
{
	for (unsigned int i = 0; i < message->descriptor->n_fields; i++) {
		const ProtobufCFieldDescriptor *field = &message->descriptor->fields[i];

		if (field->id >= OWN_FIELDS && count_values(message, field))
			return true;
	}
	for (unsigned int i = 0; i < message->n_unknown_fields; i++) {
		if (message->unknown_fields[i].tag >= OWN_FIELDS)
			return true;
	}
	return false;
}

bool unpack_has_own_fields(const ProtobufCMessage *message)
{
	return find_message(message, has_own_field) != NULL;
}

/* The number of the first unknown field of the message itself, or 0 if it knows all. */
static uint32_t find_unknown(const ProtobufCMessage *message)
{
	for (unsigned int i = 0; i < message->n_unknown_fields; i++) {
		if (message->unknown_fields[i].tag < OWN_FIELDS)
			return message->unknown_fields[i].tag;
	}
	return 0;
}

static bool has_unknown_field(const ProtobufCMessage *message)
{
	return find_unknown(message) != 0;
}

/* A restore may need what such a field says. Other programs leave the fields of this plugin out. */
static int check_fields(const char *name, ProtobufCMessage *message)
{
	const ProtobufCMessage *found = find_message(message, has_unknown_field);
	int ret;

	if (!found)
		return 0;
	ret = log_error(
		-EOPNOTSUPP,
		"image %s: it has field %" PRIu32
		" of %s, which this plugin does not know; use a newer plugin, or that of the dump",
		name, find_unknown(found), found->descriptor->name);
	protobuf_c_message_free_unpacked(message, NULL);
	return ret;
}

/* An unknown field takes two bytes in a message and some ninety in memory, so the budget limits
 * it. */
int unpack_message(const char *name, const ProtobufCMessageDescriptor *descriptor,
		   const uint8_t *bytes, uint64_t size, ProtobufCMessage **ret_message)
{
	const uint64_t room = (MEMORY_TIMES - 1) * size + MEMORY_PLUS;
	struct budget budget = { .left = room };
	ProtobufCAllocator allocator = { budget_alloc, budget_free, &budget };
	ProtobufCMessage *message = protobuf_c_message_unpack(descriptor, &allocator, size, bytes);

	if (message) {
		int ret = check_fields(name, message);

		if (!ret)
			*ret_message = message;
		return ret;
	}
	if (budget.exceeded)
		return log_error(-EINVAL,
				 "image %s: damaged: it takes more than %" PRIu64 " MiB of memory",
				 name, room >> 20);
	if (budget.failed)
		return log_error(-ENOMEM, "image %s: cannot unpack", name);
	return log_error(-EINVAL, "image %s: damaged: it does not parse as %s", name,
			 descriptor->name);
}
