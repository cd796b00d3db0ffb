// SPDX-License-Identifier: GPL-2.0-only
/* A copy engine on plain memory, in place of src/content/sdma.c (the linker's --wrap). Bytes move
 * when a caller waits for them. */
#include "fake_gpu.h"

#include <sys/mman.h>

#include "content/content.h"
#include "content/sdma.h"
#include "kernel/render_node.h"

#define SLOTS_MAX 16
#define GPU_PAGE  4096

struct fake_gpu gpu;

struct sdma {
	int fd;
	unsigned int num_slots;
	size_t slot_size;
	char *memory;
	struct slot {
		enum sdma_direction direction;
		struct sdma_piece *pieces;
		size_t num_pieces;
		bool busy;
	} slots[SLOTS_MAX];
};

int __wrap_sdma_open(uint32_t render_minor, unsigned int slots, size_t slot_size,
		     struct sdma **ret_gpu);
void __wrap_sdma_stop(struct sdma *engine);
void __wrap_sdma_close(struct sdma *engine);
void *__wrap_sdma_slot_memory(struct sdma *engine, unsigned int slot);
int __wrap_sdma_bo_import(struct sdma *engine, const struct content_bo *bo, struct sdma_bo *ret_bo);
void __wrap_sdma_bo_release(struct sdma_bo *bo);
int __wrap_sdma_submit(struct sdma *engine, unsigned int slot, enum sdma_direction direction,
		       const struct sdma_piece *pieces, size_t num_pieces);
int __wrap_sdma_wait(struct sdma *engine, unsigned int slot, uint64_t timeout_s);
int __wrap_sdma_check_faults(struct sdma *engine);

static bool any_process_runs(void)
{
	for (size_t i = 0; i < PROCESSES; i++) {
		if (kernel.processes[i].num_devices && !kernel.processes[i].paused)
			return true;
	}
	return false;
}

int fake_gpu_begin(void **state)
{
	memset(&gpu, 0, sizeof(gpu));
	gpu.lowest_dmabuf = INT32_MAX;
	return fake_kernel_begin(state);
}

int fake_gpu_end(void **state)
{
	int ret = fake_kernel_end(state);

	if (gpu.objects)
		printf("%d engines and BOs are not closed\n", gpu.objects);
	if (gpu.violations)
		printf("%u violations of the engine's rules\n", gpu.violations);
	return gpu.objects || gpu.violations ? -1 : ret;
}

/* A dma-buf is a file in memory. The driver rounds the size up to pages. */
int new_dmabuf(uint32_t number, uint64_t size)
{
	int fd = memfd_create("bo", MFD_CLOEXEC);

	(void)number;
	assert_int_equal(ftruncate(fd, (off_t)((size + 4095) / 4096 * 4096)), 0);
	return fd;
}

/* -errno if this is the call that fails. */
static int count_call(void)
{
	return ++gpu.calls == gpu.fail_at ? -gpu.fail_errno : 0;
}

int __wrap_sdma_open(uint32_t render_minor, unsigned int slots, size_t slot_size,
		     struct sdma **ret_gpu)
{
	struct sdma *engine;
	int fd, ret = count_call();

	if (!ret)
		ret = render_node_open(render_minor, 0, &fd);
	if (ret < 0)
		return ret;
	engine = calloc(1, sizeof(*engine));
	if (!engine || slots > SLOTS_MAX)
		abort();
	*engine = (struct sdma){ .fd = fd, .num_slots = slots, .slot_size = slot_size };
	engine->memory = aligned_alloc(GPU_PAGE, slots * slot_size);
	/* New memory is not zero. */
	memset(engine->memory, 0xa5, slots * slot_size);
	gpu.objects++;
	if (gpu.has_no_rings) {
		__wrap_sdma_close(engine);
		return -ENODATA;
	}
	*ret_gpu = engine;
	return 0;
}

static void end_copies(struct slot *slot)
{
	free(slot->pieces);
	*slot = (struct slot){ 0 };
}

void __wrap_sdma_stop(struct sdma *engine)
{
	for (unsigned int i = 0; i < engine->num_slots; i++)
		end_copies(&engine->slots[i]);
}

void __wrap_sdma_close(struct sdma *engine)
{
	if (!engine)
		return;
	__wrap_sdma_stop(engine);
	free(engine->memory);
	(void)close(engine->fd);
	free(engine);
	gpu.objects--;
}

void *__wrap_sdma_slot_memory(struct sdma *engine, unsigned int slot)
{
	return engine->memory + slot * engine->slot_size;
}

int __wrap_sdma_bo_import(struct sdma *engine, const struct content_bo *bo, struct sdma_bo *ret_bo)
{
	off_t size = lseek(bo->dmabuf_fd, 0, SEEK_END);
	int ret = count_call();
	void *memory;

	(void)engine;
	gpu.inherited_dmabufs += !(fcntl(bo->dmabuf_fd, F_GETFD) & FD_CLOEXEC);
	if (bo->dmabuf_fd < gpu.lowest_dmabuf)
		gpu.lowest_dmabuf = bo->dmabuf_fd;
	if (ret < 0)
		return ret;
	if (size < 0 || (uint64_t)size < bo->size)
		return -EINVAL;
	memory = mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE, MAP_SHARED, bo->dmabuf_fd, 0);
	if (memory == MAP_FAILED)
		return -errno;
	gpu.objects++;
	*ret_bo = (struct sdma_bo){ .bo = memory, .size = (uint64_t)size };
	return 0;
}

void __wrap_sdma_bo_release(struct sdma_bo *bo)
{
	if (!bo->bo)
		return;
	(void)munmap(bo->bo, bo->size);
	*bo = (struct sdma_bo){ 0 };
	gpu.objects--;
}

int __wrap_sdma_submit(struct sdma *engine, unsigned int slot_index, enum sdma_direction direction,
		       const struct sdma_piece *pieces, size_t num_pieces)
{
	struct slot *slot = &engine->slots[slot_index];
	int ret = count_call();

	if (ret < 0)
		return ret;
	gpu.violations += slot->busy || (gpu.wants_all_paused && any_process_runs());
	gpu.submissions++;
	*slot = (struct slot){ .direction = direction, .num_pieces = num_pieces, .busy = true };
	slot->pieces = calloc(num_pieces + 1, sizeof(*pieces));
	if (!slot->pieces)
		abort();
	memcpy(slot->pieces, pieces, num_pieces * sizeof(*pieces));
	return 0;
}

static void copy(const struct sdma *engine, const struct slot *slot, char *memory,
		 const struct sdma_piece *piece)
{
	char *bo = (char *)piece->bo->bo + piece->offset, *staging = memory + piece->slot_offset;

	if (piece->offset + piece->size > piece->bo->size ||
	    piece->slot_offset + piece->size > engine->slot_size)
		gpu.violations++;
	else if (slot->direction == SDMA_BO_TO_SLOT)
		memcpy(staging, bo, piece->size);
	else
		memcpy(bo, staging, piece->size);
}

int __wrap_sdma_wait(struct sdma *engine, unsigned int slot_index, uint64_t timeout_s)
{
	struct slot *slot = &engine->slots[slot_index];
	int ret = count_call();

	(void)timeout_s;
	if (ret < 0)
		return ret;
	for (size_t i = 0; i < slot->num_pieces; i++)
		copy(engine, slot, __wrap_sdma_slot_memory(engine, slot_index), &slot->pieces[i]);
	end_copies(slot);
	return 0;
}

int __wrap_sdma_check_faults(struct sdma *engine)
{
	(void)engine;
	return count_call();
}
