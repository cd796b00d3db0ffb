/* SPDX-License-Identifier: GPL-2.0-only */
/* The promise that every process paused for a dump runs on. Each KFD process is paused once,
 * however many files of /dev/kfd it has, all of them before anything of one is copied, and stays
 * paused until CRIU has saved everything else. Beside CRIU waits a guard that undoes the pauses
 * should it die (the rescue unit). */
#ifndef AMDGPU_PLUGIN_DUMP_PAUSE_H
#define AMDGPU_PLUGIN_DUMP_PAUSE_H

#include "dump/dump.h"
#include "kernel/kfd.h"

/* Stops all KFD processes of the tree that has the file @shown (borrowed) at the first call; later
 * calls do nothing. When CRIU shows the first file, it has stopped all tasks, and their shared
 * memory is saved after them: so this is early enough, with every CRIU. Pauses that a killed dump
 * has left are undone before. Where files of other processes cannot be had, there is a warning, and
 * each process is paused when CRIU comes to it. */
int pause_tree(struct dump_session *session, int shown);

/* The process of the file @fd (borrowed), whose image is @id, as @ret_process; NULL: this is one
 * more file of a process that has an image. */
int pause_lookup(struct dump_session *session, int fd, int id, struct dumped_process **ret_process);

/* Pauses @process, unless it is paused already. From here on every way out goes by
 * pause_undo_all(). -errno after a line; -ENODEV, without one: no GPU is visible to it. */
int pause_process(struct dump_session *session, struct dumped_process *process);

/* Unpauses @process and pauses it again, for when CHECKPOINT says that the counts of the pause are
 * no longer the current ones (a range was split or merged); one pause on top of another could not
 * be undone. Nothing of it has been saved yet, so its queues may run for a moment. -errno after a
 * line; -ENODEV as above, without. */
int pause_refresh(struct dump_session *session, struct dumped_process *process);

/* What the pause said, without arrays. */
struct kfd_state pause_counts(const struct dumped_process *process);

/* One line for an operation of the driver's that has failed; @doing is what it was
 * to do. Returns @ret. */
int pause_report_refusal(const struct dumped_process *process, enum kfd_criu_op op, int ret,
			 const char *doing);

/* That each process which was paused with the tree has been met: else its state is in no image.
 * -EIO after a line. */
int pause_check_all_seen(const struct dump_session *session);

/* Unpauses every process that is paused: exactly once each, also after errors. To be called by the
 * tracing thread when all else of the tasks is saved, or when the dump has failed. */
int pause_undo_all(struct dump_session *session);

/* Closes the plugin's descriptors of /dev/kfd. Nothing may be paused any more. */
void pause_close_files(struct dump_session *session);

#endif
