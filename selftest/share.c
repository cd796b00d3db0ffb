// SPDX-License-Identifier: GPL-2.0-only
/* A ring of two ranks. This process, their parent, has no /dev/kfd. */
#include "share.h"

#include <errno.h>
#include <string.h>

#include "process.h"
#include "ring.h"

#define RANKS 2u

struct share {
	struct report *report;
	struct board *board;
};

static bool verify(void *argument)
{
	const struct share *share = argument;

	if (!board_goes_on(share->board))
		return false;
	report_line(share->report,
		    "compared %u bytes in %u buffers, which %u processes share: each sees what the "
		    "other one writes",
		    RANKS * RING_BYTES, RANKS, RANKS);
	return true;
}

/* The CPU writes to the buffers. */
static int check_vram(struct report *report, const struct gpu *gpu)
{
	if (gpu->vram_visible)
		return 0;
	report_line(report, "unable: the CPU does not see the VRAM of GPU %d", gpu->index);
	return -EOPNOTSUPP;
}

/* Rank by rank. */
static int choose_gpus(struct report *report, const char *choice, struct ring_options *options)
{
	struct gpus gpus;
	int ret = gpus_list(report, choice, &gpus);

	for (unsigned int i = 0; ret == 0 && i < RANKS; i++) {
		const struct gpu *gpu = &gpus.list[(int)i % gpus.count];

		ret = check_vram(report, gpu);
		options->buffer_gpu[i] = options->queue_gpu[i] = gpu->index;
	}
	return ret;
}

int share_run(struct report *report, const char *choice)
{
	struct share share = { .report = report };
	struct ring_options options = { .report = report, .flags = RAW_VRAM };
	int ret = choose_gpus(report, choice, &options);

	if (ret < 0)
		return 1;
	share.board = options.board = board_new(sizeof(*share.board), RANKS, RING_STEP_US);
	ret = share.board ? ring_start(&options) : -ENOMEM;
	if (ret < 0) {
		report_fail(report, ret, "cannot start the processes: %s", strerror(-ret));
		return 1;
	}
	return board_serve(share.board, report, verify, &share);
}
