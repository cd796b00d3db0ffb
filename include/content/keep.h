/* SPDX-License-Identifier: GPL-2.0-only */
/* Host memory in which the contents of a dump wait to be written. With it, the copy engine need not
 * wait for storage: queues may start as soon as all contents are copied.
 *
 *      keep_new()       allocates, makes present and registers with a GPU each part; no queue is
 *                       stopped yet
 *      content_start_save()   a range is copied to a part of the memory. The threads of the keep wait
 *                             meanwhile. If all parts are in use, they begin, and the copy waits.
 *      content_await_copies() all is copied
 *      keep_close_gpus()      the queues run
 *      content_finish()       all is written
 *
 * The memory belongs to CRIU's process, so it is charged to CRIU's cgroup, not to the container's.
 */
#ifndef AMDGPU_PLUGIN_CONTENT_KEEP_H
#define AMDGPU_PLUGIN_CONTENT_KEEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct keep;

/* The memory of a GPU. */
struct keep_share {
	uint32_t minor;
	uint64_t bytes;
};

/* Takes memory for the GPUs of @shares. Takes less if the system has less than @floor bytes free
 * meanwhile, or if a GPU registers no more. GPUs that cannot be opened are left out. -ENOMEM: not
 * even one part is to be had. -ENODEV: there is no GPU. */
int keep_new(const struct keep_share *shares, size_t count, uint64_t floor, struct keep **ret_keep);
uint64_t keep_size(const struct keep *keep);
/* The system or a GPU refused a part of the memory. */
bool keep_is_short(const struct keep *keep);
/* Starts the threads that write. Later calls do nothing. They inherit the root of this thread.
 * -EAGAIN: there can be no thread. */
int keep_start(struct keep *keep);
/* Nothing will be copied any more: closes the GPUs, and gives memory back to the system as soon as
 * its contents are written. */
void keep_close_gpus(struct keep *keep);
/* No content may be waiting any more. Memory that an engine may still write to stays mapped until
 * the process ends. Accepts NULL. */
void keep_free(struct keep *keep);

#endif
