/* SPDX-License-Identifier: GPL-2.0-only */
/* The image files: names, framing, protobuf in and out. Every file is eight bytes, little-endian,
 * of length and then that many bytes. A failure prints its line here, where file and cause are
 * known; only -ENOENT from a read is silent, since callers ask to find out what an id is. */
#ifndef AMDGPU_PLUGIN_IMAGE_IMAGE_H
#define AMDGPU_PLUGIN_IMAGE_IMAGE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "criu-amdgpu.pb-c.h"

#define IMAGE_NAME_SIZE   64
#define IMAGE_KFD_NAME    "amdgpu-kfd-%d.img"
#define IMAGE_RENDER_NAME "amdgpu-renderD-%d.img"
#define IMAGE_PAGES_NAME  "amdgpu-pages-%d-%04x.img" /* of GPU 0x%04x */

/* Offset of the contents in every image file. */
#define IMAGE_HEADER_SIZE 8
/* The most bytes of contents: file offsets are signed, and end with a header's
 * and a block's room. */
#define IMAGE_CONTENTS_MAX ((uint64_t)INT64_MAX - 2 * 4096ULL)

/* Whether images are streams of CRIU's image streamer and not files. Streams cannot be listed nor
 * removed, are written once and read once, from their begin to their end, and one must be read to
 * its end before the next is opened: so does the streamer serve them. */
bool image_is_streamed(void);

/* State of the /dev/kfd file @id. Messages read are the caller's; free them with
 * criu_kfd__free_unpacked() and the like. A failed write leaves no file. With what is written goes
 * a checksum, which is compared when it is read (-EIO); other programs write none. */
int image_write_kfd(int id, const CriuKfd *kfd);
int image_read_kfd(int id, CriuKfd **ret_kfd);
/* Removes the file, so that what is left of a dump cannot be taken for a whole one. */
void image_remove_kfd(int id);

int image_write_render(int id, const CriuRenderNode *node);
int image_read_render(int id, CriuRenderNode **ret_node);
/* The file for the @size bytes of contents of GPU @gpu_id's BOs (as the process knows it), which is
 * the caller's. New, it is empty, and length and contents are written by others; where @size is 0
 * it is whole. Opened, it has its length and that many bytes; where @size is 0 no file is looked
 * for, and the descriptor is -1. */
int image_create_pages(int id, uint32_t gpu_id, uint64_t size, int *ret_fd);
int image_open_pages(int id, uint32_t gpu_id, uint64_t size, int *ret_fd);
/* -ENOSPC, with a line: the image directory has no room for @size bytes of contents. */
int image_check_room(uint64_t size);
/* Closes what image_create_pages() gave: for a file that was written, part of the write. */
int image_close_pages(int id, uint32_t gpu_id, int *fd);
/* Closes what image_open_pages() gave, when all contents have been read: -EIO, with a line, if a
 * stream has more. */
int image_end_pages(int id, uint32_t gpu_id, int *fd);

#endif
