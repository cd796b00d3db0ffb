/* SPDX-License-Identifier: GPL-2.0-only */
/* Collects the saved GPUs of several processes, and which of them share BOs. To map them call
 * map_decide_in_tree(). */
#ifndef AMDGPU_PLUGIN_MAP_MAP_TREE_H
#define AMDGPU_PLUGIN_MAP_MAP_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "amdgpu_plugin_topology.h"

#define MAP_CLAIMS (UINT16_MAX + 1)

/* A saved GPU that has an object. */
struct map_sharing {
	uint32_t object;
	/* The process that has the object on this GPU makes it at a restore. */
	bool is_owner;
	uint32_t node_id;
};

/* The saved GPUs of all processes that are restored together. Begins all zero. */
struct map_tree {
	/* Each GPU once. */
	struct topology saved;
	/* By object, the owner first, after map_tree_sort(). */
	struct map_sharing *sharing;
	size_t num_sharing;
	/* node_ids of saved GPUs on which a process has the queue of a copy engine. */
	uint32_t *copy_nodes;
	size_t num_copy_nodes;
	/* gpu_id in @saved is the id that the machine gave, because processes know the GPUs by
	 * different ids. */
	bool by_actual_id;
	/* The images are of several machines. */
	bool disagrees;
	/* Images are missing here, because a stream cannot be searched. */
	bool partial;
	/* An array of MAP_CLAIMS elements, or NULL if the claims are not known. The element at the
	 * gpu_id of a present GPU, modulo MAP_CLAIMS, is the actual_gpu_id of the saved GPU that
	 * another process has mapped to the GPU, or 0. Other processes write it at any time. */
	const uint32_t *claims;
};

/* Adds GPUs, those of an image and the objects on them, or a GPU with the queue of a copy engine.
 * -EINVAL: the image is damaged; -ENOMEM. Log nothing. */
int map_tree_add(struct map_tree *tree, const struct topology *saved);
int map_tree_add_kfd(struct map_tree *tree, const CriuKfd *kfd);
int map_tree_add_render(struct map_tree *tree, const CriuRenderNode *render);
int map_tree_add_copy_node(struct map_tree *tree, uint32_t node_id);
/* After the last addition. */
void map_tree_sort(struct map_tree *tree);
void map_tree_done(struct map_tree *tree);

#endif
