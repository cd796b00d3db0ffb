/* SPDX-License-Identifier: GPL-2.0-only */
/* Queues of AQL packets (HSA Platform System Architecture Specification 1.2, "Architected Queuing
 * Language"): packets and signals in aql.c, kernels and their waves in aql_waves.c. */
#ifndef TEST_GPU_AQL_H
#define TEST_GPU_AQL_H

#include <stdbool.h>
#include <stdint.h>

#include "gcn_kernel.h"

struct gpu;
struct queue;
struct v9_mqd;

/* The packet at work. */
struct aql {
	uint64_t began;
	bool in_buffer; /* its commands run: queue->ib */
	bool has_asked; /* the queue's owner for private memory */
	uint32_t turns; /* of the kernel, at full speed */
	struct sim_gcn_kernel kernel;
};

/* The XCCs of a queue run its packets in turns. Whether this one runs the next. */
bool aql_has_turn(const struct queue *queue);
/* Runs the packet at the read pointer: 0 it is complete or has come further, -EAGAIN it has to
 * wait, -EFAULT, or -EINVAL after a violation. */
int aql_step(struct gpu *gpu, struct queue *queue);

/* Runs the kernel of the packet at address @at for a while: 1 it has ended, 0 not yet, -EAGAIN not
 * yet, and it leaves the host's processor to others, because it has run for long, another -errno it
 * has failed. */
int aql_run_kernel(struct gpu *gpu, struct queue *queue, const struct aql_dispatch *packet,
		   uint64_t at);

/* The queue leaves the hardware: the waves of a kernel go to the queue's save area, and what
 * describes them to the control stack behind the MQD; load brings them back. The places, the sizes
 * and the fields of the MQD are those of the hardware, the content is the model's own. 0, -EFAULT,
 * or another error after a violation: the waves are lost. */
int aql_save(struct gpu *gpu, struct queue *queue, struct v9_mqd *mqd);
int aql_load(struct gpu *gpu, struct queue *queue, const struct v9_mqd *mqd);
void aql_drop(struct queue *queue);

#endif
