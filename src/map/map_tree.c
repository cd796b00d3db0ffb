// SPDX-License-Identifier: GPL-2.0-only
/* Merges the topologies of images. An image has the GPUs that its process saw, and their links. */
#include "map/map_tree.h"

#include <errno.h>
#include <stdlib.h>

#include "amdgpu_plugin_util.h"

static struct topology_node *find_node(struct topology *topology, uint32_t node_id)
{
	const struct topology_node *node = topology_find_node(topology, node_id);

	return node ? &topology->nodes[node - topology->nodes] : NULL;
}

/* An image has only those links that lead to its own nodes. */
static int merge_links(struct topology_node *node, const struct topology_node *other)
{
	for (size_t i = 0; i < other->num_links; i++) {
		const struct topology_link *link = &other->links[i];
		bool known = false;

		for (size_t j = 0; j < node->num_links; j++)
			known |= node->links[j].node_to == link->node_to &&
				 node->links[j].type == link->type;
		if (!known && array_append(&node->links, &node->num_links, sizeof(*link), link) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int add_node(struct map_tree *tree, const struct topology_node *node)
{
	struct topology_node *known = find_node(&tree->saved, node->node_id);

	if (!known) {
		known = topology_add(&tree->saved);
		if (!known)
			return -ENOMEM;
		*known = *node;
		known->links = NULL;
		known->num_links = 0;
	}
	if (known->actual_gpu_id != node->actual_gpu_id || !known->gpu_id != !node->gpu_id)
		tree->disagrees = true;
	tree->by_actual_id |= known->gpu_id != node->gpu_id;
	return merge_links(known, node);
}

/* Processes that have moved may know two GPUs by one id, or one GPU by two. The ids that the
 * machine gave are unique. */
static void choose_ids(struct topology *saved, bool *by_actual_id)
{
	for (size_t i = 0; i < saved->num_nodes && !*by_actual_id; i++)
		*by_actual_id =
			saved->nodes[i].gpu_id &&
			topology_find_gpu(saved, saved->nodes[i].gpu_id) != &saved->nodes[i];
	for (size_t i = 0; i < saved->num_nodes && *by_actual_id; i++)
		saved->nodes[i].gpu_id = saved->nodes[i].actual_gpu_id;
}

int map_tree_add(struct map_tree *tree, const struct topology *saved)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < saved->num_nodes; i++)
		ret = add_node(tree, &saved->nodes[i]);
	choose_ids(&tree->saved, &tree->by_actual_id);
	return ret;
}

static int add_sharing(struct map_tree *tree, uint32_t object, bool is_owner,
		       const struct topology_node *gpu)
{
	const struct map_sharing sharing = { object, is_owner, gpu ? gpu->node_id : 0 };

	if (!object || !gpu)
		return 0;
	return array_append(&tree->sharing, &tree->num_sharing, sizeof(sharing), &sharing);
}

static int add_objects(struct map_tree *tree, const struct topology *saved, const CriuKfd *kfd)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < kfd->n_bo_entries; i++) {
		const KfdBoEntry *bo = kfd->bo_entries[i];

		ret = add_sharing(tree, bo->object, !bo->has_owner_pid,
				  topology_find_gpu(saved, bo->gpu_id));
	}
	for (size_t i = 0; !ret && i < kfd->n_gem_handles; i++) {
		const GemHandleEntry *handle = kfd->gem_handles[i];

		ret = add_sharing(tree, handle->object, false,
				  topology_find_gpu(saved, handle->gpu_id));
	}
	return ret;
}

int map_tree_add_kfd(struct map_tree *tree, const CriuKfd *kfd)
{
	_cleanup_(topology_done) struct topology saved = { 0 };
	int ret = topology_entries_read(kfd->device_entries, kfd->n_device_entries, &saved);

	if (!ret)
		ret = map_tree_add(tree, &saved);
	if (!ret)
		ret = add_objects(tree, &saved, kfd);
	return ret;
}

int map_tree_add_render(struct map_tree *tree, const CriuRenderNode *render)
{
	_cleanup_(topology_done) struct topology saved = { 0 };
	int ret = topology_entries_read(&render->device, render->device != NULL, &saved);

	return ret < 0 ? ret : map_tree_add(tree, &saved);
}

int map_tree_add_copy_node(struct map_tree *tree, uint32_t node_id)
{
	return array_append(&tree->copy_nodes, &tree->num_copy_nodes, sizeof(node_id), &node_id);
}

static int compare_sharing(const void *left, const void *right)
{
	const struct map_sharing *a = left, *b = right;

	/* An owner comes first. */
	return ORDER(a->object, b->object) ?: ORDER(b->is_owner, a->is_owner)
					   ?: ORDER(a->node_id, b->node_id);
}

void map_tree_sort(struct map_tree *tree)
{
	if (tree->num_sharing)
		qsort(tree->sharing, tree->num_sharing, sizeof(*tree->sharing), compare_sharing);
}

void map_tree_done(struct map_tree *tree)
{
	topology_done(&tree->saved);
	free(tree->sharing);
	free(tree->copy_nodes);
	*tree = (struct map_tree){ 0 };
}
