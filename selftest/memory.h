/* SPDX-License-Identifier: GPL-2.0-only */
/* Memory that GPUs can use, of each kind that ROCm programs have. thunk.h says which programs
 * implement its last three functions. */
#ifndef SELFTEST_MEMORY_H
#define SELFTEST_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpus.h"
#include "report.h"

enum memory_kind {
	MEMORY_VRAM_VISIBLE,
	MEMORY_VRAM_HIDDEN, /* its CPU mapping is PROT_NONE */
	MEMORY_GTT,
	MEMORY_USERPTR,    /* of the runtime */
	MEMORY_REGISTERED, /* the program's own anonymous memory */
	MEMORY_MEMFD,      /* the program's own mapping of a memfd */
	MEMORY_UNLINKED,   /* and of a file that was removed */
};

struct memory {
	enum memory_kind kind;
	void *address; /* the CPU's */
	/* The GPUs'. Only with libhsakmt 5 and for the program's own memory is it another one. */
	void *gpu_address;
	size_t size_bytes;
	/* Without libhsakmt: KFD's handle, and the positions of the GPUs that map it, a bit each.
	 */
	uint64_t handle, mapped;
};

const char *memory_kind_name(enum memory_kind kind);

bool memory_has_cpu_access(enum memory_kind kind);
/* The program's own memory of this kind, for host_memory_map(). NULL: the memory is the driver's,
 * or the runtime's. */
const char *memory_own_kind(enum memory_kind kind);

/* Allocates @size_bytes (a multiple of 4096) on or for @gpu and maps it to all of @mapped, but VRAM
 * without libhsakmt only to those of them that reach it. */
int memory_alloc(struct report *report, enum memory_kind kind, size_t size_bytes,
		 const struct gpu *gpu, const struct gpus *mapped, struct memory *ret_memory);

/* Unmaps and frees; a failure is reported, as the handles must have survived a restore. */
void memory_free(struct report *report, struct memory *memory);

/* The set of only this GPU, for the @mapped of memory_alloc(). */
struct gpus memory_only(const struct gpu *gpu);

/* The steps of memory_alloc() and memory_free(), which return 0 or -errno and report nothing. Gets
 * memory of this kind and size on or for the GPU. */
int memory_obtain(const struct gpu *gpu, struct memory *memory);
/* Maps it to GPUs. */
int memory_map(const struct gpu *gpu, struct memory *memory, const struct gpus *mapped);
/* Unmaps it from all GPUs, and frees it. */
int memory_release(struct memory *memory);

#endif
