/* SPDX-License-Identifier: GPL-2.0-only */
/* criu-amdgpu: reads the images of the plugin, without CRIU and without a GPU. Each command is a
 * function in a file of its own. */
#ifndef AMDGPU_PLUGIN_TOOLS_TOOL_H
#define AMDGPU_PLUGIN_TOOLS_TOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "amdgpu_plugin_util.h"
#include "criu-amdgpu.pb-c.h"

/* The exit status of a command. */
enum tool_status {
	TOOL_YES = 0,
	/* The answer is no: a dump is refused, contents differ, or the images do not fit. */
	TOOL_NO = 1,
	/* The command line is wrong, or something cannot be read. */
	TOOL_TROUBLE = 2,
	/* check: there is no AMD GPU, or the process uses none. */
	TOOL_NO_GPU = 3,
};

/* What the user has asked. */
struct tool_request {
	/* The image directory or an archive; for check the directory for a dump, or NULL if it is
	 * not given. */
	const char *dir;
	/* The directory of CRIU's plugins, or NULL for CRIU's own. */
	const char *libdir;
	/* check: the process or the name of its container, or NULL for the machine. */
	const char *pid;
	/* A tree like /sys/class/kfd/kfd/topology, or NULL for this machine. */
	const char *topology;
	/* Print only errors. */
	bool quiet;
	bool json;
};

/* check.c: whether this machine can dump processes on its GPUs. */
int check_run(const struct tool_request *request);
/* show.c: what the images hold. */
int show_run(const struct tool_request *request);
/* verify.c: whether all images are whole. */
int verify_run(const struct tool_request *request);
/* verify_images.c: 0; -EINVAL after a line: an image needs another that is not there, or two are
 * from two dumps. */
struct tool_images;
int verify_images(const struct tool_images *images);
/* fit.c: whether the GPUs of the images can be mapped to those of a machine. */
int fit_run(const struct tool_request *request);

/* images.c: all state images of the directory or of the archive, in the order of their ids. */

struct tool_kfd {
	int id;
	CriuKfd *message;
};

struct tool_render {
	int id;
	CriuRenderNode *message;
};

struct tool_dmabuf {
	int id;
	CriuDmabufNode *message;
};

struct tool_images {
	struct tool_kfd *kfds;
	size_t num_kfds;
	struct tool_dmabuf *dmabufs;
	size_t num_dmabufs;
	struct tool_render *renders;
	size_t num_renders;
};

/* Reads and validates all of them. -ENOENT: there are none. Logs on error. Free the result
 * with images_done(). */
int images_read(struct tool_images *ret_images);
void images_done(struct tool_images *images);
/* The first KFD image with the state of process @pid, or NULL if no image has it. */
const struct tool_kfd *images_find_process(const struct tool_images *images, uint32_t pid);

/* show_json.c: what the images hold, for programs. */
int show_json(const struct tool_images *images);

/* host.c: stands in for CRIU. Errors and warnings go to standard error, a line each. */

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

/* text.c */

/* Words in a colour, if the stream is a terminal and the user does not refuse colours (NO_COLOR);
 * otherwise "". */
const char *text_colour(FILE *stream, const char *escape);
#define TEXT_GREEN "\033[32m"
#define TEXT_RED   "\033[31m"
#define TEXT_PLAIN "\033[0m"

/* "5.5 MiB" */
const char *text_size(uint64_t bytes, char text[16]);
/* "0000:63:00.0"; "-" if the image does not say. */
const char *text_pci(const KfdDeviceEntry *gpu, char text[PCI_SLOT_TEXT]);
/* "gfx90a"; "-" if the image does not say. */
const char *text_gfx(const KfdDeviceEntry *gpu, char text[16]);

#endif
