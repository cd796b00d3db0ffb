/* SPDX-License-Identifier: GPL-2.0-only */
/* Memory queue descriptors (v9_structs.h): how the driver describes a queue to the scheduler, and
 * where the scheduler leaves the pointers of a queue that it unmaps. */
#ifndef TEST_GPU_MQD_H
#define TEST_GPU_MQD_H

#include <stdbool.h>
#include <stdint.h>

struct gpu;
struct queue;

/* The queue that the registers CP_HQD_* of an XCC describe. */
void mqd_from_registers(struct gpu *gpu, unsigned int xcc, struct queue *queue);
/* Fills in an entry of the table from memory: 0 or -EFAULT. */
int mqd_load_compute(struct gpu *gpu, uint64_t mqd, unsigned int xcc, struct queue *queue);
int mqd_load_sdma(struct gpu *gpu, uint64_t mqd, unsigned int engine, struct queue *queue);
/* How far the MQDs of the XCCs of a queue are from each other. 0 or -EFAULT. */
int mqd_read_stride(struct gpu *gpu, uint64_t mqd, uint32_t *ret_stride);

/* Of a queue of a process. load: the waves that the last save has left. save: pointers, and the
 * waves that are in flight unless they are to be lost. 0 or -errno, after a violation. */
int mqd_load_waves(struct gpu *gpu, struct queue *queue);
int mqd_save(struct gpu *gpu, struct queue *queue, bool with_waves);

#endif
