/* SPDX-License-Identifier: GPL-2.0-only */
/* One open GPU and its copy engine: moves bytes between BOs and memory of this process. Always
 * opens a render node of its own, so that nothing of the dumped process's is touched. Silent:
 * callers know what was being copied and print the error. Slots may be used at once, each by one
 * thread, and so may BOs; opening and closing is for one thread alone. */
#ifndef AMDGPU_PLUGIN_CONTENT_SDMA_H
#define AMDGPU_PLUGIN_CONTENT_SDMA_H

#include <stddef.h>
#include <stdint.h>

struct sdma;

/* Most pieces that a slot of @size bytes may be given: one a page, and the ends of two more BOs. */
#define SDMA_SLOT_PIECES(size) ((size) / 4096 + 2)

/* Whether libdrm can read its list of GPU names (amdgpu.ids): 0, also if there is no list, or
 * -EMEDIUMTYPE if the list is no regular file of at most 1 MiB. libdrm reads the list in
 * sdma_open(), to the end of the file. */
int sdma_check_names(void);
/* Opens the GPU of /dev/dri/renderD@render_minor with @slots staging slots of @slot_size bytes
 * (whole pages), registered with the GPU once, in huge pages where the system has them. Slots take
 * turns on the rings that the GPU offers for copies. -ENODEV: libdrm gave another GPU's handle, or
 * there is no ring. */
int sdma_open(uint32_t render_minor, unsigned int slots, size_t slot_size, struct sdma **ret_gpu);
/* Gives up what was submitted and not waited for, so that BOs may be released. Nothing
 * can be submitted afterwards. */
void sdma_stop(struct sdma *gpu);
/* Waits for nothing: memory that the engine may still write to is left to the
 * end of the process. */
void sdma_close(struct sdma *gpu);

/* The staging memory of a slot. */
void *sdma_slot_memory(struct sdma *gpu, unsigned int slot);

/* A BO of another process or file, imported by dma-buf and mapped for the copy engine. */
struct sdma_bo {
	void *bo;
	void *va_range;
	uint64_t va;
	uint64_t size;
};

int sdma_bo_import(struct sdma *gpu, int dmabuf_fd, uint64_t size, struct sdma_bo *ret_bo);
/* Accepts an empty object. */
void sdma_bo_release(struct sdma_bo *bo);

/* Bytes [offset, offset + size) of @bo and of the slot at @slot_offset. */
struct sdma_piece {
	const struct sdma_bo *bo;
	uint64_t offset;
	uint64_t slot_offset;
	uint64_t size;
};

enum sdma_direction {
	SDMA_BO_TO_SLOT,
	SDMA_SLOT_TO_BO,
};

/* Starts the copies of one slot as one command buffer and does not wait. The slot must be idle. */
int sdma_submit(struct sdma *gpu, unsigned int slot, enum sdma_direction direction,
		const struct sdma_piece *pieces, size_t num_pieces);
/* Waits for the slot's copies. -ETIME: they, or those before them on the ring, have not ended in
 * the @timeout_s seconds that were theirs; -EIO: the GPU reports that it was reset meanwhile, so
 * that the copy cannot be trusted. */
int sdma_wait(struct sdma *gpu, unsigned int slot, uint64_t timeout_s);

#endif
