// SPDX-License-Identifier: GPL-2.0-only
/* Reads what /proc and KFD's sysfs say of a running process. Stops nothing. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "amdgpu_plugin_util.h"
#include "kernel/kfd.h"
#include "kernel/proc.h"
#include "kernel/render_node.h"
#include "preflight/kfd_process.h"
#include "survey.h"

/* The directory of a KFD process has a directory for each queue in this one
 * (kfd_procfs_add_queue() in the kernel's kfd_process.c). */
#define QUEUES "queues"

struct survey_walk {
	struct survey *survey;
	const struct topology *topology;
};

/* @ret_gpu: valid until the next call. */
static int use_gpu(struct survey *survey, const struct topology_node *node,
		   struct survey_gpu **ret_gpu)
{
	const struct survey_gpu gpu = { .node = node };
	int ret;

	for (size_t i = 0; i < survey->num_gpus; i++) {
		if (survey->gpus[i].node == node) {
			*ret_gpu = &survey->gpus[i];
			return 0;
		}
	}
	ret = array_append(&survey->gpus, &survey->num_gpus, sizeof(gpu), &gpu);
	if (!ret)
		*ret_gpu = &survey->gpus[survey->num_gpus - 1];
	return ret;
}

/* Entry @name of the directory of the KFD process. */
static int add_entry(int directory, const char *name, void *argument)
{
	const struct survey_walk *walk = argument;
	const struct topology_node *node;
	struct survey_gpu *gpu;
	uint64_t bytes;
	int ret;

	if (strncmp(name, KFD_PROCESS_VRAM, strlen(KFD_PROCESS_VRAM)) != 0)
		return 0;
	walk->survey->num_visible++;
	node = topology_find_gpu(walk->topology,
				 (uint32_t)strtoul(name + strlen(KFD_PROCESS_VRAM), NULL, 10));
	if (!node)
		return 0;
	ret = use_gpu(walk->survey, node, &gpu);
	if (ret < 0)
		return ret;
	gpu->is_visible = true;
	if (!read_number_at(directory, name, &bytes))
		gpu->vram_bytes = bytes;
	return 0;
}

/* Entry @name of the directory of its queues. */
static int add_queue(int directory, const char *name, void *argument)
{
	const struct survey_walk *walk = argument;
	struct survey_queue queue = { .id = (uint32_t)strtoul(name, NULL, 10) };
	uint64_t type = 0, gpu_id = 0;
	char file[64];

	if (name[0] < '0' || name[0] > '9')
		return 0;
	(void)snprintf(file, sizeof(file), "%.32s/type", name);
	if (read_number_at(directory, file, &type) < 0)
		return 0; /* The process has destroyed the queue meanwhile. */
	(void)snprintf(file, sizeof(file), "%.32s/gpuid", name);
	(void)read_number_at(directory, file, &gpu_id);
	queue.type = (uint32_t)type;
	queue.gpu_id = (uint32_t)gpu_id;
	return array_append(&walk->survey->queues, &walk->survey->num_queues, sizeof(queue),
			    &queue);
}

static int read_sysfs(struct survey *survey, const struct topology *topology)
{
	struct survey_walk walk = { .survey = survey, .topology = topology };
	int ret = kfd_process_walk(survey->pid, ".", add_entry, &walk);

	if (ret == -ENOENT)
		return 0;
	if (ret < 0)
		return ret;
	survey->is_in_sysfs = true;
	ret = kfd_process_walk(survey->pid, QUEUES, add_queue, &walk);
	return ret == -ENOENT ? 0 : ret;
}

/* Descriptor @number of the process. */
static int add_descriptor(struct survey *survey, const struct topology *topology, int number)
{
	const struct topology_node *node;
	struct survey_gpu *gpu;
	struct stat stat;
	int ret = proc_stat_fd(survey->pid, number, &stat);

	if (ret <= 0)
		return ret;
	ret = kfd_is_file(&stat);
	if (ret) {
		survey->has_kfd |= ret > 0;
		survey->has_files |= ret > 0;
		return ret < 0 ? ret : 0;
	}
	node = S_ISCHR(stat.st_mode) ? render_node_find_gpu(topology, stat.st_rdev) : NULL;
	if (!node)
		return 0;
	ret = use_gpu(survey, node, &gpu);
	if (ret < 0)
		return ret;
	gpu->is_open = true;
	survey->has_files = true;
	return 0;
}

static int read_descriptors(struct survey *survey, const struct topology *topology)
{
	_cleanup_closedir_ DIR *stream = NULL;
	int number;
	int ret = proc_open_fds(survey->pid, &stream);

	while (!ret && proc_next_fd(stream, &number, &ret))
		ret = add_descriptor(survey, topology, number);
	return ret;
}

/* libhsakmt maps each of its BOs through the render node of its GPU. */
static int read_mappings(struct survey *survey, const struct topology *topology)
{
	_cleanup_free_ struct proc_mapping *mappings = NULL;
	dev_t kfd = 0;
	size_t count = 0;
	int ret = proc_list_mappings(survey->pid, &mappings, &count);

	(void)kfd_read_device(&kfd);
	for (size_t i = 0; !ret && i < count; i++) {
		const struct topology_node *node =
			render_node_find_gpu(topology, mappings[i].device);
		struct survey_gpu *gpu;

		survey->has_files |= node || (kfd && mappings[i].device == kfd);
		if (!node)
			continue;
		ret = use_gpu(survey, node, &gpu);
		if (ret < 0)
			return ret;
		survey->maps_gpu = true;
		gpu->num_mapped++;
		gpu->mapped_bytes += mappings[i].end - mappings[i].start;
	}
	return ret;
}

int survey_read(pid_t pid, const struct topology *topology, struct survey *ret_survey)
{
	struct survey survey = { .pid = pid };
	int ret = read_sysfs(&survey, topology);

	if (!ret)
		ret = read_descriptors(&survey, topology);
	if (!ret)
		ret = read_mappings(&survey, topology);
	if (ret < 0)
		survey_done(&survey);
	else
		*ret_survey = survey;
	return ret;
}

uint64_t survey_estimate(const struct survey *survey, uint64_t *ret_largest)
{
	uint64_t bytes = 0, largest = 0;

	for (size_t i = 0; i < survey->num_gpus; i++) {
		const struct survey_gpu *gpu = &survey->gpus[i];
		uint64_t size =
			gpu->mapped_bytes > gpu->vram_bytes ? gpu->mapped_bytes : gpu->vram_bytes;

		bytes += size;
		largest = size > largest ? size : largest;
	}
	if (ret_largest)
		*ret_largest = largest;
	return bytes;
}

void survey_done(struct survey *survey)
{
	free(survey->gpus);
	free(survey->queues);
	*survey = (struct survey){ 0 };
}
