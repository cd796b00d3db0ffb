// SPDX-License-Identifier: GPL-2.0-only
/* Gives protobuf-c an allocator with a budget, so that a hostile image cannot fill all memory. */
#include "image/unpack.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>

#include "criu/log.h"
#include "image/fields.h"

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

/* A restore may need what such a field says. Other programs leave the fields of this plugin out. */
static int check_fields(const char *name, ProtobufCMessage *message)
{
	uint32_t number;
	const ProtobufCMessage *found = fields_find_unknown(message, &number);
	int ret;

	if (!found)
		return 0;
	ret = log_error(
		-EOPNOTSUPP,
		"image %s: it has field %" PRIu32
		" of %s, which this plugin does not know; use a newer plugin, or that of the dump",
		name, number, found->descriptor->name);
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
