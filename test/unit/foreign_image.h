/* SPDX-License-Identifier: GPL-2.0-only */
/* Writes images of other programs byte by byte. */
#ifndef TEST_UNIT_FOREIGN_IMAGE_H
#define TEST_UNIT_FOREIGN_IMAGE_H

#include "framed.h"
#include "wire.h"

enum vintage {
	/* CRIU 3.17 to 4.2. */
	VINTAGE_A,
	/* After 4.2. */
	VINTAGE_B,
};

static inline void put_bo(struct wire *kfd, enum vintage vintage)
{
	struct wire bo = { 0 };

	wire_number(&bo, 1, 0x7f0000000000);
	wire_number(&bo, 2, 0x200000);
	wire_number(&bo, 3, 0x1ffe00000000);
	wire_number(&bo, 4, 0xf0000001);
	wire_number(&bo, 5, 0xbeef);
	if (vintage == VINTAGE_B)
		wire_number(&bo, 6, 0xffffffff);
	wire_bytes(kfd, 6, bo.bytes, bo.size);
}

/* The value of a device's field: its number, where any is possible. */
static inline uint64_t device_field(unsigned int field)
{
	enum { RENDER_MINOR = 21, VRAM_SIZE = 31 };

	switch (field) {
	case RENDER_MINOR:
		return 128;
	case VRAM_SIZE:
		return 1ULL << 36;
	default:
		return field;
	}
}

/* A KFD image of another program: a process with one CPU node, one GPU and one BO. */
static inline struct wire foreign_kfd(uint32_t pid, enum vintage vintage)
{
	struct wire kfd = { 0 };

	wire_number(&kfd, 1, pid);
	wire_number(&kfd, 2, 1);
	wire_number(&kfd, 3, 1);
	for (unsigned int i = 0; i < 2; i++) {
		struct wire device = { 0 };

		wire_number(&device, 1, i);
		wire_number(&device, 2, i ? 0xbeef : 0);
		for (unsigned int field = 3; field <= 31; field++)
			wire_number(&device, field, device_field(field));
		wire_bytes(&kfd, 4, device.bytes, device.size);
	}
	wire_number(&kfd, 5, 1);
	put_bo(&kfd, vintage);
	wire_number(&kfd, 7, 4);
	wire_number(&kfd, 8, 8);
	wire_number(&kfd, 9, 0x12345678);
	wire_bytes(&kfd, 10, "private data of an unknown layout", 33);
	return kfd;
}

static inline void write_foreign_kfd(const char *name, uint32_t pid, enum vintage vintage)
{
	struct wire kfd = foreign_kfd(pid, vintage);

	write_framed(name, kfd.bytes, kfd.size);
}

#endif
