/* SPDX-License-Identifier: GPL-2.0-only */
/* Stands in for CRIU. Errors and warnings go to standard error, a line each. */
#ifndef AMDGPU_PLUGIN_TOOLS_HOST_H
#define AMDGPU_PLUGIN_TOOLS_HOST_H

struct image_archive;

/* The directory for the units of the plugin. Logs on error. */
int host_open_directory(const char *path);
/* The images for the units of the plugin: a directory, or an archive. Logs on error. */
int host_open_images(const char *path);
void host_close_images(void);
/* The archive, or NULL if the images are in a directory. */
const struct image_archive *host_archive(void);
/* A descriptor of file @name beside the images. -ENOENT and other errors: logs nothing. */
int host_open_file(const char *name);

#endif
