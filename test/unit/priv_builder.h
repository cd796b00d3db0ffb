/* SPDX-License-Identifier: GPL-2.0-only */
/* Builds KFD's private data, record by record, for the tests of kfd_priv. */
#ifndef TEST_UNIT_PRIV_BUILDER_H
#define TEST_UNIT_PRIV_BUILDER_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "kernel/kfd_priv.h"

#define DEVICES 3
#define BOS     4

struct builder {
	uint8_t bytes[1 << 17];
	struct kfd_priv priv;
};

static inline uint8_t *add(struct builder *b, size_t size)
{
	uint8_t *record = b->bytes + b->priv.size;

	memset(record, 0, size);
	b->priv.size += size;
	return record;
}

static inline void set(uint8_t *record, size_t offset, uint32_t value)
{
	memcpy(record + offset, &value, sizeof(value));
}

/* The records of the process, of its devices and of its BOs. */
static inline void begin(struct builder *b, size_t bo_size)
{
	*b = (struct builder){ .priv = { .num_devices = DEVICES, .num_bos = BOS } };
	b->priv.bytes = b->bytes;
	set(add(b, 8), 0, 1);
	(void)add(b, 8 * DEVICES);
	for (uint32_t i = 0; i < BOS; i++)
		memset(add(b, bo_size), (int)(0x10 + i), bo_size);
}

static inline void add_queue(struct builder *b, uint32_t mqd_size, uint32_t ctl_stack_size)
{
	uint8_t *record = add(b, 120 + mqd_size + ctl_stack_size);

	set(record, 64, 0xdfd4);
	set(record, 108, ctl_stack_size);
	set(record, 112, mqd_size);
	memset(record + 120, 0x77, mqd_size + ctl_stack_size);
	b->priv.num_objects++;
}

static inline void add_event(struct builder *b)
{
	set(add(b, 64), 0, 1);
	b->priv.num_objects++;
}

#endif
