// SPDX-License-Identifier: GPL-2.0-only
/* Maps the GPUs of each process to those of a machine, as a restore would, and looks for what a
 * restore would always refuse then. */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "amdgpu_plugin_topology.h"
#include "amdgpu_plugin_util.h"
#include "criu/log.h"
#include "criu/options.h"
#include "image/image_validate.h"
#include "images.h"
#include "kernel/amdgpu_module.h"
#include "kernel/gpu_use.h"
#include "kernel/kfd.h"
#include "kernel/render_node.h"
#include "map/explain.h"
#include "map/map.h"
#include "restore/gpu_ids.h"
#include "restore/queue_check.h"
#include "tool.h"

/* MAX_GPU_INSTANCE in kfd_priv.h, the number of ids in the record of a BO, is 16 in Linux 6.1 with
 * KFD 1.11, and 64 in Linux 6.5 with KFD 1.14. The smallest records with 64 ids have 272 bytes. */
#define LAST_WITH_16  11
#define FIRST_WITH_64 14
#define SIZE_WITH_64  272

static void print_gpu(const struct topology_node *saved, const struct topology_node *present)
{
	printf("  0x%04x (renderD%u) -> 0x%04x (renderD%u)%s\n", saved->gpu_id,
	       saved->drm_render_minor, present->gpu_id, present->drm_render_minor,
	       saved->gpu_id != present->gpu_id ? ", another gpu_id" : "");
}

/* The question, and what the processes before have been given. */
struct fit {
	const struct topology *local;
	const struct options *options;
	bool quiet;
	/* amdgpu's parameter. It is taken for 0 if it is that of another machine. */
	int noretry;
	/* Of KFD's version, or 0 if the machine is another one. */
	uint32_t kfd_minor;
	struct map_tree tree;
	uint32_t claims[MAP_CLAIMS];
};

static void print_map(const char *name, const char *verdict, const struct topology *saved,
		      const struct gpu_map *map)
{
	printf("%s: %s\n", name, verdict);
	for (size_t i = 0; i < saved->num_nodes; i++) {
		if (saved->nodes[i].gpu_id)
			print_gpu(&saved->nodes[i], map->local[i]);
	}
	if (map->num_extra)
		printf("  %zu more GPUs are visible\n"
		       "  not checked: whether a restore can hide them, and what follows if not\n",
		       map->num_extra);
}

static int read_saved(const struct tool_image *image, struct topology *saved)
{
	int ret = topology_entries_read(image->kfd->device_entries, image->kfd->n_device_entries,
					saved);

	return ret < 0 ? log_error(ret, "kfd %d: cannot read the saved topology", image->id) : 0;
}

/* Two processes may only share a GPU if they shared it before. */
static void claim_gpus(struct fit *fit, const struct topology *saved, const struct gpu_map *map)
{
	for (size_t i = 0; i < map->num_nodes; i++) {
		uint32_t id = saved->nodes[i].actual_gpu_id, *claim;

		if (!map->local[i])
			continue;
		claim = &fit->claims[map->local[i]->gpu_id % MAP_CLAIMS];
		if (*claim && *claim != id && !fit->quiet)
			log_warn(
				"GPU 0x%04x would replace saved GPU 0x%04x and, in another process, saved GPU 0x%04x: both would share its memory and its speed",
				map->local[i]->gpu_id, id, *claim);
		if (!*claim)
			*claim = id;
	}
}

/* Maps @saved and writes the map, which the caller frees. -ENODEV: no mapping exists. */
static int fit_decide(struct fit *fit, const char *name, const struct topology *saved,
		      struct gpu_map *ret_map)
{
	int ret = map_decide_in_tree(&fit->tree, saved, fit->local, &fit->options->map, ret_map);

	if (ret < 0)
		return ret;
	ret = explain_map(ret_map);
	if (!ret)
		claim_gpus(fit, saved, ret_map);
	else if (!fit->quiet)
		printf("%s: does not fit\n", name);
	return ret;
}

/* RESTORE answers EPERM. */
static int check_xnack(const struct fit *fit, const struct tool_image *image,
		       const struct gpu_map *map)
{
	for (size_t i = 0; kfd_priv_has_xnack(&image->priv) && i < map->num_nodes; i++) {
		const struct topology_node *gpu = map->local[i];

		if (gpu && amdgpu_module_forbids_xnack(gpu, fit->noretry))
			return log_error(
				-EPERM,
				"kfd %d: the process was saved with XNACK on, which GPU 0x%04x does not support (gfx10 or newer, or amdgpu.noretry=1)",
				image->id, gpu->gpu_id);
	}
	return 0;
}

static bool has_compute_queues(const struct tool_image *image)
{
	bool found = false;

	for (size_t i = 0; i < image->num_queues; i++)
		found |= image->queues[i].type == KFD_PRIV_QUEUE_COMPUTE;
	return found;
}

/* What the driver and the parameters of another machine decide. How many XCCs a driver restores,
 * and whether it counts those of partitions right, shows its version. */
static void print_unchecked(const struct fit *fit, const struct tool_image *image,
			    const struct gpu_map *map)
{
	bool xnack = false, xccs = false;

	for (size_t i = 0; !fit->kfd_minor && i < map->num_nodes; i++) {
		const struct topology_node *gpu = map->local[i];

		xnack |= gpu && amdgpu_module_forbids_xnack(gpu, 1);
		xccs |= gpu && topology_has_partitions(gpu);
	}
	if (xnack && kfd_priv_has_xnack(&image->priv))
		printf("  not checked: whether amdgpu has noretry=0 there, which these GPUs need for XNACK\n");
	if (xccs && has_compute_queues(image))
		printf("  not checked: whether the driver there restores compute queues on GPUs with several XCCs, or partitions of them\n");
}

/* A driver reads records of BOs of one size only. KFD 1.11 and older have smaller ones than
 * KFD 1.14 and newer. */
static int check_driver(const struct fit *fit, const struct tool_image *image)
{
	const uint64_t size = image->priv.layout.bo_size;
	bool wide;

	if (!image->priv.num_bos || !image->priv.layout.is_known)
		return 0;
	wide = size >= SIZE_WITH_64;
	if (!(wide && fit->kfd_minor <= LAST_WITH_16) &&
	    !(!wide && fit->kfd_minor >= FIRST_WITH_64))
		return 0;
	return log_error(-EOPNOTSUPP,
			 "kfd %d: the driver has saved %" PRIu64
			 " bytes for each BO, and that of this machine (KFD 1.%" PRIu32
			 ") reads records of another size; restore under the kernel of the dump",
			 image->id, size, fit->kfd_minor);
}

/* What a restore checks after the mapping, before it calls the driver. Extra GPUs count as hidden.
 */
static int check_saved_process(const struct fit *fit, const struct tool_image *image,
			       struct topology *saved, struct gpu_map *map)
{
	struct restored_task task = {
		.vpid = (pid_t)image->kfd->pid,
		.kfd = image->kfd,
		.layout = image->priv.layout,
		.kfd_id = image->id,
		.saved = *saved,
		.local = *fit->local,
		.map = *map,
		.hides_others = map->num_extra > 0,
	};
	int ret = queue_check_task(&task, fit->kfd_minor, fit->options->force);

	if (!ret && fit->kfd_minor)
		ret = check_driver(fit, image);
	if (!ret)
		ret = gpu_ids_check(&task, MMAP_UNASKED, fit->options->force);
	return ret < 0 ? ret : check_xnack(fit, image, map);
}

static bool is_equal(const char *saved, const char *here)
{
	return saved ? !strcmp(saved, here) : !*here;
}

static void print_driver(const char *kernel, uint32_t kfd_minor, const char *version)
{
	printf("Linux %s, KFD 1.%" PRIu32 "%s%s", kernel, kfd_minor, *version ? ", amdgpu " : "",
	       version);
}

/* Only if the image is of another driver than that of this machine. */
static void print_drivers(const struct tool_image *image, uint32_t kfd_minor)
{
	const SavedOn *saved = image->kfd->saved_on;
	char version[SAVED_ON_TEXT] = "", source[SAVED_ON_TEXT] = "";
	struct utsname here;

	if (!saved || !saved->kernel || !saved->has_kfd_minor || uname(&here) < 0)
		return;
	(void)amdgpu_module_text("version", version, sizeof(version));
	(void)amdgpu_module_text("srcversion", source, sizeof(source));
	if (is_equal(saved->kernel, here.release) && saved->kfd_minor == kfd_minor &&
	    is_equal(saved->driver_version, version) && is_equal(saved->driver_source, source))
		return;
	printf("  taken under another driver: ");
	print_driver(saved->kernel, saved->kfd_minor,
		     saved->driver_version ? saved->driver_version : "");
	printf("; here: ");
	print_driver(here.release, kfd_minor, version);
	printf("\n");
}

static int fit_process(struct fit *fit, const struct tool_image *image)
{
	_cleanup_(topology_done) struct topology saved = { 0 };
	_cleanup_(map_done) struct gpu_map map = { 0 };
	char name[64];
	int ret = read_saved(image, &saved);

	(void)snprintf(name, sizeof(name), "process %u (kfd %d)", image->kfd->pid, image->id);
	if (!ret)
		ret = fit_decide(fit, name, &saved, &map);
	if (ret < 0)
		return ret;
	ret = check_saved_process(fit, image, &saved, &map);
	if (!fit->quiet)
		print_map(name, ret < 0 ? "does not fit, with this mapping" : "fits", &saved, &map);
	if (!fit->quiet && !ret)
		print_unchecked(fit, image, &map);
	if (!fit->quiet && fit->kfd_minor)
		print_drivers(image, fit->kfd_minor);
	return ret;
}

/* The render nodes of another machine are not here. A GPU without one has the minor 0, or -1. */
static int check_minor(uint32_t minor, int lowest_fd, int *ret_fd)
{
	(void)lowest_fd;
	*ret_fd = -1;
	return minor >= RENDER_NODE_MINOR_FIRST && minor <= RENDER_NODE_MINOR_LAST ? 0 : -ENOENT;
}

/* A copy of a topology may lack files. Without its gpu_id, a GPU would count as hidden. */
static int check_nodes(const char *tree)
{
	_cleanup_closedir_ DIR *nodes = NULL;
	struct dirent *entry;
	char path[PATH_MAX];
	int ret = 0;

	(void)snprintf(path, sizeof(path), "%s/nodes", tree);
	nodes = opendir(path);
	if (!nodes && errno == ENOENT)
		return log_error(-ENOENT, "%s is no topology: it has no nodes", tree);
	if (!nodes)
		return log_error(-errno, "cannot read %s", path);
	while (!ret && (entry = next_entry(nodes, &ret))) {
		if (entry->d_name[0] == '.')
			continue;
		(void)snprintf(path, sizeof(path), "%s/gpu_id", entry->d_name);
		if (faccessat(dirfd(nodes), path, F_OK, 0) < 0 && errno == ENOENT)
			return log_error(
				-ENOENT,
				"%s is no whole topology: nodes/%s is missing; copy all files of its nodes",
				tree, path);
	}
	return ret;
}

static int mark_used(struct topology *local)
{
	struct gpu_use use;
	int ret = gpu_use_read(&use);

	if (!ret)
		gpu_use_mark(&use, local);
	gpu_use_done(&use);
	return ret;
}

static int read_machine(const char *tree, struct topology *ret_local)
{
	int ret = topology_read(tree ? tree : TOPOLOGY_SYSFS, ret_local);

	if (ret == -ENOENT && !tree)
		return log_error(ret, "this machine has no KFD driver: %s", TOPOLOGY_SYSFS);
	if (ret < 0)
		return log_error(ret, "cannot read %s", tree ? tree : TOPOLOGY_SYSFS);
	ret = tree ? check_nodes(tree) : mark_used(ret_local);
	if (ret < 0)
		return ret;
	map_note_unreachable(ret_local, tree ? check_minor : render_node_open);
	return 0;
}

/* A restore refuses such images of CRIU's own plugin, whatever the GPUs: those with GEM objects,
 * and those of dma-bufs, which name no object. */
static int check_others(const struct tool_images *images)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < images->count; i++) {
		const struct tool_image *image = &images->list[i];

		if (image->kind == IMAGE_DMABUF)
			ret = image_validate_dmabuf(image->id, image->dmabuf);
		if (image->kind == IMAGE_RENDER &&
		    (image->render->num_of_bos || image->render->n_bo_entries))
			ret = log_error(
				-EOPNOTSUPP,
				"render node %d: the image has GEM objects, which cannot be restored yet",
				image->id);
	}
	return ret;
}

static bool is_of_process(const struct tool_images *images, uint32_t node_id)
{
	bool found = false;

	IMAGES_FOR_EACH (images, image, IMAGE_KFD) {
		for (size_t i = 0; i < image->kfd->n_device_entries; i++)
			found |= image->kfd->device_entries[i]->node_id == node_id;
	}
	return found;
}

/* The GPU of a render node that no process with KFD state sees. The image does not name its
 * process. */
static int fit_render(struct fit *fit, const struct tool_images *images,
		      const struct tool_image *image)
{
	_cleanup_(topology_done) struct topology saved = { 0 };
	_cleanup_(map_done) struct gpu_map map = { 0 };
	KfdDeviceEntry *device = image->render->device;
	char name[64];
	int ret;

	(void)snprintf(name, sizeof(name), "render node %d", image->id);
	if (!device && !images_next(images, IMAGE_KFD, NULL))
		return log_error(
			-EINVAL,
			"%s: the image says nothing of its GPU, and no process has KFD state",
			name);
	if (!device || is_of_process(images, device->node_id))
		return 0;
	ret = topology_entries_read(&device, 1, &saved);
	if (ret < 0)
		return log_error(ret, "%s: cannot read the saved topology", name);
	ret = fit_decide(fit, name, &saved, &map);
	if (!ret && !fit->quiet)
		print_map(name, "fits", &saved, &map);
	return ret;
}

static int read_tree(const struct tool_images *images, struct map_tree *tree)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < images->count; i++) {
		const struct tool_image *image = &images->list[i];

		if (image->kind == IMAGE_KFD)
			ret = queue_check_add_image(image->kfd, tree);
		if (image->kind == IMAGE_RENDER)
			ret = map_tree_add_render(tree, image->render);
	}
	map_tree_sort(tree);
	return ret < 0 ? log_error(ret, "cannot read the saved topologies") : 0;
}

static int fit_all(struct fit *fit, const struct tool_images *images)
{
	int ret = 0, worst = check_others(images);

	for (size_t i = 0; ret != -ENOMEM && i < images->count; i++) {
		const struct tool_image *image = &images->list[i];

		ret = 0;
		if (image->kind == IMAGE_KFD && image->kfd->num_of_gpus)
			ret = fit_process(fit, image);
		if (image->kind == IMAGE_RENDER)
			ret = fit_render(fit, images, image);
		worst = ret < 0 ? ret : worst;
	}
	return worst;
}

/* A restore needs /dev/kfd, too. */
static int ask_driver(struct fit *fit)
{
	fit->noretry = amdgpu_module_read_noretry();
	return kfd_check_version(&fit->kfd_minor);
}

static void fit_free(struct fit **fit)
{
	if (*fit)
		map_tree_done(&(*fit)->tree);
	free(*fit);
}

int fit_run(const struct tool_request *request)
{
	_cleanup_(images_done) struct tool_images images = { 0 };
	_cleanup_(topology_done) struct topology local = { 0 };
	_cleanup_(options_done) struct options options = { 0 };
	_cleanup_(fit_free) struct fit *fit = calloc(1, sizeof(*fit));
	int ret;

	if (!fit || options_read(&options) < 0 || images_read(&images) < 0 ||
	    read_machine(request->topology, &local) < 0 || read_tree(&images, &fit->tree) < 0)
		return TOOL_TROUBLE;
	fit->local = &local;
	fit->options = &options;
	fit->quiet = request->quiet;
	fit->tree.claims = fit->claims;
	ret = request->topology ? 0 : ask_driver(fit);
	if (!ret)
		ret = fit_all(fit, &images);
	return ret == -ENOMEM ? TOOL_TROUBLE : ret < 0 ? TOOL_NO : TOOL_YES;
}
