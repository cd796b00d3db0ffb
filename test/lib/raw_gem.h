/* SPDX-License-Identifier: GPL-2.0-only */
/* GEM objects in a render file, by plain ioctls. Every function returns 0 or -errno. */
#ifndef TEST_LIB_RAW_GEM_H
#define TEST_LIB_RAW_GEM_H

#include <stdint.h>

/* A new object of @size bytes in AMDGPU_GEM_DOMAIN_... @domain. */
int raw_gem_create(int render, uint32_t domain, uint64_t size, uint32_t *ret_handle);
/* The object of a dma-buf. The file has one handle of an object, and gives it again. */
int raw_gem_import(int render, int dmabuf, uint32_t *ret_handle);
int raw_gem_close(int render, uint32_t handle);

/* Objects whose handles are closed after a program has made its own, so that the numbers of its
 * handles have holes. All zero at first. */
#define RAW_GEM_HOLES 256
struct raw_gem_holes {
	uint32_t handles[RAW_GEM_HOLES];
	unsigned int count;
};
int raw_gem_take_hole(int render, struct raw_gem_holes *holes);
int raw_gem_free_holes(int render, struct raw_gem_holes *holes);

/* Maps @size bytes at @offset of the object at the GPU's @address, for all access. */
int raw_gem_map(int render, uint32_t handle, uint64_t address, uint64_t offset, uint64_t size);
/* @size: that of a mapping from the start of the object. */
int raw_gem_unmap(int render, uint32_t handle, uint64_t address, uint64_t size);
/* Where mmap() of the file finds the object. */
int raw_gem_offset(int render, uint32_t handle, uint64_t *ret_offset);
/* Notes four bytes at the object, as ROCr 7.2 does for IPC. */
int raw_gem_mark(int render, uint32_t handle, uint32_t mark);
/* -ENODATA: there are not four bytes. */
int raw_gem_read_mark(int render, uint32_t handle, uint32_t *ret_mark);

#endif
