// SPDX-License-Identifier: GPL-2.0-only
/*
 * A program on stock ROCr: copies to a GPU's VRAM and back, whole and in a box, by the copy
 * engine. Ends with status 0 if the bytes are right. */
#include <stdio.h>
#include <string.h>

#include "rocr.h"

#define BYTES      (1u << 20)
#define CPU_ROW    256u
#define GPU_ROW    512u
#define ROWS       64u
#define BOX_X      100u
#define BOX_Y      20u
#define BOX_Z      2u
#define PATIENCE_S 20u

struct copies {
	struct rocr rocr;
	unsigned char *from, *to, *vram;
	struct rocr_copier copier;
};

static bool set_up(struct copies *copies)
{
	struct rocr *rocr = &copies->rocr;

	return rocr_open(rocr) && rocr_allocate(&rocr->cpu, rocr->gpus, BYTES, &copies->from) &&
	       rocr_allocate(&rocr->cpu, rocr->gpus, BYTES, &copies->to) &&
	       rocr_allocate(rocr->gpus, rocr->gpus, BYTES, &copies->vram) &&
	       rocr_copier_open(rocr, rocr->gpus, &copies->copier);
}

static bool copy_whole(struct copies *copies)
{
	if (!rocr_copy_in(&copies->copier, copies->vram, copies->from, BYTES) ||
	    !rocr_copy_out(&copies->copier, copies->to, copies->vram, BYTES))
		return false;
	if (memcmp(copies->from, copies->to, BYTES) == 0)
		return true;
	(void)printf("wrong bytes\n");
	return false;
}

static bool box_is_right(const struct copies *copies)
{
	unsigned int x, y, z, wrong = 0;

	for (z = 0; z < BOX_Z; z++)
		for (y = 0; y < BOX_Y; y++)
			for (x = 0; x < BOX_X; x++)
				wrong += copies->to[(z + 1) * CPU_ROW * ROWS + (y + 2) * CPU_ROW +
						    x + 8] !=
					 copies->from[(z + 1) * GPU_ROW * ROWS + (y + 3) * GPU_ROW +
						      x + 16];
	if (wrong)
		(void)printf("%u wrong bytes in the box\n", wrong);
	return !wrong;
}

static bool copy_box(struct copies *copies)
{
	hsa_pitched_ptr_t to = { copies->to, CPU_ROW, CPU_ROW * ROWS };
	hsa_pitched_ptr_t from = { copies->vram, GPU_ROW, GPU_ROW * ROWS };
	hsa_dim3_t to_at = { 8, 2, 1 }, from_at = { 16, 3, 1 }, size = { BOX_X, BOX_Y, BOX_Z };

	memset(copies->to, 0, BYTES);
	hsa_signal_store_relaxed(copies->copier.done, 1);
	return rocr_good(hsa_amd_memory_async_copy_rect(&to, &to_at, &from, &from_at, &size,
							copies->rocr.gpus->agent, hsaDeviceToHost,
							0, NULL, copies->copier.done),
			 "copy of a box") &&
	       rocr_wait(copies->copier.done, PATIENCE_S, "a copy of a box") &&
	       box_is_right(copies);
}

int main(void)
{
	struct copies copies = { 0 };
	bool right;

	if (!set_up(&copies))
		return 1;
	for (unsigned int i = 0; i < BYTES; i++)
		copies.from[i] = (unsigned char)(i * 2654435761u >> 24);
	right = copy_whole(&copies) && copy_box(&copies);
	return right && rocr_copier_close(&copies.copier) && rocr_good(hsa_shut_down(), "shut down")
		       ? 0
		       : 1;
}
