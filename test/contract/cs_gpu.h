/* SPDX-License-Identifier: GPL-2.0-only */
/* A GPU opened through libdrm_amdgpu, its copy engine, and buffers mapped into it, for the
 * acceptance tests. Every function gives 0 or -errno. */
#ifndef CONTRACT_CS_GPU_H
#define CONTRACT_CS_GPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <amdgpu.h>
#include <amdgpu_drm.h>

struct cs_gpu {
	int fd;
	amdgpu_device_handle device;
	amdgpu_context_handle context;
	struct cs_bo *ib;
};

struct cs_bo {
	amdgpu_bo_handle handle;
	amdgpu_va_handle va;
	uint64_t address; /* of the GPU */
	uint64_t size;
	void *cpu; /* NULL for what the CPU cannot map */
};

/* The GPU at this position in sysfs. */
int cs_open(int index, struct cs_gpu *gpu);

int cs_alloc(struct cs_gpu *gpu, uint32_t domain, uint64_t size, struct cs_bo *bo);
int cs_wrap_user(struct cs_gpu *gpu, void *memory, uint64_t size, struct cs_bo *bo);
/* Gives a buffer that was imported an address. */
int cs_map(struct cs_gpu *gpu, struct cs_bo *bo);

/* A command buffer with these words, sent as it is, to this ring, with these
 * buffers in its list. */
struct cs_job {
	const uint32_t *words;
	unsigned int count;
	unsigned int ring;
	amdgpu_bo_handle bos[4];
	unsigned int bo_count;
};

/* 0 when it was executed; what submission or fence say otherwise. */
int cs_run(struct cs_gpu *gpu, const struct cs_job *job);

/* The copy of @bytes, padded with NOPs to 8 words, @words has room for 16. */
void cs_build_copy(uint32_t words[16], uint64_t from, uint64_t to, uint32_t bytes);
int cs_copy(struct cs_gpu *gpu, unsigned int ring, const struct cs_bo *from, const struct cs_bo *to,
	    uint32_t bytes);

#endif
