/* SPDX-License-Identifier: GPL-2.0-only */
/* Packets of the command processor (soc15d.h), as far as compute rings of the driver, its queue for
 * the scheduler, and PM4 queues of processes use them. */
#ifndef TEST_GPU_PM4_H
#define TEST_GPU_PM4_H

struct gpu;
struct queue;

/* Runs one packet: 0, -EAGAIN it has to wait, -EFAULT, or -EINVAL after a violation. */
int pm4_step(struct gpu *gpu, struct queue *queue);
/* Whether the command processor of the queue runs: 0, or -1. */
int pm4_wait_ms(const struct gpu *gpu, const struct queue *queue);

#endif
