// SPDX-License-Identifier: GPL-2.0-only
#include "content/slots.h"

#define PAGE CONTENT_ALIGNMENT
/* A large slot makes the fixed cost of a command buffer and of a storage request small. A small
 * slot stays in the processor's cache from the copy to the write. Several slots keep several
 * requests in flight. */
#define SLOT_MEMORY_MAX (1u << 20)
#define SLOT_MEMORY_MIN (PAGE + 2 * SLOT_MARGIN)
#define SLOTS_WANTED    4u
#define SLOTS_MAX       16u

static uint64_t clamp(uint64_t value, uint64_t least, uint64_t most)
{
	if (value < least)
		return least;
	return value > most ? most : value;
}

struct slots slots_choose(uint64_t staging_bytes, uint64_t size)
{
	uint64_t pages = size / PAGE + (size % PAGE != 0);
	uint64_t most = pages * PAGE + SLOTS_WANTED * 2 * SLOT_MARGIN;
	uint64_t budget = clamp(staging_bytes / PAGE * PAGE, 0, most);
	uint64_t memory =
		clamp(budget / SLOTS_WANTED / PAGE * PAGE, SLOT_MEMORY_MIN, SLOT_MEMORY_MAX);

	return (struct slots){
		.count = (unsigned int)clamp(budget / memory, 1, clamp(pages, 1, SLOTS_MAX)),
		.memory = memory,
		.size = memory - 2 * SLOT_MARGIN,
	};
}
