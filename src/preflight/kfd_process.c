// SPDX-License-Identifier: GPL-2.0-only
/* Reads the open files and mappings of a KFD process from /proc, and its PASID from sysfs. */
#include "preflight/kfd_process.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "amdgpu_plugin_topology.h"
#include "amdgpu_plugin_util.h"
#include "kernel/proc.h"
#include "kernel/render_node.h"

/* In the process's directory of PROC_KFD: a directory for each further KFD process. */
#define CONTEXT "context_"

#define PATH_SIZE 96

/* How a process uses one render node. */
struct node_use {
	uint32_t minor;
	bool is_open;
	/* A file of the node has the PASID of the process. */
	bool has_vm;
};

struct node_uses {
	const struct topology *topology;
	/* The PASID of the process, or 0 if sysfs does not tell it. */
	unsigned int pasid;
	struct node_use *list;
	size_t count;
};

/* The path of @name in the directory of process @pid. False: the number may be the pid of another
 * process there. */
static bool find_path(pid_t pid, const char *name, char path[static PATH_SIZE])
{
	(void)snprintf(path, PATH_SIZE, PROC_KFD "/%d/%s", pid, name);
	return proc_in_initial_pid_namespace();
}

static void node_uses_done(struct node_uses *uses)
{
	free(uses->list);
}

/* Valid until the next call. NULL if memory is short. */
static struct node_use *use_node(struct node_uses *uses, uint32_t number)
{
	const struct node_use use = { .minor = number };

	for (size_t i = 0; i < uses->count; i++) {
		if (uses->list[i].minor == number)
			return &uses->list[i];
	}
	return array_append(&uses->list, &uses->count, sizeof(use), &use) < 0
		       ? NULL
		       : &uses->list[uses->count - 1];
}

/* Returns 0 if sysfs does not tell it. In Linux 7 each file has a PASID of its own, and sysfs says
 * 0. */
static unsigned int read_process_pasid(pid_t pid)
{
	_cleanup_fclose_ FILE *file = NULL;
	unsigned int pasid;
	char path[PATH_SIZE];

	if (find_path(pid, "pasid", path))
		file = stream_open(path);
	return file && fscanf(file, "%u", &pasid) == 1 ? pasid : 0;
}

/* The field `pasid` of the file's fdinfo, which only amdgpu writes (amdgpu_show_fdinfo()), or 0 if
 * the file has no such field. */
static unsigned int read_file_pasid(pid_t pid, int number)
{
	_cleanup_fclose_ FILE *file = NULL;
	unsigned int pasid = 0;
	char text[96];

	(void)snprintf(text, sizeof(text), "/proc/%d/fdinfo/%d", pid, number);
	file = stream_open(text);
	while (file && !pasid && fgets(text, sizeof(text), file)) {
		(void)sscanf(text, "pasid: %u", &pasid);
	}
	return pasid;
}

bool kfd_process_has_vm_in(pid_t pid, int number)
{
	unsigned int pasid = read_process_pasid(pid);

	return !pasid || read_file_pasid(pid, number) == pasid;
}

/* Descriptor @number of the process. */
static int add_descriptor(struct node_uses *uses, pid_t pid, int number)
{
	struct node_use *use;
	unsigned int pasid;
	struct stat stat;
	uint32_t node;
	int ret = proc_stat_fd(pid, number, &stat);

	if (ret <= 0)
		return ret;
	if (!S_ISCHR(stat.st_mode) || !render_node_is_device(stat.st_rdev, &node))
		return 0;
	pasid = read_file_pasid(pid, number);
	if (!pasid && !topology_find_minor(uses->topology, node))
		return 0;
	use = use_node(uses, node);
	if (!use)
		return -ENOMEM;
	use->is_open = true;
	use->has_vm |= pasid && pasid == uses->pasid;
	return 0;
}

static int add_descriptors(struct node_uses *uses, pid_t pid)
{
	_cleanup_closedir_ DIR *stream = NULL;
	int number;
	int ret = proc_open_fds(pid, &stream);

	while (!ret && proc_next_fd(stream, &number, &ret))
		ret = add_descriptor(uses, pid, number);
	return ret;
}

/* A process may close a file and keep its mappings. */
static int add_mappings(struct node_uses *uses, pid_t pid)
{
	_cleanup_free_ struct proc_mapping *mappings = NULL;
	size_t count;
	int ret = proc_list_mappings(pid, &mappings, &count);

	for (size_t i = 0; !ret && i < count; i++) {
		const struct topology_node *gpu =
			render_node_find_gpu(uses->topology, mappings[i].device);

		if (gpu && !use_node(uses, gpu->drm_render_minor))
			ret = -ENOMEM;
	}
	return ret;
}

static struct kfd_vms count_vms(const struct node_uses *uses)
{
	size_t open = 0, exact = 0, mapped = 0;

	for (size_t i = 0; i < uses->count; i++) {
		exact += uses->list[i].has_vm;
		open += uses->list[i].is_open;
		mapped += !uses->list[i].is_open;
	}
	return (struct kfd_vms){ .certain = (uses->pasid ? exact : open) + mapped,
				 .likely = (exact ? exact : open) + mapped };
}

int kfd_process_count_vms(pid_t pid, const struct topology *topology, struct kfd_vms *ret_vms)
{
	_cleanup_(node_uses_done) struct node_uses uses = { .topology = topology,
							    .pasid = read_process_pasid(pid) };
	int ret = add_descriptors(&uses, pid);

	if (!ret)
		ret = add_mappings(&uses, pid);
	if (!ret)
		*ret_vms = count_vms(&uses);
	return ret;
}

int kfd_process_walk(pid_t pid, const char *below,
		     int (*take)(int directory, const char *name, void *argument), void *argument)
{
	_cleanup_closedir_ DIR *stream = NULL;
	struct dirent *entry;
	char path[PATH_SIZE];
	int ret = 0;

	if (!find_path(pid, below, path))
		return -ENOENT;
	stream = dir_open_at(AT_FDCWD, path, &ret);
	while (stream && !ret && (entry = next_entry(stream, &ret)))
		ret = take(dirfd(stream), entry->d_name, argument);
	return ret;
}

static bool begins_with(const char *name, const char *prefix)
{
	return !strncmp(name, prefix, strlen(prefix));
}

static int note_entry(int directory, const char *name, void *argument)
{
	struct kfd_sysfs *sysfs = argument;
	uint64_t bytes;

	sysfs->has_contexts |= begins_with(name, CONTEXT);
	if (begins_with(name, KFD_PROCESS_VRAM)) {
		sysfs->num_gpus++;
		sysfs->has_vram |= !read_number_at(directory, name, &bytes) && bytes;
	}
	return 0;
}

int kfd_process_read_sysfs(pid_t pid, struct kfd_sysfs *ret_sysfs)
{
	struct kfd_sysfs sysfs = { 0 };
	int ret = kfd_process_walk(pid, ".", note_entry, &sysfs);

	if (!ret)
		*ret_sysfs = sysfs;
	return ret;
}

/* @variable: "NAME=VALUE". */
static bool is_set(const char *variable, const char *name)
{
	size_t length = strlen(name);

	return !strncmp(variable, name, length) && variable[length] == '=' &&
	       variable[length + 1] && strcmp(variable + length + 1, "0") != 0;
}

int kfd_process_was_started_with(pid_t pid, const char *name)
{
	_cleanup_fclose_ FILE *file = NULL;
	_cleanup_free_ char *variable = NULL;
	size_t room = 0;
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/environ", pid);
	file = stream_open(path);
	if (!file)
		return -errno;
	while (getdelim(&variable, &room, '\0', file) >= 0) {
		if (is_set(variable, name))
			return 1;
	}
	return stream_error(file);
}
