/* SPDX-License-Identifier: GPL-2.0-only */
/* Saves the contents of processes while CRIU goes on with its dump. All GPUs stand still until the
 * dump ends, so contents stay as they are.
 *
 *      CRIU                                     the plugin
 *      CHECKPOINT_DEVICES             ----->    stops queues, checks
 *      DUMP_EXT_FILE, a process       ----->    starts to save contents
 *      saves memory, other processes            contents of up to eight GPUs at once
 *      DUMP_DEVICES_LATE              ----->    waits for contents, writes the state images
 *      saves what tasks share
 *      runs the post-dump script                nothing: all images are complete
 *      DUMP_FINISH                    ----->    starts queues
 *
 * The threads share nothing with CRIU's main thread that CRIU changes: they have a root of their
 * own, block signals, and keep their descriptors above CRIU's. CRIU forks without their staging
 * memory. Only the main thread logs.
 *
 * A process that waits for its contents keeps its dma-bufs and private data. Staging memory is that
 * of eight GPUs at most, whatever the number of processes. */
#ifndef AMDGPU_PLUGIN_DUMP_BACKGROUND_H
#define AMDGPU_PLUGIN_DUMP_BACKGROUND_H

#include <stdbool.h>
#include <stdint.h>

#include "session/dump_session.h"

/* Whether this dump can save contents in the background: CRIU asks for the result after the last
 * task, as each CRIU with DUMP_FINISH does, and the user has not switched it off and does not force
 * the dump. A stream takes images one after the other. A limit of processes must leave room for the
 * threads: CRIU starts processes of its own meanwhile. */
bool background_is_possible(const struct dump_session *session);
/* After dump_image_begin_contents(): starts to save the contents of the process. On error, nothing
 * has changed; the caller saves the contents. */
int background_start(struct dumped_process *process);
/* The bytes of images for which the file system has no blocks yet, at most. */
uint64_t background_missing_room(const struct dump_session *session);
/* With dump_session.pool: waits until all contents are copied. Logs on error, and then nothing is
 * saved any more. */
int background_await_copies(struct dump_session *session);
/* Waits for all contents, and completes the images of their processes. Logs on error, and then
 * nothing is saved any more. */
int background_finish(struct dump_session *session);
/* Ends what is still being saved, and forgets it. The images stay without state. */
void background_done(struct dump_session *session);

#endif
