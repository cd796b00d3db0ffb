/* SPDX-License-Identifier: GPL-2.0-only */
/* Maps each saved GPU (a GPU of the image) to a present GPU (a GPU of this machine). Works on
 * topologies in memory. */
#ifndef AMDGPU_PLUGIN_MAP_MAP_H
#define AMDGPU_PLUGIN_MAP_MAP_H

#include "amdgpu_plugin_topology.h"
#include "criu/options.h"
#include "map/map_tree.h"

enum map_outcome {
	MAP_MAPPED,
	/* GPUs of different CPU nodes now share a CPU node, or GPUs have lost their XGMI link. */
	MAP_MAPPED_WARNING,
	MAP_REFUSED,
	/* Two GPUs of one side have the same gpu_id. */
	MAP_MALFORMED,
};

/* Why no mapping exists, in the order of the checks. */
enum map_reason {
	REASON_NONE,
	REASON_MALFORMED,
	/* One side has more GPUs than a process can have (GPU_SET_MAX). */
	REASON_TOO_MANY,
	/* The image has more GPUs than this machine. */
	REASON_COUNT,
	/* The option device-map is wrong: see enum device_map_error. */
	REASON_DEVICE_MAP,
	/* No present GPU fits some saved GPU. */
	REASON_NO_CANDIDATE,
	/* Each saved GPU has a fitting GPU, but not each its own. */
	REASON_COUNT_FITTING,
	/* Each mapping breaks the relation of two GPUs that share a BO. */
	REASON_SHARING,
	/* Each mapping breaks an XGMI pair. */
	REASON_LINKS,
	/* Each mapping separates GPUs of one CPU node, or loses the link of a GPU to its CPU. */
	REASON_NUMA,
	/* The search reached its limit of attempts. */
	REASON_UNDECIDED,
};

/* What is wrong with the option device-map. */
enum device_map_error {
	DEVICE_MAP_OK,
	/* The text is not a list of SAVED=PRESENT. */
	DEVICE_MAP_SYNTAX,
	/* A name matches no saved GPU. */
	DEVICE_MAP_UNKNOWN,
	/* A name matches no present GPU. */
	DEVICE_MAP_NOT_PRESENT,
	/* A name matches several GPUs. */
	DEVICE_MAP_AMBIGUOUS,
	/* Two pairs contradict each other. */
	DEVICE_MAP_TWICE,
	/* The GPUs of a pair differ in a property. */
	DEVICE_MAP_PROPERTY,
	/* Pairs break an XGMI pair. */
	DEVICE_MAP_LINKS,
	/* Pairs break the rule about CPU nodes. */
	DEVICE_MAP_NUMA,
};

/* What a mapping leaves the other processes of the tree, the best first. */
enum map_scope {
	/* All processes have one mapping. */
	SCOPE_TREE,
	/* The GPUs of the tree have no common mapping, so this is one for the process alone. */
	SCOPE_ALONE,
	/* The same, and another process may have mapped a GPU of this one. */
	SCOPE_SHARED,
};

struct map_input;

struct gpu_map {
	/* Indexed like saved->nodes: the node of the local topology. NULL for CPU nodes, and for
	 * all nodes if no mapping exists. */
	const struct topology_node **local;
	size_t num_nodes;
	/* Local GPUs to which no saved GPU is mapped, in node order. */
	const struct topology_node **extra;
	size_t num_extra;
	enum map_outcome outcome;
	enum map_reason reason;
	/* The property in which the GPUs differ, for REASON_NO_CANDIDATE and DEVICE_MAP_PROPERTY.
	 */
	const char *property;
	/* The saved GPU without candidate, or the repeated gpu_id. */
	uint32_t gpu_id;
	enum map_scope scope;
	enum device_map_error device_map_error;
	/* The error of the device-map as a sentence. */
	char problem[256];
	/* The cost of the search. */
	uint64_t attempts;
	/* For explain_map(). */
	struct map_input *input;
};

/* Marks each GPU of @local whose render node the task cannot open, with a warning: map_decide()
 * then skips it. Does not try GPUs that are marked already. @open_node is render_node_open(), or a
 * function that returns as it does, as the mapper opens no files itself. */
void map_note_unreachable(struct topology *local,
			  int (*open_node)(uint32_t minor, int lowest_fd, int *ret_fd));

/* Finds the mapping, or the reason why none exists: a refusal is an answer, and returns 0, too.
 * Logs nothing but an error: -ENOMEM. The map borrows the topologies and the options; free it with
 * map_done(). docs/mapping.md has the rules, and which of several mappings the mapper prefers. */
int map_decide(const struct topology *saved, const struct topology *local,
	       const struct map_options *options, struct gpu_map *ret_map);
/* The same for a process of @tree, which includes @saved. All processes of a tree that see the same
 * GPUs get the mapping of @tree->saved. If the tree has none, the process is mapped alone, and gets
 * a GPU that another process has (@tree->claims) only if no other fits. */
int map_decide_in_tree(const struct map_tree *tree, const struct topology *saved,
		       const struct topology *local, const struct map_options *options,
		       struct gpu_map *ret_map);
void map_done(struct gpu_map *map);

#endif
