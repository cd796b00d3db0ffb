/* SPDX-License-Identifier: GPL-2.0-only */
/* Contents that are written while the job runs again: the option dump-memory.
 *
 *      CRIU                                     the plugin
 *      PAUSE_DEVICES, the first task  ----->    takes memory, and registers it with the job's GPUs
 *      stops the tasks
 *      CHECKPOINT_DEVICES             ----->    stops queues, checks
 *      DUMP_EXT_FILE, a process       ----->    starts to copy to the memory
 *      the last hook with a result    ----->    waits until all is copied
 *      DUMP_FINISH, or the end of the plugin:   starts queues, and forgets the job
 *      lets the tasks go
 *      writes its statistics          ----->    waits until all is written, writes the state images
 *      reports the result
 *
 * CRIU's post-dump script runs before the images are complete. The state images come after the
 * contents of all processes, so what a killed CRIU leaves cannot be taken for a complete dump. If
 * storage fails, writeback_finish() removes the state images, and CRIU fails (criu/after_tasks.h).
 * The job runs on. */
#ifndef AMDGPU_PLUGIN_DUMP_WRITEBACK_H
#define AMDGPU_PLUGIN_DUMP_WRITEBACK_H

#include "session/dump_session.h"

struct pool_share;

/* Before CRIU stops the first task, which is @top, the root of the tree: takes the memory that the
 * option dump-memory names for the GPUs of the tree, if it is of use. After an error, the dump
 * goes on without the memory. CRIU before 4.0 does not name its tasks; there @top is 0, for all
 * GPUs of the machine. Later calls do nothing. */
void writeback_prepare(struct dump_session *session, pid_t top);
/* Its share of the memory for each GPU: at most @bytes for the GPUs that process @top and its
 * descendants have open, or for all GPUs of the machine if @top is 0. A GPU gets no more than it
 * holds, and no more than its GTT takes without evictions. The caller frees @ret_shares. Without
 * GPUs, *@ret_count is 0. */
int writeback_choose_shares(pid_t top, uint64_t bytes, struct pool_share **ret_shares,
			    size_t *ret_count);
/* After dump_end(): whether contents are still to be written. If so, the session has nothing of
 * the job any more, and writeback_finish() must follow when the job runs. */
bool writeback_begin(struct dump_session *session);
/* Waits for the contents, and writes the state images. On error, logs it and removes them. */
int writeback_finish(struct dump_session *session);

#endif
