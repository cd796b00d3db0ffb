/* SPDX-License-Identifier: GPL-2.0-only */
/* The render files of a dump. The compute VM of a process is the VM of one of its render files, the
 * compute file, and KFD's RESTORE must get that very file again. The snapshot knows which it is. */
#ifndef AMDGPU_PLUGIN_DUMP_RENDER_FILES_H
#define AMDGPU_PLUGIN_DUMP_RENDER_FILES_H

struct dump_session;

/* Lists the render files of all tasks, each once, and refuses the dump if one of them has GEM
 * objects that no image has. The processes have their GPUs, and give up descriptors of their
 * gem_files. Logs on error. */
int render_files_check(struct dump_session *session);
/* After dump_look(), for a render node: gives @fd (borrowed) the image id @id. The image may still
 * be missing when this returns. Logs on error. */
int render_files_dump(struct dump_session *session, int fd, int id);
/* When CRIU has shown all KFD processes: writes the images of the render files that it has shown
 * since the last call. Logs on error. */
int render_files_write(struct dump_session *session);
/* Closes the files. Up to Linux 6.12, this stops running queues for a moment, so the processes must
 * still be paused. */
void render_files_done(struct dump_session *session);

#endif
