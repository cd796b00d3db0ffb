/* SPDX-License-Identifier: GPL-2.0-only */
/* The state that CRIU, without its plugins, saves of a task: here the open device files and device
 * mappings. Each task has one text file in the image directory. */
#ifndef TEST_NATIVE_TASK_H
#define TEST_NATIVE_TASK_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define TASK_PATH_MAX 64

struct task_file {
	int fd;
	char path[TASK_PATH_MAX];
};

struct task_vma {
	uint64_t addr, size, offset;
	uint32_t file; /* index of the mapped file */
};

struct task {
	uint32_t number; /* from 0 */
	pid_t pid;       /* 0: this process itself */
	struct task_file *files;
	size_t num_files;
	struct task_vma *vmas; /* ascending */
	size_t num_vmas;
};

/* -ENOMEM; the result of task_add_file() is the file's index. */
int task_add_file(struct task *task, int fd, const char *path);
int task_add_vma(struct task *task, const struct task_vma *vma);
void task_done(struct task *task);

/* Writes to @directory and reads from it: -errno. */
int task_save(const struct task *task, const char *directory);
int task_load(const char *directory, uint32_t number, struct task *ret_task);

#endif
