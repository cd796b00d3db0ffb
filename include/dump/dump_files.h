/* SPDX-License-Identifier: GPL-2.0-only */
/* The files of a dump other than /dev/kfd.
 *
 * Render files: the compute VM of a process is the VM of one of its render files, the compute file,
 * and KFD's RESTORE must get that very file again. The snapshot knows which it is.
 *
 * Dma-bufs: a program may keep a dma-buf of a BO, also one without /dev/kfd that hands it on. A
 * restore gives it a dma-buf of the restored BO. Such a BO is an object (shared_bos.h), also if one
 * process has it alone. dmabufs.h says which BO a dma-buf is. */
#ifndef AMDGPU_PLUGIN_DUMP_DUMP_FILES_H
#define AMDGPU_PLUGIN_DUMP_DUMP_FILES_H

struct dump_session;

/* After shared_bos_find_objects(), when the processes have their GPUs: lists the render files of
 * all tasks, each once. Refuses the dump if one of them has GEM objects that no image has, or if a
 * task has a dma-buf of an AMD GPU that is of no BO of the dump. The processes give up descriptors
 * of their gem_files. Logs on error. */
int dump_files_check(struct dump_session *session);
/* After dump_look(), for a render node or a dma-buf: gives @fd (borrowed) the image id @id. The
 * image may still be missing when this returns. Logs on error. */
int dump_files_add_render(struct dump_session *session, int fd, int id);
int dump_files_add_dmabuf(struct dump_session *session, int fd, int id);
/* When CRIU has shown all KFD processes: writes the images of the files that it has shown since the
 * last call. Logs on error. */
int dump_files_write(struct dump_session *session);
/* Closes the render files. Up to Linux 6.12, this stops running queues for a moment, so the
 * processes must still be paused. */
void dump_files_done(struct dump_session *session);

#endif
