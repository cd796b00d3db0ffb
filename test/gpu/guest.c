// SPDX-License-Identifier: GPL-2.0-only
#include "guest.h"

#include <errno.h>
#include <stddef.h>
#include <sys/mman.h>

int guest_add(struct guest *guest, const struct guest_range *range)
{
	if (guest->num_ranges == GUEST_MAX_RANGES)
		return -ENOSPC;
	guest->ranges[guest->num_ranges++] = *range;
	return 0;
}

void guest_remove(struct guest *guest, uint64_t address, uint64_t size_bytes)
{
	unsigned int i = 0;

	while (i < guest->num_ranges) {
		struct guest_range *range = &guest->ranges[i];

		if (range->address < address || range->size_bytes > size_bytes ||
		    range->address - address > size_bytes - range->size_bytes) {
			i++;
			continue;
		}
		(void)munmap(range->memory, range->size_bytes);
		*range = guest->ranges[--guest->num_ranges];
	}
}

void *guest_at(const struct guest *guest, uint64_t address, uint64_t size_bytes)
{
	unsigned int i;

	for (i = 0; i < guest->num_ranges; i++) {
		const struct guest_range *range = &guest->ranges[i];

		if (address >= range->address && size_bytes <= range->size_bytes &&
		    address - range->address <= range->size_bytes - size_bytes)
			return range->memory + (address - range->address);
	}
	return NULL;
}
