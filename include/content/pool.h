/* SPDX-License-Identifier: GPL-2.0-only */
/* Host memory in which the contents of a dump wait to be written. With it, the copy engine need not
 * wait for storage: queues may start as soon as all contents are copied.
 *
 *      pool_new()       allocates, makes present and registers with a GPU each part; no queue is
 *                       stopped yet
 *      content_start_save()   a range is copied to a part of the memory. The threads of the pool wait
 *                             meanwhile. If all parts are in use, they begin, and the copy waits.
 *      content_await_copies() all is copied
 *      pool_close_gpus()      the queues run
 *      content_finish()       all is written
 *
 * The memory belongs to CRIU's process, so it is charged to CRIU's cgroup, not to the container's.
 */
#ifndef AMDGPU_PLUGIN_CONTENT_POOL_H
#define AMDGPU_PLUGIN_CONTENT_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pool;

/* The memory of a GPU. */
struct pool_share {
	uint32_t minor;
	uint64_t bytes;
};

/* Takes memory for the GPUs of @shares. Takes less if the system has less than @floor bytes free
 * meanwhile, or if a GPU registers no more. GPUs that cannot be opened are left out. -ENOMEM: not
 * even one part is to be had. -ENODEV: there is no GPU. */
int pool_new(const struct pool_share *shares, size_t count, uint64_t floor, struct pool **ret_pool);
uint64_t pool_size(const struct pool *pool);
/* The system or a GPU refused a part of the memory. */
bool pool_is_short(const struct pool *pool);
/* Starts the threads that write. Later calls do nothing. They inherit the root of this thread.
 * -EAGAIN: there can be no thread. */
int pool_start(struct pool *pool);
/* Nothing will be copied any more: closes the GPUs, and gives memory back to the system as soon as
 * its contents are written. */
void pool_close_gpus(struct pool *pool);
/* No content may be waiting any more. Memory that an engine may still write to stays mapped until
 * the process ends. Accepts NULL. */
void pool_free(struct pool *pool);

#endif
