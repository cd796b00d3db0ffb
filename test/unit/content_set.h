/* SPDX-License-Identifier: GPL-2.0-only */
/* BOs of a GPU, filled with words that all differ, and their image. Include drm_calls.h or
 * fake_gpu.h before, which have the GPUs. */
#ifndef TEST_UNIT_CONTENT_SET_H
#define TEST_UNIT_CONTENT_SET_H

#include "amdgpu_plugin_util.h"
#include "content/content.h"
#include "not_shared.h"

#define PAGE   4096ull
#define MIB    (1ull << 20)
#define HEADER 8

static const struct content_settings settings = {
	.staging_bytes = 1 << 20, .copy_timeout_s = 7, .skip_zeros = true, .checksum = true
};

/* A GPU's BOs, and its image file. */
struct set {
	struct content_job job;
	struct content_bo bos[2048];
	size_t num_bos;
	/* From 0; the GPU that allocates the BOs. */
	uint32_t number;
};

/* A word of a BO; all words differ. */
static inline uint64_t pattern(size_t bo, uint64_t word)
{
	return (bo + 1) * 0x9e3779b97f4a7c15 ^ word * 0xff51afd7ed558ccd;
}

static inline NOT_SHARED void fill_words(uint64_t *words, size_t bo, uint64_t size)
{
	for (uint64_t i = 0; i < size / sizeof(*words); i++)
		words[i] = pattern(bo, i);
}

static inline NOT_SHARED bool are_filled(const uint64_t *words, size_t bo, uint64_t size)
{
	uint64_t differences = 0;

	for (uint64_t i = 0; i < size / sizeof(*words); i++)
		differences |= words[i] ^ pattern(bo, i);
	return !differences;
}

static inline void *map_bo(const struct content_bo *bo)
{
	void *memory = mmap(NULL, bo->size, PROT_READ | PROT_WRITE, MAP_SHARED, bo->dmabuf_fd, 0);

	assert_true(memory != MAP_FAILED);
	return memory;
}

static inline void add(struct set *set, uint64_t size)
{
	struct content_bo *bo = &set->bos[set->num_bos++];

	bo->dmabuf_fd = new_dmabuf(set->number, size);
	bo->size = size;
}

static inline void fill(const struct set *set)
{
	for (size_t i = 0; i < set->num_bos; i++) {
		void *memory = map_bo(&set->bos[i]);

		fill_words(memory, i, set->bos[i].size);
		(void)munmap(memory, set->bos[i].size);
	}
}

static inline bool bos_are_filled(const struct set *set)
{
	bool same = true;

	for (size_t i = 0; same && i < set->num_bos; i++) {
		void *memory = map_bo(&set->bos[i]);

		same = are_filled(memory, i, set->bos[i].size);
		(void)munmap(memory, set->bos[i].size);
	}
	return same;
}

static inline void make_image(struct set *set, uint32_t number)
{
	set->job = (struct content_job){
		.gpu_id = 0x100 + number,
		.render_minor = 128 + number,
		.bos = set->bos,
		.num_bos = set->num_bos,
		.image_fd = memfd_create("image", MFD_CLOEXEC),
	};
}

/* A GPU without BOs. */
static inline struct set *new_set(uint32_t number)
{
	struct set *set = calloc(1, sizeof(*set));

	assert_non_null(set);
	set->number = number;
	return set;
}

/* A GPU with BOs of these sizes; a 0 ends the list. */
static inline struct set *make_set_of_gpu(uint32_t number, const uint64_t *sizes)
{
	struct set *set = new_set(number);

	for (; *sizes; sizes++)
		add(set, *sizes);
	make_image(set, number);
	return set;
}

static inline struct set *make_set(const uint64_t *sizes)
{
	return make_set_of_gpu(0, sizes);
}

/* The image is a new file in the directory of the tests, with this inode. */
static inline struct set *make_set_in_file(const uint64_t *sizes, ino_t *ret_inode)
{
	struct set *set = make_set(sizes);
	struct stat stat;

	(void)close(set->job.image_fd);
	unit_print("image", "%s", "");
	set->job.image_fd = open(unit_path("image"), O_RDWR | O_CLOEXEC);
	assert_int_equal(fstat(set->job.image_fd, &stat), 0);
	*ret_inode = stat.st_ino;
	return set;
}

static inline void free_set(struct set *set)
{
	for (size_t i = 0; i < set->num_bos; i++)
		(void)close(set->bos[i].dmabuf_fd);
	(void)close(set->job.image_fd);
	free(set);
}

static inline void free_set_at(struct set **set)
{
	if (*set)
		free_set(*set);
}

#define _cleanup_set_ _cleanup_(free_set_at)

/* Whether the image is exactly the length and the BOs one after the other. */
static inline bool image_is_filled(const struct set *set)
{
	uint64_t size = content_size(set->bos, set->num_bos), at = HEADER;
	bool same = lseek(set->job.image_fd, 0, SEEK_END) == (off_t)(HEADER + size);
	uint8_t *image;

	if (!same)
		return false;
	image = mmap(NULL, HEADER + size, PROT_READ, MAP_SHARED, set->job.image_fd, 0);
	assert_true(image != MAP_FAILED);
	same = !memcmp(image, &size, HEADER);
	for (size_t i = 0; same && i < set->num_bos; i++) {
		same = are_filled((const void *)(image + at), i, set->bos[i].size);
		at += set->bos[i].size;
	}
	(void)munmap(image, HEADER + size);
	return same;
}

static inline void write_image(const struct set *set)
{
	uint64_t at = HEADER, size = content_size(set->bos, set->num_bos);

	assert_int_equal(pwrite_full(set->job.image_fd, &size, HEADER, 0), 0);
	for (size_t i = 0; i < set->num_bos; i++) {
		void *memory = malloc(set->bos[i].size);

		assert_non_null(memory);
		fill_words(memory, i, set->bos[i].size);
		assert_int_equal(pwrite_full(set->job.image_fd, memory, set->bos[i].size, at), 0);
		at += set->bos[i].size;
		free(memory);
	}
}

/* Changes a byte of the image; again: back. */
static inline void change_byte(const struct set *set, uint64_t offset)
{
	char byte;

	assert_int_equal(pread(set->job.image_fd, &byte, 1, (off_t)offset), 1);
	byte ^= 0x10;
	assert_int_equal(pwrite(set->job.image_fd, &byte, 1, (off_t)offset), 1);
}

/* Sizes of BOs: small and large ones in turn, an end without a whole slot. */
static const uint64_t mixed[] = { 3 * PAGE, 2 * MIB, PAGE, MIB / 4 + PAGE, MIB, PAGE, 0 };

/* The size of the complete image of @set. */
static inline uint64_t image_size(const struct set *set)
{
	return HEADER + content_size(set->bos, set->num_bos);
}

#endif
