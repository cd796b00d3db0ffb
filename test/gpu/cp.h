/* SPDX-License-Identifier: GPL-2.0-only */
/* The command processor's compute part (gfx_v9_0.c): the queue that registers describe, and its
 * interrupts. pm4.c has the packets, hws.c the scheduler of processes. */
#ifndef TEST_GPU_CP_H
#define TEST_GPU_CP_H

#include <stdbool.h>
#include <stdint.h>

struct gpu;
struct queue;

void cp_register_written(struct gpu *gpu, uint32_t reg, uint32_t value);
/* Whether there is a queue at the place that GRBM_GFX_CNTL of the XCC names. */
bool cp_selected_is_active(const struct gpu *gpu, unsigned int xcc);
/* The interrupt at the end of a command. @context: an event of KFD, or 0. */
void cp_interrupt(struct gpu *gpu, const struct queue *queue, uint32_t context);

#endif
