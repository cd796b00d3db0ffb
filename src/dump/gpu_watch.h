/* SPDX-License-Identifier: GPL-2.0-only */
/* Watches the GPUs of this machine for resets and memory errors during a dump. After a reset VRAM
 * is lost, but copies succeed. The driver compares its counters with those at the time when a
 * context was made. So the plugin makes a context on each GPU before it pauses the first process,
 * and keeps it until the last contents are saved. */
#ifndef AMDGPU_PLUGIN_DUMP_GPU_WATCH_H
#define AMDGPU_PLUGIN_DUMP_GPU_WATCH_H

#include "dump/dump.h"
#include "kernel/kfd.h"

/* Makes a context on each GPU that CRIU can open. A GPU that cannot be opened is not watched: if
 * the process has contents there, the copy engine cannot be opened either. -ENOMEM after a line. */
int gpu_watch_start(struct dump_session *session);
/* Before the first pause: refuses the dump while a GPU is in reset, because the driver would stop
 * queues that nothing can start. -errno after a line. */
int gpu_watch_check_idle(const struct dump_session *session);
/* After the contents of @process have been saved: whether one of its GPUs was reset since
 * gpu_watch_start(), or is in reset. -EIO after a line. */
int gpu_watch_check(const struct dump_session *session, const struct dumped_process *process);
/* After the contents of all processes have been saved: whether memory of their GPUs has had an
 * uncorrectable error since gpu_watch_start(). -EIO after a line. Asking the hardware takes a
 * while, so this is done once a dump. Warns if the driver of a GPU does not count errors. */
int gpu_watch_check_memory(const struct dump_session *session);
void gpu_watch_end(struct dump_session *session);

#endif
