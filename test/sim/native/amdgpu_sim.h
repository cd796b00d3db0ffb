/* SPDX-License-Identifier: GPL-2.0-only */
/* Functions that a program may call when it runs on the simulated GPUs. A program that also runs
 * without the simulator finds these functions with dlsym(). */
#ifndef AMDGPU_SIM_H
#define AMDGPU_SIM_H

#include <stddef.h>
#include <stdint.h>

/* The files of test/sim/README.md, by name. write: 0 or -errno. read: the length of the text, which
 * is terminated and cut to @size, or -errno. */
int amdgpu_sim_write(const char *file, const char *text);
int amdgpu_sim_read(const char *file, char *text, size_t size);

/* Reads or writes bytes of a buffer of this process, by KFD handle, as the GPU does. The call needs
 * no mapping and allocates no memory for unwritten pages. 0 or -errno. */
int amdgpu_sim_peek(uint64_t handle, uint64_t offset, void *data, size_t size);
int amdgpu_sim_poke(uint64_t handle, uint64_t offset, const void *data, size_t size);
/* Reads bytes at an address of the GPUs, through the page tables of each GPU that maps the address.
 * Returns the number of these GPUs. -EIO: they see different bytes. */
int amdgpu_sim_peek_va(uint64_t va, void *data, size_t size);
/* Writes bytes there, through one GPU that maps the address. -EFAULT: none does. */
int amdgpu_sim_poke_va(uint64_t va, const void *data, size_t size);

#endif
