/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a program may ask of the simulated GPUs that it runs on. Programs that are also to run
 * without them look these functions up with dlsym(). */
#ifndef AMDGPU_SIM_H
#define AMDGPU_SIM_H

#include <stddef.h>
#include <stdint.h>

/* The files of test/sim/README.md, by name. write: 0 or -errno. read: the length of the text, which
 * is terminated and cut to @size, or -errno. */
int amdgpu_sim_write(const char *file, const char *text);
int amdgpu_sim_read(const char *file, char *text, size_t size);

/* Bytes of a buffer of this process's, by its KFD handle, as the GPU would read and write them:
 * without a mapping, and without taking memory for what was never written. 0 or -errno. */
int amdgpu_sim_peek(uint64_t handle, uint64_t offset, void *data, size_t size);
int amdgpu_sim_poke(uint64_t handle, uint64_t offset, const void *data, size_t size);

#endif
