// SPDX-License-Identifier: GPL-2.0-only
/* Asks the mapper which GPU fits. A program in the cgroup of this process hides the others from a
 * job that starts, by the name of its threads. At the restore the plugin hides them. */
#include "selftest_move.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "amdgpu_plugin_util.h"
#include "devices/hide.h"
#include "map/map.h"
#include "selftest.h"

/* What the image of a job on @gpu says: the GPU and the CPUs. */
static int make_saved(const struct topology *local, const struct topology_node *gpu,
		      struct topology *saved)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < local->num_nodes; i++) {
		KfdDeviceEntry *entry;

		if (local->nodes[i].gpu_id && &local->nodes[i] != gpu)
			continue;
		entry = topology_entry_new(local, &local->nodes[i]);
		ret = entry ? topology_entries_read(&entry, 1, saved) : -ENOMEM;
		if (entry)
			kfd_device_entry__free_unpacked(entry, NULL);
	}
	return ret;
}

/* A job has a copy engine's queue, whose place depends on the number of the partition. */
static int make_tree(const struct topology *saved, uint32_t node_id, struct map_tree *tree)
{
	int ret = map_tree_add(tree, saved);

	if (!ret)
		ret = map_tree_add_copy_node(tree, node_id);
	map_tree_sort(tree);
	return ret;
}

/* By the rules of a restore. */
static int ask_mapper(const struct selftest *selftest, struct selftest_move *move, bool *ret_fits)
{
	const struct topology *local = &selftest->check.topology;
	struct map_options options = selftest->check.options.map;
	_cleanup_(topology_done) struct topology saved = { 0 };
	_cleanup_(map_tree_done) struct map_tree tree = { 0 };
	_cleanup_(map_done) struct gpu_map map = { 0 };
	int ret = make_saved(local, move->from, &saved);

	(void)snprintf(move->map, sizeof(move->map), "0x%04x=0x%04x", move->from->gpu_id,
		       move->to->gpu_id);
	options.device_map = move->map;
	if (!ret)
		ret = make_tree(&saved, move->from->node_id, &tree);
	if (!ret)
		ret = map_decide_in_tree(&tree, &saved, local, &options, &map);
	if (!ret)
		*ret_fits = map.outcome == MAP_MAPPED || map.outcome == MAP_MAPPED_WARNING;
	return ret;
}

static int find_target(const struct selftest *selftest, struct selftest_move *move)
{
	const struct topology *local = &selftest->check.topology;
	bool fits = false;
	int ret = 0;

	for (size_t i = 0; !ret && !fits && i < local->num_nodes; i++) {
		move->to = &local->nodes[i];
		if (move->to->gpu_id && move->to != move->from)
			ret = ask_mapper(selftest, move, &fits);
	}
	return !ret && !fits ? -ENODEV : ret;
}

static int hide_others(const struct selftest *selftest, struct selftest_move *move,
		       char ret_cause[SELFTEST_MOVE_CAUSE])
{
	const struct topology *local = &selftest->check.topology;
	uint32_t minors[HIDE_MINORS_MAX];
	char name[HIDE_NAME_SIZE] = SELFTEST_MOVE_NAME;
	const char *cause = NULL;
	size_t count = 0;

	for (size_t i = 0; i < local->num_nodes && count < HIDE_MINORS_MAX; i++) {
		if (local->nodes[i].gpu_id && &local->nodes[i] != move->from)
			minors[count++] = local->nodes[i].drm_render_minor;
	}
	move->link = hide_attach(minors, count, name, &cause);
	if (move->link >= 0)
		return 0;
	(void)snprintf(ret_cause, SELFTEST_MOVE_CAUSE, "GPUs cannot be hidden from a job: %s",
		       cause);
	return move->link;
}

int selftest_move_begin(const struct selftest *selftest, const struct topology_node *from,
			struct selftest_move *ret_move, char ret_cause[SELFTEST_MOVE_CAUSE])
{
	struct selftest_move move = { .from = from, .link = -1 };
	int ret = find_target(selftest, &move);

	if (ret < 0)
		(void)snprintf(ret_cause, SELFTEST_MOVE_CAUSE, "%s",
			       ret == -ENODEV ? "no other GPU of this machine fits"
					      : strerror(-ret));
	else
		ret = hide_others(selftest, &move, ret_cause);
	if (ret < 0)
		return ret;
	*ret_move = move;
	return 0;
}
