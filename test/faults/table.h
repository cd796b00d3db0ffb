/* SPDX-License-Identifier: GPL-2.0-only */
/* The file in which the injector (inject.c) lists the places that were met, for the explorer
 * (explore.c). */
#ifndef TEST_FAULTS_TABLE_H
#define TEST_FAULTS_TABLE_H

#include <stdint.h>

#define PLACES_MAX 2048
#define FRAMES_MAX 24
#define FAULT_SIZE 32

/* Files, and their names in lists. The first is the plugin. */
#define LIBRARIES(X)                           \
	X("amdgpu_plugin.so", "plugin")        \
	X("libdrm_amdgpu.so", "libdrm_amdgpu") \
	X("libdrm.so", "libdrm")               \
	X("libprotobuf-c.so", "libprotobuf-c") \
	X("libxxhash.so", "libxxhash")

/* A frame is the number of its library above FRAME_BITS, and below it the offset in the library. */
#define FRAME_BITS 48

struct place {
	uint64_t hash, count;
	/* For an ioctl: its request; above 32 bits the operation of CRIU_OP plus one. */
	uint64_t detail;
	uint64_t num_frames;
	uint64_t frames[FRAMES_MAX]; /* the innermost first */
	char name[40];
	char faults[96]; /* the faults of the call, with blanks between */
};

/* Open addressing by hash. 0 marks a free slot. */
struct table {
	uint64_t fired, num_places, lock, reserved;
	struct place places[PLACES_MAX];
};

#endif
