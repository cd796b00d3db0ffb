/* SPDX-License-Identifier: GPL-2.0-only */
/* Pauses the KFD processes of a dump and starts each of them again. The driver undoes only one
 * pause, so each process is paused once, however many files of /dev/kfd it has. All are paused
 * before the first byte is copied, and stay paused until CRIU has saved everything else.
 * dump_guard.h undoes the pauses if CRIU dies. */
#ifndef AMDGPU_PLUGIN_PAUSE_PAUSE_H
#define AMDGPU_PLUGIN_PAUSE_PAUSE_H

#include "kernel/kfd.h"
#include "session/dump_session.h"

/* Pauses the owners of the listed files (kfd_files.h). Before that, undoes pauses that a killed
 * dump has left. Logs on error. */
int pause_tree(struct dump_session *session);

/* What the kernel says of the queues of @process, which is paused: kfd_look() into *@ret_state,
 * which the caller frees. -errno, not logged. */
int pause_look(const struct dumped_process *process, struct kfd_state *ret_state);
/* Lets the queues of all paused processes run for some time, and stops them again. After an error
 * some of them are not paused. Logs on error. */
int pause_let_run(struct dump_session *session, double seconds);

/* *@ret_process: the process whose state the image @id of the file @fd (borrowed) will hold; NULL:
 * the state is in the image of another file of the process. -ENODEV, not logged: the process
 * sees no GPU. Other errors, logged: pause_tree() did not find the file, or could not pause
 * its process. */
int pause_lookup(struct dump_session *session, int fd, int id, struct dumped_process **ret_process);

/* CHECKPOINT of @process, which is paused, into process->state. It refuses the counts of the pause
 * if an SVM range was split or merged; the process is then paused once more, so no contents may
 * have been saved. -EMFILE and -ENFILE, not logged: there are too few descriptors for the
 * dma-bufs, and nothing has changed. Other errors are logged. */
int pause_checkpoint(struct dumped_process *process);
/* CHECKPOINT once more, for the dma-bufs, which kfd_state_close() has closed; contents of other
 * processes may have been saved. -EMFILE and -ENFILE as above. -EAGAIN, logged: the process
 * has not stood still. */
int pause_reopen_dmabufs(struct dumped_process *process);

/* Logs that the driver's operation @op failed with @ret, and why; @doing completes "cannot ...".
 * Returns
 * @ret. */
int pause_report_refusal(const struct dumped_process *process, enum kfd_criu_op op, int ret,
			 const char *doing);

/* Whether CRIU has shown a file of each paused process. If not, the state of that process is in no
 * image: -EIO, logged. */
int pause_check_all_seen(const struct dump_session *session);

/* For a dump that has succeeded: if CRIU is going to kill the tasks, their queues need not start
 * again. A guard stands by for the case that a task lives on. Otherwise, or if that fails, does
 * nothing; pause_undo_all() follows in any case. */
void pause_leave_to_guard(struct dump_session *session);

/* Unpauses every paused process, each exactly once, also after errors. Call this in the thread that
 * traces the tasks, when CRIU has saved everything else or the dump has failed. */
int pause_undo_all(struct dump_session *session);

/* Closes the plugin's descriptors of /dev/kfd. Nothing may be paused any more. */
void pause_close_files(struct dump_session *session);

#endif
