/* SPDX-License-Identifier: GPL-2.0-only */
/* Gives new handles the numbers that they had. The driver gives out the lowest number of a GPU that
 * is free, so a task makes its handles in the order of numbers, and takes the numbers between with
 * fillers. */
#ifndef AMDGPU_PLUGIN_SHARING_FILLERS_H
#define AMDGPU_PLUGIN_SHARING_FILLERS_H

#include <stddef.h>
#include <stdint.h>

/* A handle is KFD_HANDLE(gpu_id, number). */
struct fillers {
	/* For the log: the task's image, and the kind of handle. */
	int kfd_id;
	const char *kind;
	/* The file that has the handles, and how it makes and frees one without use. */
	int fd;
	int (*take)(int fd, uint32_t gpu_id, uint64_t *ret_handle);
	int (*free)(int fd, uint64_t handle);
	/* Handles that exist already, in order, or none. The first @passed are below @next. */
	const uint64_t *taken;
	size_t num_taken;
	size_t passed;
	/* The next handle that the driver gives out, unless it is one of @taken. */
	uint64_t next;
	uint64_t *list;
	size_t count;
};

/* Makes @handle the lowest one of its GPU that is free. Logs on error. */
int fillers_reach(struct fillers *fillers, uint64_t handle);
/* The driver has given out @handle for @wanted. -EEXIST: they differ. Logs on error. */
int fillers_check(struct fillers *fillers, uint64_t handle, uint64_t wanted);
/* Frees all fillers, also after the error @ret. Returns @ret, or the first error of its own, which
 * it logs. */
int fillers_done(struct fillers *fillers, int ret);

#endif
