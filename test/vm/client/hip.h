/* SPDX-License-Identifier: GPL-2.0-only */
/* The functions of HIP's runtime that clients call. The library's name differs between
 * suites (libamdhip64.so.5, libamdhip64.so.6), so it is opened at run time. The signatures are
 * those of hip_runtime_api.h, with all objects as pointers to void. */
#ifndef CLIENT_HIP_H
#define CLIENT_HIP_H

#include <stdbool.h>
#include <stddef.h>

#include "library.h"
#include "report.h"

#define HIP_TO_DEVICE     1
#define HIP_TO_HOST       2
#define HIP_WITHIN_DEVICE 3
#define HIP_HOST_COHERENT 0x40000000u
#define HIP_NOT_READY     600

#define HIP_FUNCTIONS(X)                                                                       \
	X(Init, (unsigned int flags))                                                          \
	X(GetDeviceCount, (int *ret_count))                                                    \
	X(SetDevice, (int device))                                                             \
	X(Malloc, (void **ret_memory, size_t size))                                            \
	X(Free, (void *memory))                                                                \
	X(HostMalloc, (void **ret_memory, size_t size, unsigned int flags))                    \
	X(HostFree, (void *memory))                                                            \
	X(Memset, (void *to, int value, size_t size))                                          \
	X(Memcpy, (void *to, const void *from, size_t size, int kind))                         \
	X(MemcpyAsync, (void *to, const void *from, size_t size, int kind, void *stream))      \
	X(StreamCreate, (void **ret_stream))                                                   \
	X(StreamDestroy, (void *stream))                                                       \
	X(StreamSynchronize, (void *stream))                                                   \
	X(StreamWaitEvent, (void *stream, void *event, unsigned int flags))                    \
	X(EventCreate, (void **ret_event))                                                     \
	X(EventDestroy, (void *event))                                                         \
	X(EventRecord, (void *event, void *stream))                                            \
	X(EventQuery, (void *event))                                                           \
	X(EventSynchronize, (void *event))                                                     \
	X(ModuleLoad, (void **ret_module, const char *path))                                   \
	X(ModuleUnload, (void *module))                                                        \
	X(ModuleGetFunction, (void **ret_function, void *module, const char *name))            \
	X(ModuleLaunchKernel,                                                                  \
	  (void *function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,      \
	   unsigned int block_x, unsigned int block_y, unsigned int block_z, unsigned int lds, \
	   void *stream, void **arguments, void **extra))

struct hip {
	HIP_FUNCTIONS(LIBRARY_MEMBER)
};

/* Opens the library, or reports what is missing. */
bool hip_open(struct report *report, struct hip *hip);

#endif
