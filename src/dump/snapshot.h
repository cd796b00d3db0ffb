/* SPDX-License-Identifier: GPL-2.0-only */
/* The snapshot of a dump: what the kernel says of all its processes, asked once and kept. All tasks
 * are stopped, so nothing is asked again in later hooks: they give a file its image id, and save
 * contents.
 *
 *      stop the queues of all processes
 *      CHECKPOINT of each process, its mappings, its GEM handles
 *      match the BOs of all processes that are one object
 *      apply all rules
 *      change the saved state where a restore makes a BO in another way */
#ifndef AMDGPU_PLUGIN_DUMP_SNAPSHOT_H
#define AMDGPU_PLUGIN_DUMP_SNAPSHOT_H

#include "session/dump_session.h"

/* Stops the queues of all processes. The session has its topology and its files, and no image
 * exists yet. Later calls do nothing. Logs on error. */
int snapshot_stop(struct dump_session *session);
/* Then: takes the snapshot of all tasks, and refuses the dump if a rule is broken. Later calls do
 * nothing. Logs on error. */
int snapshot_take(struct dump_session *session);
/* Makes the dma-bufs of @process available. They were closed if those of all processes together
 * exceed the limit of descriptors. -EMFILE and -ENFILE, not logged: contents of other processes,
 * which are being saved, have too many. Other errors are logged. */
int snapshot_open_dmabufs(struct dumped_process *process);
/* Frees what the snapshot has of @process, once its image is written: dma-bufs, private data,
 * lists. dumped_process keeps its pids and GPUs. */
void snapshot_drop_process(struct dumped_process *process);
void snapshot_done(struct dump_session *session);

#endif
