/* SPDX-License-Identifier: GPL-2.0-only */
/* One open GPU and its copy engine: copies bytes between BOs and memory of this process. The
 * functions open a render node of their own, so they change nothing in the files of the dumped
 * process. They print nothing: callers know the BO and print the error. Several threads may use
 * slots and BOs at the same time, one at a time per slot. Only one thread may open or close. */
#ifndef AMDGPU_PLUGIN_CONTENT_SDMA_H
#define AMDGPU_PLUGIN_CONTENT_SDMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct content_bo;
struct sdma;

/* The kernel maps this much as one page, so a slot needs few entries in the GPU's page table. A BO
 * in VRAM does too, if its GPU address has this alignment (amdgpu_vm_pt.c in the kernel). */
#define SDMA_HUGE_PAGE (2u << 20)

/* The most pieces of a slot of @size bytes: one per page, and the ends of two more BOs. */
#define SDMA_SLOT_PIECES(size) ((size) / 4096 + 2)

/* Opens the GPU of /dev/dri/renderD@render_minor with @slots staging slots of @slot_size
 * bytes. Each slot is registered with the GPU once. The memory has huge pages if the system has
 * them. A slot is rounded up to whole pages of the kernel, and all together to SDMA_HUGE_PAGE.
 * The slots are distributed over the rings that the GPU offers for copies. -ENODEV: libdrm returned
 * the handle of another GPU. -ENODATA: there is no ring. */
int sdma_open(uint32_t render_minor, unsigned int slots, size_t slot_size, struct sdma **ret_gpu);
/* The same without memory: sdma_set_memory() gives each slot its own. */
int sdma_open_bare(uint32_t render_minor, unsigned int slots, size_t slot_size,
		   struct sdma **ret_gpu);
/* Abandons copies that no thread has waited for, so that BOs may be released. No copy can be
 * submitted afterwards. */
void sdma_stop(struct sdma *gpu);
/* Does not wait: memory that the engine may still write to stays mapped until the process ends. */
void sdma_close(struct sdma *gpu);

/* The staging memory of a slot, from sdma_open(). */
void *sdma_slot_memory(struct sdma *gpu, unsigned int slot);

/* A BO of another process or file, imported as dma-buf and mapped for the copy engine. */
struct sdma_bo {
	void *bo;
	void *va_range;
	uint64_t va;
	uint64_t size;
};

/* -ESTALE: the dma-buf is that of another BO, by the mmap offset. */
int sdma_bo_import(struct sdma *gpu, const struct content_bo *bo, struct sdma_bo *ret_bo);
/* Accepts an empty object. */
void sdma_bo_release(struct sdma_bo *bo);

/* Makes memory of slots_map() available to the GPU. */
int sdma_register(struct sdma *gpu, char *memory, size_t size, struct sdma_bo *ret_bo);
/* The slot, which must be idle, is at @memory from now on. @memory may have been registered by
 * another sdma_open() of the same GPU: libdrm opens a GPU once in each process. */
void sdma_set_memory(struct sdma *gpu, unsigned int slot, const struct sdma_bo *memory);

/* Bytes [offset, offset + size) of @bo, and the same number of bytes of the slot at @slot_offset.
 */
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

/* Starts the copies of one slot as one command buffer and does not wait. The slot must be idle.
 * -E2BIG: the command buffer has no room for the packets, and no copy was submitted. */
int sdma_submit(struct sdma *gpu, unsigned int slot, enum sdma_direction direction,
		const struct sdma_piece *pieces, size_t num_pieces);
/* Waits for the copies of the slot. -ETIME: the copies, or earlier ones on the ring, took more than
 * @timeout_s seconds. -EIO: the GPU was reset meanwhile, or has lost memory, so the copied bytes
 * may be wrong. */
int sdma_wait(struct sdma *gpu, unsigned int slot, uint64_t timeout_s);
/* Whether the engine may still write to the slot: sdma_wait() has failed. */
bool sdma_is_busy(const struct sdma *gpu, unsigned int slot);
/* Whether a copy since sdma_open() had a page fault. Its fence signals, and the bytes are wrong.
 * -EFAULT: one had. Kernels before 6.8 do not report faults, and the result is 0. */
int sdma_check_faults(struct sdma *gpu);

#endif
