/* SPDX-License-Identifier: GPL-2.0-only */
/* Waits for kernels that this driver would not restore. Linux 7.2 and 7.3 do not save the control
 * stack of a compute queue on gfx9, which lists its running waves, and Linux 6.18 from 6.18.42 on
 * does not take back those of several XCCs; a queue without waves loses nothing. CRIU holds the
 * processes, so they start no kernel, and the GPUs have to finish only what they have:
 *
 *      the snapshot has a queue with waves that the driver would not restore:
 *              let the queues of all processes run for 10, 20, 40 ... ms, stop them, and look
 *              again until there are no such waves
 *              take the snapshot again
 *
 * In the end all processes stand at one moment. */
#ifndef AMDGPU_PLUGIN_DUMP_DRAIN_H
#define AMDGPU_PLUGIN_DUMP_DRAIN_H

struct dump_session;

/* 1: the snapshot has a queue whose waves the driver would not restore, and the option drain is
 * not 0. 0, or -errno, logged. */
int drain_is_due(const struct dump_session *session);
/* Then, without a snapshot: waits for the end of kernels, at most for the time of the option. All
 * processes are paused when this returns; the rules refuse a queue that still has waves. Logs on
 * error.
 */
int drain_queues(struct dump_session *session);

#endif
