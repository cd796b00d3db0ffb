/* SPDX-License-Identifier: GPL-2.0-only */
/* The image files: names, framing, messages, the image directory, and checks of what an image
 * says. docs/image-format.md describes the format.
 *
 * These functions log their errors, because they know file and cause. The exception is -ENOENT of a
 * read function, which logs nothing. */
#ifndef AMDGPU_PLUGIN_IMAGE_IMAGE_H
#define AMDGPU_PLUGIN_IMAGE_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "criu-amdgpu.pb-c.h"

#define IMAGE_NAME_SIZE   64
#define IMAGE_KFD_NAME    "amdgpu-kfd-%d.img"
#define IMAGE_RENDER_NAME "amdgpu-renderD-%d.img"
#define IMAGE_DMABUF_NAME "amdgpu-dmabuf_%d.img"
#define IMAGE_PAGES_NAME  "amdgpu-pages-%d-%04x.img" /* of GPU 0x%04x */

/* Offset of the contents in every image file. */
#define IMAGE_HEADER_SIZE 8
/* The most bytes of contents: file offsets are signed, and the header and one block
 * must fit too. */
#define IMAGE_CONTENTS_MAX ((uint64_t)INT64_MAX - 2 * 4096ULL)

/* image.c: image files and streams.
 *
 * Streams come from CRIU's image streamer. A stream cannot be listed or removed, is written once
 * and read once, and in order. Read one stream to its end before you open the next: the streamer
 * may serve one image at a time. */

bool image_is_streamed(void);

/* The state of the /dev/kfd file @id. Free a message that was read with criu_kfd__free_unpacked()
 * or criu_render_node__free_unpacked(). A failed write leaves no file. A write adds a checksum, and
 * a read compares it (-EIO); images of other programs have none. */
int image_write_kfd(int id, const CriuKfd *kfd);
int image_read_kfd(int id, CriuKfd **ret_kfd);
/* Removes the file, so that a failed dump does not look complete. */
void image_remove_kfd(int id);

int image_write_dmabuf(int id, const CriuDmabufNode *dmabuf);

int image_write_render(int id, const CriuRenderNode *node);
int image_read_render(int id, CriuRenderNode **ret_node);

/* Numbers of shared objects in a dump are from 1 to this. */
#define IMAGE_OBJECTS_MAX (1u << 20)
/* The highest number of a GEM handle, or of the handle of an import, for an image with @others more
 * of them. A restore takes each free number below for a moment, with a page of memory, so a small
 * image must not ask for many. The kernel gives out the lowest number that is free, so a job
 * reaches the number of BOs that it has had at once. 16384 are 320 GiB in pieces of 20 MiB, in
 * which PyTorch allocates. */
#define IMAGE_HANDLE_MAX(others) (16384 + 16 * (size_t)(others))
/* Index of the BO of a GEM handle if only another process has a BO that is the object. A
 * reader that does not know this refuses the index. */
#define IMAGE_NO_BO UINT32_MAX

enum image_kind {
	IMAGE_NONE,
	IMAGE_KFD,
	IMAGE_RENDER,
	IMAGE_DMABUF,
	IMAGE_PAGES,
};

/* The state image of a file. */
struct state_image {
	enum image_kind kind;
	/* Valid for the kind. */
	union {
		CriuKfd *kfd;
		CriuRenderNode *render;
		CriuDmabufNode *dmabuf;
	};
};

/* Reads the state image of file @id, whichever exists. 0 with IMAGE_NONE: there is none. A second
 * read of a stream returns IMAGE_NONE. */
int image_read(int id, struct state_image *ret_image);
/* Accepts an empty image. A caller that keeps the message sets @image->kind to IMAGE_NONE. */
void image_done(struct state_image *image);

/* The pages file for the @size bytes of contents of GPU @gpu_id (as the process knows it). The
 * descriptor is the caller's. A new file is empty, and content_save() writes length and contents; a
 * new file for 0 bytes is complete. An opened file has its length and @size bytes after it. To open
 * a file for 0 bytes sets the descriptor to -1 and looks for no file. */
int image_create_pages(int id, uint32_t gpu_id, uint64_t size, int *ret_fd);
int image_open_pages(int id, uint32_t gpu_id, uint64_t size, int *ret_fd);
/* -ENOSPC: the image directory lacks space for @size bytes of contents. */
int image_check_room(uint64_t size);
/* Closes the descriptor of image_create_pages(). An error means that the write failed. */
int image_close_pages(int id, uint32_t gpu_id, int *fd);
/* Closes the descriptor of image_open_pages() after all contents were read. -EIO: the stream has
 * more bytes. */
int image_end_pages(int id, uint32_t gpu_id, int *fd);

/* image_dir.c: the image directory, with the images of this dump and of older ones. If images are
 * streamed, the functions below do not change the directory. */

/* What the name of an image says. */
struct image_name {
	enum image_kind kind;
	int id;
	/* Of a pages file, or 0. */
	uint32_t gpu_id;
};

/* False: the file is not an image of the plugin. */
bool image_dir_parse_name(const char *name, struct image_name *ret_name);

/* Not for streams: the image with the state of process @pid (its vpid). -ENOENT: no image has its
 * state. */
int image_dir_find_kfd(pid_t pid, int *ret_id, CriuKfd **ret_kfd);
/* Not for streams: the ids of all images of this kind in ascending order, in memory that the caller
 * frees. -ENOMEM. */
int image_dir_list(enum image_kind kind, int **ret_ids, size_t *ret_count);
/* Not for streams: whether the directory has a state image of the plugin. */
bool image_dir_has_any(void);
/* For an id without an image: logs the possible file names if @expected, or if the directory has
 * other state images. This distinguishes a lost image from a file of another plugin. */
void image_dir_report_missing(int id, bool expected);
/* Not for streams: 0 if some render node image is the compute file of process @pid on the GPU that
 * had render minor @minor; else -ENOENT. */
int image_dir_find_compute_render(pid_t pid, uint32_t minor);
/* The same, but also 0 if no image names @pid, and an image of that minor names no process. The
 * restore uses such a file as the compute file. */
int image_dir_expect_render(pid_t pid, uint32_t minor);

/* 0: this dump is incremental, so CRIU takes pages that no CPU has written since from the images of
 * the previous dump. -ENOENT: it is not. */
int image_dir_find_parent(void);
/* The time when CRIU's core image of process @vpid was last written, in this dump or in an older
 * one. -ENOENT: there is none, or images are streamed. */
int image_dir_task_time(pid_t vpid, struct timespec *ret_time);
/* Removes the state images of this dump and of older ones, so that a failed dump does not look
 * complete. Quick, because the pages files stay. */
int image_dir_remove_state(void);
/* Removes all images of an older dump: a restore could take its state images for images of this
 * dump, and its pages files use disk space. Call this before this dump writes an image. */
int image_dir_remove_old(void);

/* The device entry of GPU @gpu_id, which is not 0, or NULL if the image has no such GPU. The image
 * may be one that nothing has checked yet. */
const KfdDeviceEntry *image_find_device(const CriuKfd *kfd, uint32_t gpu_id);

/* image_validate.c: checks what an image says before the plugin allocates, opens or asks the kernel
 * for anything: counts, sizes, ranges, and duplicates. An image may come from any program. Fields
 * that only this plugin writes may be missing. map_decide() decides whether the GPUs here can
 * replace those of the image, and image_open_pages() checks that the contents exist.
 *
 * 0, or -EINVAL after a line with image and value, or -ENOMEM. */

/* The state of a process that has GPUs, in image @id. */
int image_validate_kfd(int id, const CriuKfd *kfd);
int image_validate_render(int id, const CriuRenderNode *render);
int image_validate_dmabuf(int id, const CriuDmabufNode *dmabuf);
/* The bytes of contents of GPU @gpu_id. In a valid message the sum does not overflow. */
uint64_t image_contents_size(const CriuKfd *kfd, uint32_t gpu_id);

#endif
