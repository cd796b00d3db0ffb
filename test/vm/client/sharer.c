/* SPDX-License-Identifier: GPL-2.0-only */
/* gpu_sharer LOG RANKS [GPU [keep|host]]: the ring of processes that ring.h describes.
 *
 * Buffers are in VRAM of the first GPU. @GPU, 0 if it is left out, is the index of the GPU for
 * which the others import them, and whose queue reads and writes them.
 *
 * With `keep`, the parent of the processes keeps a dma-buf of each buffer. The parent has no
 * /dev/kfd, and looks at the buffers through the dma-bufs.
 *
 * With `host`, the buffers are in host memory. A process imports one as newer ROCr does: by a GEM
 * handle in the render file of its compute VM, without a BO of KFD. GEM_VA maps the handle, and the
 * CPU maps it at the offset of GEM_MMAP. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <amdgpu_drm.h>

#include "raw_gem.h"
#include "ring.h"

#define PAGE 4096u

enum mode { DEFAULT, KEEP, HOST, MODES };

static const char *const mode_names[MODES] = { [DEFAULT] = "", [KEEP] = "keep", [HOST] = "host" };

/* What the parent knows. */
struct parent {
	struct board *board;
	bool keeps;
	int dmabufs[BOARD_RANKS_MAX];
};

/* No BO of KFD is made. The object that was made before leaves a hole below the GEM handle of the
 * import. */
static int import_gem(struct raw_process *process, int gpu, int dmabuf, struct raw_bo *bo)
{
	int render = process->render[gpu];
	uint32_t hole, handle;
	int ret = raw_gem_create(render, AMDGPU_GEM_DOMAIN_GTT, PAGE, &hole);

	if (ret == 0)
		ret = raw_gem_import(render, dmabuf, &handle);
	if (ret == 0)
		ret = raw_gem_close(render, hole);
	if (ret == 0)
		ret = raw_gem_map(render, handle, (uintptr_t)bo->address, 0, bo->size);
	return ret ? ret : raw_gem_offset(render, handle, &bo->mmap_offset);
}

static uint64_t look_at(const struct parent *parent, unsigned int number)
{
	void *buffer = mmap(NULL, RING_BYTES, PROT_READ, MAP_SHARED, parent->dmabufs[number], 0);
	uint64_t question = buffer == MAP_FAILED ? 0 : ring_look(buffer, number);

	if (buffer != MAP_FAILED)
		(void)munmap(buffer, RING_BYTES);
	return question;
}

/* The parent sees the questions of all ranks go on, too. */
static bool verify(void *argument)
{
	const struct parent *parent = argument;
	uint64_t before[BOARD_RANKS_MAX] = { 0 };
	bool good = board_goes_on(parent->board);

	for (unsigned int i = 0; parent->keeps && i < parent->board->ranks; i++)
		before[i] = look_at(parent, i);
	good = good && board_goes_on(parent->board);
	for (unsigned int i = 0; parent->keeps && i < parent->board->ranks; i++)
		good &= before[i] && look_at(parent, i) > before[i];
	return good;
}

/* MODES: there is no such mode. */
static enum mode find_mode(const char *name)
{
	enum mode mode = DEFAULT;

	while (mode < MODES && strcmp(mode_names[mode], name) != 0)
		mode++;
	return mode;
}

int main(int argc, char **argv)
{
	unsigned int ranks = argc >= 3 ? (unsigned int)atoi(argv[2]) : 0;
	enum mode mode = find_mode(argc >= 5 ? argv[4] : "");
	int gpu = argc >= 4 ? atoi(argv[3]) : 0;
	struct parent parent = { .keeps = mode == KEEP };
	struct report report;
	struct ring_options options = {
		.report = &report,
		.flags = mode == HOST ? RAW_GTT | KFD_IOC_ALLOC_MEM_FLAGS_COHERENT : RAW_VRAM,
		.imports_elsewhere = true,
		.import = mode == HOST ? import_gem : NULL,
		.dmabufs = parent.keeps ? parent.dmabufs : NULL,
	};

	if (ranks < 2 || ranks > BOARD_RANKS_MAX || gpu < 0 || mode == MODES)
		return 2;
	report_init(&report, argv[1]);
	parent.board = options.board = board_new(sizeof(*parent.board), ranks, RING_STEP_US);
	for (unsigned int i = 0; i < ranks; i++)
		options.queue_gpu[i] = gpu;
	if (!parent.board || ring_start(&options) < 0)
		return 1;
	return board_serve(parent.board, &report, verify, &parent);
}
