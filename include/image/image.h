/* SPDX-License-Identifier: GPL-2.0-only */
/* The image files: names, framing, protobuf in and out. Every file is eight bytes, little-endian,
 * of length and then that many bytes. A failure prints its line here, where file and cause are
 * known; only -ENOENT from a read is silent, since callers ask to find out what an id is. */
#ifndef AMDGPU_PLUGIN_IMAGE_IMAGE_H
#define AMDGPU_PLUGIN_IMAGE_IMAGE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

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

/* image.c */

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

enum image_kind {
	IMAGE_NONE,
	IMAGE_KFD,
	IMAGE_RENDER,
};

/* The state image of a file. */
struct state_image {
	enum image_kind kind;
	/* Valid for the kind. */
	union {
		CriuKfd *kfd;
		CriuRenderNode *render;
	};
};

/* Reads the state image of file @id, whichever there is. IMAGE_NONE: there is none, and no line.
 * A stream serves an image once, so image_read() finds IMAGE_NONE for an image that was read
 * before. */
int image_read(int id, struct state_image *ret_image);
/* Accepts an empty image; the caller may take kfd or render out and set kind to IMAGE_NONE. */
void image_done(struct state_image *image);
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

/* image_dir.c */

/* The image directory: which images are there, of this dump and of older ones. Where images are
 * streamed it says nothing of them, and nothing in it is touched. */

/* Of files: the image of process @pid (as it sees itself) that holds its state. -ENOENT: none. */
int image_dir_find_kfd(pid_t pid, int *ret_id, CriuKfd **ret_kfd);
/* Of files: whether there is a main image of anything of ours. */
bool image_dir_has_any(void);
/* For an id that no image is of: a line with the names it could have had, if @expected
 * or if there are other images of ours, so that a file that got lost is told from one
 * that is another plugin's. */
void image_dir_report_missing(int id, bool expected);
/* Of files: 0 if some image is that of the file whose VM process @pid computes in on the GPU that
 * had render minor @minor; else -ENOENT. */
int image_dir_find_compute_render(pid_t pid, uint32_t minor);
/* The same, and 0 too if no image says so and some image of that minor says it of no process: such
 * a file is taken for it. */
int image_dir_expect_render(pid_t pid, uint32_t minor);

/* 0: this dump is an incremental one, in which CRIU leaves pages that no CPU has written since to
 * the images of the dump before; -ENOENT: it is not. */
int image_dir_find_parent(void);
/* When CRIU's core image of the process that knows itself as @vpid was last written, in this
 * dump or in an older one. -ENOENT: there is none, or it is streamed. */
int image_dir_task_time(pid_t vpid, struct timespec *ret_time);
/* Removes the main images, of this dump and of an older one to the same directory, so that what is
 * left cannot be taken for a whole dump. Quick, as contents stay. */
int image_dir_remove_state(void);
/* Removes all images of an older dump: its main images could be taken for this one's, and its
 * contents take the room for them. Nothing may have been written yet. */
int image_dir_remove_old(void);

/* validate.c */

/* What an image says, held against itself before anything is allocated, opened or asked of the
 * kernel for it: counts, sizes, ranges, and what may not be there twice. Anybody may have written
 * the file. Fields that only we write may be missing. Whether GPUs here will do is the mapper's
 * business, and whether contents are there the image unit's.
 *
 * 0, or -EINVAL with a line that says what of which image is wrong; -ENOMEM. */

/* The state of a process that has GPUs, as image @id has it. */
int image_validate_kfd(int id, const CriuKfd *kfd);
int image_validate_render(int id, const CriuRenderNode *render);

#endif
