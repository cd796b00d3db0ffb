/* SPDX-License-Identifier: GPL-2.0-only */
/* Image files and streams: names, framing and messages. docs/image-format.md describes the format.
 *
 * These functions log their errors, because they know file and cause. The exception is -ENOENT of a
 * read function, which logs nothing.
 *
 * Streams come from CRIU's image streamer. A stream cannot be listed or removed, is written once
 * and read once, and in order. Read one stream to its end before you open the next: the streamer
 * may serve one image at a time. */
#ifndef AMDGPU_PLUGIN_IMAGE_IMAGE_H
#define AMDGPU_PLUGIN_IMAGE_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "criu-amdgpu.pb-c.h"

#define IMAGE_NAME_SIZE   64
#define IMAGE_KFD_NAME    "amdgpu-kfd-%d.img"
#define IMAGE_RENDER_NAME "amdgpu-renderD-%d.img"
#define IMAGE_DMABUF_NAME "amdgpu-dmabuf_%d.img"
#define IMAGE_PAGES_NAME  "amdgpu-pages-%d-%04x.img" /* of GPU 0x%04x */
/* No image: a restore does not need it. */
#define IMAGE_SUMS_NAME "amdgpu-sums-%d-%04x.img"

/* Offset of the contents in every image file. */
#define IMAGE_HEADER_SIZE 8
/* The most bytes of contents: file offsets are signed, and the header and one block
 * must fit too. */
#define IMAGE_CONTENTS_MAX ((uint64_t)INT64_MAX - 2 * 4096ULL)

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

/* Those of state first. */
enum image_kind {
	IMAGE_NONE,
	IMAGE_KFD,
	IMAGE_RENDER,
	IMAGE_DMABUF,
	IMAGE_PAGES,
	IMAGE_SUMS,
};

/* The state image of a file. */
struct state_image {
	enum image_kind kind;
	/* Valid for the kind, and @message for all of them. */
	union {
		ProtobufCMessage *message;
		CriuKfd *kfd;
		CriuRenderNode *render;
		CriuDmabufNode *dmabuf;
	};
};

/* Reads the state image of file @id, whichever exists. The kind is IMAGE_NONE if no image
 * exists, and at a second read of a stream. */
int image_read(int id, struct state_image *ret_image);
/* Accepts an empty image. A caller that keeps the message sets its pointer to NULL. */
void image_done(struct state_image *image);

/* The pages file for the @size bytes of contents of GPU @gpu_id (as the process knows it). The
 * descriptor is the caller's. A new file is empty, and content_save() writes length and contents; a
 * new file for 0 bytes is complete. An opened file has its length and @size bytes after it. To open
 * a file for 0 bytes sets the descriptor to -1 and looks for no file. */
int image_create_pages(int id, uint32_t gpu_id, uint64_t size, int *ret_fd);
int image_open_pages(int id, uint32_t gpu_id, uint64_t size, int *ret_fd);
/* What this process may write to the image directory, in all files and in one. UINT64_MAX: as much
 * as it likes, or it is not known, as the room of file systems that report no sizes. */
struct image_room {
	uint64_t bytes;
	uint64_t file_bytes;
};
/* Without a result, the directory's room counts as not known. Logs nothing. */
int image_find_room(struct image_room *ret_room);
/* Logs on error. -ENOSPC: the image directory lacks space for @size bytes of contents. -EFBIG: the
 * limit of file sizes forbids a pages file for @largest bytes of contents. */
int image_check_room(uint64_t size, uint64_t largest);
/* Closes the descriptor of image_create_pages(). An error means that the write failed. */
int image_close_pages(int id, uint32_t gpu_id, int *fd);
/* Closes the descriptor of image_open_pages() after all contents were read. -EIO: the stream has
 * more bytes. */
int image_end_pages(int id, uint32_t gpu_id, int *fd);

/* The checksums of the chunks of a pages file (content/base.h), @size bytes. A failed write leaves
 * no file. Logs on error. */
int image_write_sums(int id, uint32_t gpu_id, const void *bytes, size_t size);

/* The device entry of GPU @gpu_id, which is not 0, or NULL if the image has no such GPU. The image
 * may be one that nothing has checked yet. */
const KfdDeviceEntry *image_find_device(const CriuKfd *kfd, uint32_t gpu_id);
/* The bytes of contents of GPU @gpu_id. In a valid message the sum does not overflow. */
uint64_t image_contents_size(const CriuKfd *kfd, uint32_t gpu_id);

#endif
