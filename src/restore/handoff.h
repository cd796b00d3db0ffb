/* SPDX-License-Identifier: GPL-2.0-only */
/* Contents filled in by CRIU's main process while the restored tasks rebuild the rest of
 * themselves.
 *
 *      task (RESTORE_EXT_FILE)                      main process
 *                                                   init: makes the gate, a pair of sockets; one end goes to CRIU's
 *                                                         descriptor store, which all tasks can reach
 *                                                   POST_FORKING: a thread listens at the gate
 *      makes a pair of sockets of its own,
 *      HELLO + one end  ------- the gate ------->   knows by the kernel's credentials who it is
 *      per GPU: JOB + the image -- own pair ---->
 *               BOS + their dma-bufs (250 each) ->
 *      END  ------------------- own pair ------->   starts to load at once, as many GPUs at a time as the pool has room for
 *      goes on with its restore
 *                                                   RESUME_DEVICES_LATE(pid): waits for that task's contents
 *
 * Sockets are of type SOCK_SEQPACKET, so a message comes whole. Each begins with struct
 * message_header, whose length must be that of the message, and all numbers are those of the
 * machine, since both ends are the same program. Nothing has a name, so no namespace is in the way.
 * A task that dies closes its pair, which ends its hand-over; a main process that ends closes the
 * gate, and the tasks' sends fail. */
#ifndef AMDGPU_PLUGIN_RESTORE_HANDOFF_H
#define AMDGPU_PLUGIN_RESTORE_HANDOFF_H

#include <stddef.h>
#include <sys/types.h>

#include "content/content.h"

struct handoff;

/* In the main process, before there are tasks. */
int handoff_new(const struct content_settings *settings, struct handoff **ret_parallel);
/* In the main process: ends what is still going on, in silence. Accepts NULL. */
void handoff_free(struct handoff *handoff);

/* In a task: sends its jobs. Descriptors stay the caller's, who may close
 * them when this returns. */
int handoff_send(const struct handoff *handoff, const struct content_job *jobs, size_t num_jobs);

/* In the main process, before any task hands over: starts a thread that listens. The thread shares
 * neither root nor working directory with the caller, who may enter mount namespaces when this
 * returns. -errno: there is no thread, and every hand-over fails. Silent. */
int handoff_listen(struct handoff *handoff);
/* In the main process, when all tasks have handoff_task over what they have: the thread has ended
 * when this returns. Accepts NULL. */
void handoff_stop_listening(struct handoff *handoff);
/* In the main process, after that: waits until the contents of task @pid, which handoff_task
 * some over, are in place. After an error, which prints its line, the task must not run. */
int handoff_finish(struct handoff *handoff, pid_t pid);

#endif
