// SPDX-License-Identifier: GPL-2.0-only
/* Maps the GPUs of each process to those of a machine, as a restore would. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "amdgpu_plugin_topology.h"
#include "amdgpu_plugin_util.h"
#include "criu/log.h"
#include "criu/options.h"
#include "kernel/render_node.h"
#include "map/map.h"
#include "tool.h"

static void print_gpu(const struct topology_node *saved, const struct topology_node *present)
{
	printf("  0x%04x (renderD%u) -> 0x%04x (renderD%u)%s\n", saved->gpu_id,
	       saved->drm_render_minor, present->gpu_id, present->drm_render_minor,
	       saved->gpu_id != present->gpu_id ? ", another gpu_id" : "");
}

static void print_map(const struct tool_kfd *kfd, const struct topology *saved,
		      const struct gpu_map *map)
{
	printf("process %u (kfd %d): fits\n", kfd->message->pid, kfd->id);
	for (size_t i = 0; i < saved->num_nodes; i++) {
		if (saved->nodes[i].gpu_id)
			print_gpu(&saved->nodes[i], map->local[i]);
	}
	if (map->num_extra)
		printf("  %zu more GPUs are visible\n", map->num_extra);
}

static int read_saved(const struct tool_kfd *kfd, struct topology *saved)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < kfd->message->n_device_entries; i++)
		ret = topology_entry_read(kfd->message->device_entries[i], saved);
	return ret < 0 ? log_error(ret, "kfd %d: cannot read the saved topology", kfd->id) : 0;
}

/* -ENODEV: no mapping exists. */
static int fit_process(const struct tool_kfd *kfd, const struct topology *local,
		       const struct map_options *options, bool quiet)
{
	_cleanup_(topology_done) struct topology saved = { 0 };
	struct gpu_map map;
	int ret = read_saved(kfd, &saved);

	if (ret < 0)
		return ret;
	ret = map_decide(&saved, local, options, &map);
	if (ret < 0)
		return ret;
	ret = explain_map(&map);
	if (!ret && !quiet)
		print_map(kfd, &saved, &map);
	if (ret && !quiet)
		printf("process %u (kfd %d): does not fit\n", kfd->message->pid, kfd->id);
	map_done(&map);
	return ret;
}

/* The render nodes of another machine are not here. A GPU without one has the minor 0. */
static int check_minor(uint32_t minor, int lowest_fd, int *ret_fd)
{
	(void)lowest_fd;
	*ret_fd = -1;
	return minor ? 0 : -ENOENT;
}

static bool has_nodes(const char *tree)
{
	_cleanup_close_ int dir = open(tree, O_PATH | O_CLOEXEC);

	return !faccessat(dir, "nodes", F_OK, 0);
}

static int read_machine(const char *tree, struct topology *ret_local)
{
	int ret = topology_read(tree ? tree : TOPOLOGY_SYSFS, ret_local);

	if (ret == -ENOENT && !tree)
		return log_error(ret, "this machine has no KFD driver: %s", TOPOLOGY_SYSFS);
	if (ret < 0)
		return log_error(ret, "cannot read %s", tree ? tree : TOPOLOGY_SYSFS);
	if (tree && !has_nodes(tree))
		return log_error(-ENOENT, "%s is no topology: it has no nodes", tree);
	map_note_unreachable(ret_local, tree ? check_minor : render_node_open);
	return 0;
}

/* A restore refuses such an image of CRIU's own plugin, whatever the GPUs. */
static int check_renders(const struct tool_images *images)
{
	for (size_t i = 0; i < images->num_renders; i++) {
		const CriuRenderNode *node = images->renders[i].message;

		if (node->num_of_bos || node->n_bo_entries)
			return log_error(
				-EOPNOTSUPP,
				"render node %d: the image has GEM objects, which cannot be"
				" restored yet",
				images->renders[i].id);
	}
	return 0;
}

static int fit(const struct tool_images *images, const struct topology *local,
	       const struct options *options, bool quiet)
{
	int status = TOOL_YES;

	for (size_t i = 0; i < images->num_kfds; i++) {
		int ret;

		if (!images->kfds[i].message->num_of_gpus)
			continue;
		ret = fit_process(&images->kfds[i], local, &options->map, quiet);
		if (ret == -ENOMEM)
			return TOOL_TROUBLE;
		if (ret < 0)
			status = TOOL_NO;
	}
	return check_renders(images) < 0 ? TOOL_NO : status;
}

int fit_run(const struct tool_request *request)
{
	_cleanup_(images_done) struct tool_images images = { 0 };
	_cleanup_(topology_done) struct topology local = { 0 };
	_cleanup_(options_done) struct options options = { 0 };

	if (options_read(&options) < 0 || images_read(&images) < 0 ||
	    read_machine(request->topology, &local) < 0)
		return TOOL_TROUBLE;
	return fit(&images, &local, &options, request->quiet);
}
