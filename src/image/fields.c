// SPDX-License-Identifier: GPL-2.0-only
/* Walks through unpacked messages by their descriptors. */
#include "image/fields.h"

#include <stddef.h>

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

bool fields_have_own(const ProtobufCMessage *message)
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

const ProtobufCMessage *fields_find_unknown(const ProtobufCMessage *message, uint32_t *ret_number)
{
	const ProtobufCMessage *found = find_message(message, has_unknown_field);

	if (found)
		*ret_number = find_unknown(found);
	return found;
}
