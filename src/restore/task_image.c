// SPDX-License-Identifier: GPL-2.0-only
/* Finds the image of a task's KFD state, checks it, and maps its GPUs to those of this machine.
 * restore.c rebuilds the state. */
#include "restore/task_image.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "amdgpu_plugin_topology.h"
#include "criu/host.h"
#include "criu/log.h"
#include "devices/extra_gpus.h"
#include "devices/node.h"
#include "image/image.h"
#include "image/image_dir.h"
#include "image/image_priv.h"
#include "image/image_validate.h"
#include "kernel/render_node.h"
#include "map/explain.h"
#include "memory/restore_shared.h"
#include "restore/queue_check.h"
#include "sharing/gem_handles.h"
#include "sharing/imports.h"

void task_image_forget(struct restored_task *task)
{
	imports_done(task);
	task->hides_others = false;
	map_done(&task->map);
	topology_done(&task->saved);
	topology_done(&task->local);
	if (task->kfd)
		criu_kfd__free_unpacked(task->kfd, NULL);
	task->kfd = NULL;
}

static int read_saved_topology(struct restored_task *task)
{
	int ret = topology_entries_read(task->kfd->device_entries, task->kfd->n_device_entries,
					&task->saved);

	return ret < 0 ? log_error(ret, "kfd %d: cannot read the saved topology", task->kfd_id) : 0;
}

/* Whether a task of this restore has made the render node, or is about to. */
static _Atomic bool *made_node(const struct restore_session *session, uint32_t minor)
{
	return &session->shared->made_nodes[minor % (RENDER_NODE_MINOR_LAST + 1)];
}

/* A node that a task of this restore has made is missing, too: all tasks map the same GPUs. */
static bool is_missing(const struct restore_session *session, const struct topology_node *node)
{
	return node->gpu_id &&
	       (*made_node(session, node->drm_render_minor) ||
		node_can_make_render(&session->machine_dev, node->drm_render_minor));
}

/* Sets whether the mapper skips the GPUs whose nodes are missing. Returns whether there are any. */
static bool put_off_missing(const struct restore_session *session, struct topology *local,
			    bool skip)
{
	bool found = false;

	for (size_t i = 0; i < local->num_nodes; i++) {
		struct topology_node *node = &local->nodes[i];

		if (!is_missing(session, node))
			continue;
		node->unreachable = skip;
		found = true;
	}
	return found;
}

static void log_missing(const struct restore_session *session, const struct topology *local)
{
	for (size_t i = 0; i < local->num_nodes; i++) {
		const struct topology_node *node = &local->nodes[i];

		if (is_missing(session, node))
			log_info(
				"map: GPU 0x%04x: the restored /dev has no renderD%u, which the task can make",
				node->gpu_id, node->drm_render_minor);
	}
}

static int make_nodes(const struct restore_session *session, const struct gpu_map *map)
{
	const struct machine_dev *machine = &session->machine_dev;
	int ret = 0;

	for (size_t i = 0; !ret && i < map->num_nodes; i++) {
		uint32_t minor = map->local[i] ? map->local[i]->drm_render_minor : 0;

		if (!minor || !node_can_make_render(machine, minor))
			continue;
		*made_node(session, minor) = true;
		ret = node_make_render(machine, minor);
	}
	return ret;
}

static int add_kfd(struct restore_session *session, int id)
{
	CriuKfd *kfd;
	int ret = image_read_kfd(id, &kfd);

	if (ret < 0)
		return ret;
	ret = queue_check_add_image(kfd, &session->tree);
	if (!ret)
		ret = image_set_add_kfd(&session->images, id, kfd);
	criu_kfd__free_unpacked(kfd, NULL);
	return ret < 0 ? log_error(ret, "kfd %d: cannot read its GPUs", id) : 0;
}

static int add_render(struct restore_session *session, int id)
{
	CriuRenderNode *render;
	int ret = image_read_render(id, &render);

	if (ret < 0)
		return ret;
	ret = map_tree_add_render(&session->tree, render);
	if (!ret)
		ret = image_set_add_render(&session->images, render);
	criu_render_node__free_unpacked(render, NULL);
	return ret < 0 ? log_error(ret, "render node %d: cannot read its GPU", id) : 0;
}

static int add_images(struct restore_session *session, enum image_kind kind,
		      int (*add)(struct restore_session *session, int id))
{
	_cleanup_free_ int *ids = NULL;
	size_t count = 0;
	int ret = image_dir_list(kind, &ids, &count);

	for (size_t i = 0; !ret && i < count; i++) {
		session->tree_image = ids[i];
		ret = add(session, ids[i]);
	}
	return ret;
}

int task_image_read_tree(struct restore_session *session)
{
	struct map_tree *tree = &session->tree;

	if (session->tree_is_read)
		return session->tree_error;
	session->tree_image = -1;
	session->tree_error = add_images(session, IMAGE_KFD, add_kfd);
	if (!session->tree_error)
		session->tree_error = add_images(session, IMAGE_RENDER, add_render);
	map_tree_sort(tree);
	tree->claims = session->shared->claims;
	session->tree_is_read = true;
	return session->tree_error;
}

/* A stream cannot be searched for the GPUs of other processes. */
static int begin_streamed_tree(struct restore_session *session, const struct topology *saved)
{
	struct map_tree *tree = &session->tree;
	int ret;

	map_tree_done(tree);
	tree->claims = session->shared->claims;
	tree->partial = true;
	ret = map_tree_add(tree, saved);
	if (!ret && session->task.kfd)
		ret = queue_check_add_image(session->task.kfd, tree);
	map_tree_sort(tree);
	return ret < 0 ? log_error(ret, "restore: cannot list the GPUs of the process") : 0;
}

static bool is_better(const struct gpu_map *map, const struct gpu_map *other)
{
	return other->outcome >= MAP_REFUSED ||
	       (map->outcome < MAP_REFUSED && map->scope < other->scope);
}

/* A GPU whose node must be made comes after those whose nodes are there: a runtime that sets the
 * device cgroup late (crun with cgroupfs) shows all GPUs to the task, and its /dev names those of
 * the job. But it comes before a GPU that another process has. */
static int decide_task_map(const struct restore_session *session, const struct topology *saved,
			   struct topology *local, struct gpu_map *ret_map)
{
	_cleanup_(map_done) struct gpu_map map = { 0 }, wider = { 0 };
	const struct map_options *options = &session->options->map;
	bool missing = put_off_missing(session, local, true);
	int ret;

	map_note_unreachable(local, render_node_open);
	ret = map_decide_in_tree(&session->tree, saved, local, options, &map);
	if (!ret && missing && (map.outcome >= MAP_REFUSED || map.scope != SCOPE_TREE)) {
		(void)put_off_missing(session, local, false);
		ret = map_decide_in_tree(&session->tree, saved, local, options, &wider);
	}
	if (ret < 0)
		return ret;
	if (wider.input && is_better(&wider, &map)) {
		*ret_map = take_struct(wider);
		return 0;
	}
	(void)put_off_missing(session, local, true);
	*ret_map = take_struct(map);
	return 0;
}

/* Tells the other tasks. Returns how many GPUs another saved GPU has already. @warn: logs them. */
static size_t claim_gpus(const struct restore_session *session, const struct topology *saved,
			 const struct gpu_map *map, bool warn)
{
	size_t count = 0;

	for (size_t i = 0; i < map->num_nodes; i++) {
		uint32_t id = saved->nodes[i].actual_gpu_id, owner;

		if (!map->local[i])
			continue;
		owner = restore_shared_claim_gpu(session->shared, map->local[i]->gpu_id, id);
		if (owner == id)
			continue;
		count++;
		if (warn)
			log_warn(
				"map: GPU 0x%04x replaces saved GPU 0x%04x and, in another process, saved GPU 0x%04x: both share its memory and its speed",
				map->local[i]->gpu_id, id, owner);
	}
	return count;
}

static int choose(const struct restore_session *session, const struct topology *saved,
		  struct topology *local, struct gpu_map *map)
{
	int ret;

	log_missing(session, local);
	ret = decide_task_map(session, saved, local, map);
	if (ret < 0 || !claim_gpus(session, saved, map, false))
		return ret;
	/* Another task may have claimed a GPU since the mapper looked. */
	map_done(map);
	return decide_task_map(session, saved, local, map);
}

int task_image_map_gpus(struct restore_session *session, const char *name,
			const struct topology *saved, struct topology *ret_local,
			struct gpu_map *ret_map)
{
	int ret = topology_read(TOPOLOGY_SYSFS, ret_local);

	if (ret == -ENOENT)
		return log_error(ret, "%s: this machine has no KFD driver: %s", name,
				 TOPOLOGY_SYSFS);
	if (ret < 0)
		return log_error(ret, "%s: cannot read %s", name, TOPOLOGY_SYSFS);
	gpu_use_mark(&session->used_gpus, ret_local);
	ret = image_is_streamed() ? begin_streamed_tree(session, saved)
				  : task_image_read_tree(session);
	if (!ret)
		ret = choose(session, saved, ret_local, ret_map);
	if (ret < 0)
		return ret;
	ret = explain_map(ret_map);
	if (!ret) {
		(void)claim_gpus(session, saved, ret_map, true);
		ret = make_nodes(session, ret_map);
	}
	if (ret < 0)
		map_done(ret_map);
	return ret;
}

static int map_task(struct restore_session *session, struct restored_task *task)
{
	char name[32];
	int ret;

	task->layout = image_priv_of(task->kfd).layout;
	(void)snprintf(name, sizeof(name), "kfd %d", task->kfd_id);
	ret = task_image_map_gpus(session, name, &task->saved, &task->local, &task->map);
	if (!ret)
		ret = extra_gpus_check(task);
	if (ret < 0)
		map_done(&task->map);
	return ret;
}

int task_image_prepare(struct restore_session *session)
{
	struct restored_task *task = &session->task;
	int ret;

	if (task->prepared)
		return 0;
	task->mappings.num_pending =
		task->kfd->has_num_of_mappings ? (int64_t)task->kfd->num_of_mappings : -1;
	task->mappings.host_copies = host_copies_mapping_fd();
	ret = image_validate_kfd(task->kfd_id, task->kfd);
	if (!ret)
		ret = read_saved_topology(task);
	/* The mapping needs all BOs of the image. */
	if (!ret)
		ret = map_task(session, task);
	if (!ret)
		ret = gem_handles_take(task);
	if (!ret)
		ret = imports_take(task);
	task->prepared = !ret;
	if (ret < 0)
		task_image_forget(task);
	return ret;
}

const KfdOwner *task_image_find_owner(const struct restored_task *task,
				      const CriuRenderNode *render)
{
	for (size_t i = 0; i < render->n_owners; i++) {
		if ((pid_t)render->owners[i]->pid == task->vpid)
			return render->owners[i];
	}
	return NULL;
}

/* A stream has each image once, so the task keeps the image until CRIU restores its /dev/kfd. */
static int find_in_stream(struct restored_task *task, const CriuRenderNode *render)
{
	const KfdOwner *owner = task_image_find_owner(task, render);
	int ret;

	if (!owner)
		return -ENOENT;
	ret = image_read_kfd((int)owner->kfd_id, &task->kfd);
	if (ret == -ENOENT)
		return log_error(
			-ENODATA,
			"kfd %u: the image of process %d is missing, or another process has read it",
			owner->kfd_id, task->vpid);
	task->kfd_id = (int)owner->kfd_id;
	return ret;
}

static int find_in_files(struct restore_session *session)
{
	struct restored_task *task = &session->task;
	int ret = task_image_read_tree(session);

	if (!ret)
		ret = image_set_find_kfd(&session->images, task->vpid, &task->kfd_id);
	return ret < 0 ? ret : image_read_kfd(task->kfd_id, &task->kfd);
}

static int find_image(struct restore_session *session, const CriuRenderNode *render)
{
	if (session->task.kfd)
		return 0;
	return image_is_streamed() ? find_in_stream(&session->task, render)
				   : find_in_files(session);
}

int task_image_read(struct restore_session *session, const CriuRenderNode *render)
{
	struct restored_task *task = &session->task;
	int ret;

	task->vpid = getpid();
	ret = find_image(session, render);
	if (ret < 0)
		return ret;
	ret = task_image_prepare(session);
	/* -ENOENT would mean that the task has no KFD state. */
	return ret == -ENOENT ? -ENODEV : ret;
}
