/* SPDX-License-Identifier: GPL-2.0-only */
/* The dump of KFD state, one function a step. enum dump_way (session/dump_session.h) has the ways
 * in which it saves contents and ends. */
#ifndef AMDGPU_PLUGIN_DUMP_DUMP_H
#define AMDGPU_PLUGIN_DUMP_DUMP_H

#include <sys/types.h>

struct dump_session;

/* Notes a task of the dump, by its pid here, which CRIU may name again. -ENOMEM, logged. */
int dump_add_task(struct dump_session *session, pid_t pid);
/* All tasks are stopped, and CRIU has saved nothing of them: lists their /dev/kfd files, stops the
 * queues of their processes, and takes the snapshot. Without files of GPUs does nothing. CRIU 4.0
 * gives the freezing of tasks a time, and this is a part of it, so there dump_look() takes the
 * snapshot. Later calls do nothing. Logs on error. */
int dump_stop(struct dump_session *session);
/* CRIU has met a device mapping, so all tasks are stopped: refuses tasks that map a GPU without an
 * open /dev/kfd, which CRIU would never show. Logs on error. */
int dump_check_mappings(struct dump_session *session);

/* CRIU shows a file of an AMD GPU as @fd (borrowed), and all tasks are stopped. The first call does
 * what dump_stop() has not done: prepares the image directory, stops the queues, takes the snapshot
 * of all tasks and applies the rules to it. Later calls do nothing. Logs on error. */
int dump_look(struct dump_session *session, int fd);
/* After dump_look(), for a /dev/kfd: gives @fd the image id @id. The contents of a process are
 * saved at its first /dev/kfd. Contents and images may still be missing when this returns. Logs on
 * error.
 */
int dump_kfd(struct dump_session *session, int fd, int id);
/* After each file: when CRIU has shown all KFD processes of the dump, finds out whether a GPU has
 * lost memory, and writes the images that name these processes. CRIU 4.0 to 4.2 call no hook
 * between the last file and the post-dump script. Logs on error. */
int dump_end_file(struct dump_session *session);

/* All files have been shown: waits for the contents of all processes, and finds out whether each
 * paused process has an image. Writes the images of dma-bufs that are missing. Later calls do
 * nothing. Logs on error. */
int dump_complete(struct dump_session *session);
/* Ends the dump with CRIU's @result: calls dump_complete() if that is 0, and unpauses every
 * process. Removes the images if one of the three is an error. If CRIU is going to kill the tasks,
 * their queues stay stopped, and an error of UNPAUSE is only logged. Return: 0, or the plugin's
 * error, logged. */
int dump_end(struct dump_session *session, int result);
void dump_done(struct dump_session *session);

#endif
