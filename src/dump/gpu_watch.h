/* SPDX-License-Identifier: GPL-2.0-only */
/* Watches the GPUs of a dump for resets and memory errors. After a reset VRAM is lost, but copies
 * succeed. The driver compares its counter of resets with that at the time when a context was made.
 * So the plugin makes a context on each GPU before it pauses the first process, and keeps it until
 * the last contents are saved. A GPU that cannot be watched fails the dump: AMD's own driver
 * reports a reset in no other way. */
#ifndef AMDGPU_PLUGIN_DUMP_GPU_WATCH_H
#define AMDGPU_PLUGIN_DUMP_GPU_WATCH_H

#include "session/dump_session.h"

/* Watches the GPUs whose render node a task of the dump has open. Another GPU may be in reset, or
 * belong to others. -errno, logged. */
int gpu_watch_start(struct dump_session *session);
/* For a machine without a dump: watches all GPUs that this process can open. -ENOMEM, logged.
 */
int gpu_watch_start_all(struct dump_session *session);
/* Before the first pause: refuses the dump while a GPU is in reset, because the driver would stop
 * queues that nothing can start. -errno, logged. */
int gpu_watch_check_idle(const struct dump_session *session);
/* After the contents of @process have been saved: whether one of its GPUs was reset since
 * gpu_watch_start(), or is in reset. -EIO, logged. */
int gpu_watch_check(const struct dump_session *session, const struct dumped_process *process);
/* After the contents of all processes have been saved: whether memory of their GPUs has had an
 * uncorrectable error since gpu_watch_start(). -EIO, logged. Asking the hardware takes a
 * while, so this is done once a dump. Warns if the driver of a GPU does not count errors. */
int gpu_watch_check_memory(const struct dump_session *session);
void gpu_watch_end(struct dump_session *session);

#endif
