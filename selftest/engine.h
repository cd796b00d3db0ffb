/* SPDX-License-Identifier: GPL-2.0-only */
/* The speed of a GPU's copy engine when nothing else limits it. */
#ifndef SELFTEST_ENGINE_H
#define SELFTEST_ENGINE_H

#include "gpus.h"
#include "report.h"
#include "sdma.h"

/* Copies between VRAM and GTT in @queue, and says how fast in a line that begins with "engine". */
int engine_measure(struct report *report, const struct gpu *gpu, struct sdma_queue *queue);

#endif
