/* SPDX-License-Identifier: GPL-2.0-only */
/* Descriptors and relatives that a GPU process may have beside its GPU memory, and that a
 * checkpoint must bring back or refuse. */
#ifndef CLIENT_EXTRAS_H
#define CLIENT_EXTRAS_H

#include <stdbool.h>
#include <sys/types.h>

#include "report.h"

struct extras_options {
	bool render_first;
	bool compute_first;
	bool second_kfd;
	bool gem_bo;
	bool undumpable;
	bool fork_child;
};

struct extras {
	struct report *report;
	struct extras_options options;
	const char *gpu_choice;
	int render_fd; /* below /dev/kfd */
	int kfd_fd;    /* libhsakmt's */
	int second_kfd_fd;
	int gem_fd;
	int undumpable_fd;
	pid_t child;
	struct extras_child *answers; /* shared with the child */
};

/* Opens the render node of the first GPU of @gpu_choice (of --gpus), without opening /dev/kfd. Its
 * failure is reported. */
int extras_open_render(struct report *report, const char *gpu_choice, int *ret_fd);

/* What has to come before /dev/kfd is opened. @gpu_choice is that of --gpus. */
int extras_init(struct report *report, const struct extras_options *options, const char *gpu_choice,
		struct extras *extras);
/* What has to come after it, and before memory is allocated. */
int extras_open(struct extras *extras);
/* The descriptors that a dump has to stumble over: they come after everything else. */
int extras_open_last(struct extras *extras);

int extras_verify(struct extras *extras);
/* Closes what a dump cannot or should not save. */
void extras_drop(struct extras *extras);
void extras_done(struct extras *extras);

#endif
