/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a program may ask of the simulated GPUs that it runs on. Programs that are also to run without them
 * look these functions up with dlsym().
 */
#ifndef AMDGPU_SIM_H
#define AMDGPU_SIM_H

#include <stddef.h>

/* The files of test/sim/README.md, by name. write: 0 or -errno. read: the length of the text, which is
 * terminated and cut to @size, or -errno. */
int amdgpu_sim_write(const char *file, const char *text);
int amdgpu_sim_read(const char *file, char *text, size_t size);

#endif
