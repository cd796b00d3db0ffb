// SPDX-License-Identifier: GPL-2.0-only
/* The list of files and mappings of a task, in memory and as text. */
#include "task.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILE_NAME "task-%u.txt"

int task_add_file(struct task *task, int fd, const char *path)
{
	struct task_file *grown = realloc(task->files, (task->num_files + 1) * sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	task->files = grown;
	grown[task->num_files].fd = fd;
	(void)snprintf(grown[task->num_files].path, TASK_PATH_MAX, "%s", path);
	return (int)task->num_files++;
}

int task_add_vma(struct task *task, const struct task_vma *vma)
{
	struct task_vma *grown = realloc(task->vmas, (task->num_vmas + 1) * sizeof(*grown));
	size_t i = task->num_vmas;

	if (!grown)
		return -ENOMEM;
	task->vmas = grown;
	for (; i > 0 && grown[i - 1].addr > vma->addr; i--)
		grown[i] = grown[i - 1];
	grown[i] = *vma;
	task->num_vmas++;
	return 0;
}

void task_done(struct task *task)
{
	free(task->files);
	free(task->vmas);
	*task = (struct task){ 0 };
}

static FILE *open_file(const char *directory, uint32_t number, const char *mode)
{
	char path[4096];

	(void)snprintf(path, sizeof(path), "%s/" FILE_NAME, directory, number);
	return fopen(path, mode);
}

int task_save(const struct task *task, const char *directory)
{
	FILE *file = open_file(directory, task->number, "we");

	if (!file)
		return -errno;
	for (size_t i = 0; i < task->num_files; i++)
		(void)fprintf(file, "file %d %s\n", task->files[i].fd, task->files[i].path);
	for (size_t i = 0; i < task->num_vmas; i++)
		(void)fprintf(file, "vma %" PRIx64 " %" PRIx64 " %" PRIx64 " %u\n",
			      task->vmas[i].addr, task->vmas[i].size, task->vmas[i].offset,
			      task->vmas[i].file);
	return fclose(file) ? -EIO : 0;
}

static int load_line(struct task *task, const char *line)
{
	char path[TASK_PATH_MAX];
	struct task_vma vma;
	int fd, ret = -EINVAL;

	if (sscanf(line, "file %d %63s", &fd, path) == 2)
		ret = task_add_file(task, fd, path);
	else if (sscanf(line, "vma %" SCNx64 " %" SCNx64 " %" SCNx64 " %u", &vma.addr, &vma.size,
			&vma.offset, &vma.file) == 4 &&
		 vma.file < task->num_files)
		ret = task_add_vma(task, &vma);
	return ret < 0 ? ret : 0;
}

int task_load(const char *directory, uint32_t number, struct task *ret_task)
{
	FILE *file = open_file(directory, number, "re");
	struct task task = { .number = number };
	char line[256];
	int ret = 0;

	if (!file)
		return -errno;
	while (!ret && fgets(line, sizeof(line), file))
		ret = load_line(&task, line);
	(void)fclose(file);
	if (ret < 0)
		task_done(&task);
	else
		*ret_task = task;
	return ret;
}
