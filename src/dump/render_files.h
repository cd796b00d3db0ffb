/* SPDX-License-Identifier: GPL-2.0-only */
/* The render files of a dump. The compute VM of a process is the VM of one of its render files, the
 * compute file, and KFD's RESTORE must get that very file again. The snapshot knows which it is. */
#ifndef AMDGPU_PLUGIN_DUMP_RENDER_FILES_H
#define AMDGPU_PLUGIN_DUMP_RENDER_FILES_H

struct dump_session;

/* When CRIU has shown all KFD processes: writes the images of the render files that it has shown
 * since the last call. Logs on error. */
int render_files_write(struct dump_session *session);

#endif
