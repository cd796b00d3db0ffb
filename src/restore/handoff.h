/* SPDX-License-Identifier: GPL-2.0-only */
/* CRIU's main process loads the contents of BOs while the restored tasks rebuild the rest of
 * themselves.
 *
 *      task (RESTORE_EXT_FILE)                      main process
 *                                                   init: makes a pair of sockets; one end goes to CRIU's descriptor
 *                                                         store, which all tasks can reach
 *                                                   POST_FORKING: starts a thread that listens on the other end
 *      per GPU: JOB + the image ---------------->   identifies the task by the kernel's credentials
 *               BOS + their dma-bufs (250 each) ->
 *      END  ------------------------------------>   starts to load at once, at most CONTENT_GPUS_AT_ONCE GPUs at a time
 *      goes on with its restore
 *                                                   RESUME_DEVICES_LATE, first call: waits for the contents of all tasks
 *
 * The sockets are of type SOCK_SEQPACKET, so a message arrives whole, and those of several tasks
 * may alternate. Both ends are forks of one program, so messages are C structs (handoff_message.h),
 * and need no checks. The sockets have no names, so namespaces do not matter. If a task dies, its
 * END is missing. If the main process ends, the pair closes, and the sends of the tasks fail. */
#ifndef AMDGPU_PLUGIN_RESTORE_HANDOFF_H
#define AMDGPU_PLUGIN_RESTORE_HANDOFF_H

#include <stddef.h>
#include <sys/types.h>

#include "content/content.h"

struct handoff;

/* In the main process, before CRIU forks the tasks. handoff_finish() adds what it has loaded to
 * @totals. */
int handoff_new(const struct content_settings *settings, struct content_totals *totals,
		struct handoff **ret_handoff);
/* In the main process: cancels the loads in progress and logs nothing. Accepts NULL. */
void handoff_free(struct handoff *handoff);

/* In a task: sends its jobs. The descriptors stay the caller's, which may close them at once. Logs
 * on error. */
int handoff_send(const struct handoff *handoff, const struct content_job *jobs, size_t num_jobs);

/* In the main process, before a task calls handoff_send(): starts the thread that listens. The
 * thread does not share its root and working directory with the caller, which may therefore enter
 * mount namespaces. After an error, each handoff_send() fails. Logs nothing. */
int handoff_listen(struct handoff *handoff);
/* In the main process, when all tasks have returned from handoff_send(): ends the thread. Accepts
 * NULL. */
void handoff_stop_listening(struct handoff *handoff);
/* In the main process: waits until the contents of task @pid are in place. Calls
 * handoff_stop_listening(). After an error, which it logs, the task must not run. */
int handoff_finish(struct handoff *handoff, pid_t pid);

#endif
