/* SPDX-License-Identifier: GPL-2.0-only */
/* The open dma-bufs of a dump: a program may keep a dma-buf of a BO, also one without /dev/kfd that
 * hands it on. A restore gives it a dma-buf of the restored BO. Such a BO is an object
 * (shared_bos.h), also if one process has it alone. dmabuf_bos.h says which BO a dma-buf is. */
#ifndef AMDGPU_PLUGIN_DUMP_DMABUF_FILES_H
#define AMDGPU_PLUGIN_DUMP_DMABUF_FILES_H

struct dump_session;

/* After shared_bos_find_objects(): whether all dma-bufs of AMD GPUs that tasks have open are those
 * of BOs of the dump. Logs on error. */
int dmabuf_files_check(const struct dump_session *session);
/* After dump_look(), for a dma-buf: gives @fd (borrowed) the image id @id. The image may still
 * be missing when this returns. Logs on error. */
int dmabuf_files_dump(struct dump_session *session, int fd, int id);
/* When CRIU has shown all KFD processes: writes the images of the dma-bufs that it has shown since
 * the last call. Logs on error. */
int dmabuf_files_write(struct dump_session *session);

#endif
