/* SPDX-License-Identifier: GPL-2.0-only */
/* With the file "cuda", a CUDA device carries out the copies of command buffers: VRAM of KFD is
 * memory of the device, memory of the program is registered with it, copies are asynchronous on a
 * stream of the ring, and a fence signals after an event of its stream. libcuda.so.1 is found at
 * run time. Functions return 0 or -errno, and print a line on errors of the library. */
#ifndef NATIVE_CUDA_H
#define NATIVE_CUDA_H

#include "native.h"

/* Takes the first CUDA device for buffers that are made from now on. -ENODEV: there is no library
 * or no device; then nothing is printed. */
int native_cuda_start(void);
/* Whether the calling thread is in native_cuda_start(): the library then reads the true files of
 * the system. */
bool native_cuda_is_starting(void);
/* The name of the device; NULL: not started. */
const char *native_cuda_name(void);
/* Fills the memory of all buffers with @byte. */
int native_cuda_scribble(struct native *native, u8 byte);

/* Gives @bo memory of the device if it is VRAM of KFD, which the CPU then cannot reach. */
int native_cuda_bo_init(struct native_bo *bo);
/* Registers the memory of a process with the device, if there is one. */
int native_cuda_register(struct native_bo *user);
/* Accepts buffers that the device knows nothing of. */
void native_cuda_bo_done(struct native_bo *bo);

/* Start a copy that ends before the fence of the job that the calling thread runs. @user is memory
 * of a process, registered or not. */
int native_cuda_copy_to_user(struct native_bo *user, u64 user_offset, struct native_bo *bo,
			     u64 offset, u64 size);
int native_cuda_copy_from_user(struct native_bo *bo, u64 offset, struct native_bo *user,
			       u64 user_offset, u64 size);
/* Copy at once. */
int native_cuda_read(struct native_bo *bo, u64 offset, void *data, u64 size);
int native_cuda_write(struct native_bo *bo, u64 offset, const void *data, u64 size);

/* Calls sim_job_finish() for @job after the copies that the calling thread, that of a ring, has
 * started; in the order of the calls. false: not started. */
bool native_cuda_finish(struct sim_job *job);

#endif
