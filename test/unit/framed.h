/* SPDX-License-Identifier: GPL-2.0-only */
/* Writes image files with the framing of the plugin: the length, then that many bytes. */
#ifndef TEST_UNIT_FRAMED_H
#define TEST_UNIT_FRAMED_H

#include "host.h"

static inline void write_framed(const char *name, const void *bytes, size_t size)
{
	uint8_t *file = malloc(8 + size);

	if (!file)
		abort();
	for (size_t i = 0; i < 8; i++)
		file[i] = (uint8_t)((uint64_t)size >> (8 * i));
	if (size)
		memcpy(file + 8, bytes, size);
	unit_write(name, file, 8 + size);
	free(file);
}

#endif
