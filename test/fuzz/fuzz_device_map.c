// SPDX-License-Identifier: GPL-2.0-only
/* Fuzzes the option device-map, for eight GPUs that move to another machine. */
#include "fuzz.h"

#include <string.h>

#include "criu/options.h"
#include "map/explain.h"
#include "map/map.h"

static struct topology saved, local;

static void read_machines(void)
{
	if (saved.num_nodes)
		return;
	promise(topology_read(MACHINES "/eight", &saved) == 0);
	promise(topology_read(MACHINES "/eight-other", &local) == 0);
}

/* Either each saved GPU has a present GPU of its own, or there is no map. */
static void check(const struct gpu_map *map)
{
	for (size_t i = 0; i < saved.num_nodes; i++) {
		promise(!saved.nodes[i].gpu_id == !map->local[i]);
		for (size_t j = 0; j < i; j++)
			promise(!map->local[i] || map->local[i] != map->local[j]);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct fuzz_input input = { bytes, size };
	struct map_options options = { .check_numa = true };
	struct map_tree tree = { 0 };
	struct gpu_map map = { 0 };
	int ret;

	read_machines();
	fuzz_begin();
	tree.partial = fuzz_take_number(&input, 1) & 1;
	options.device_map = fuzz_take_text(&input);
	promise(map_tree_add(&tree, &saved) == 0);
	ret = map_decide_in_tree(&tree, &saved, &local, &options, &map);
	if (!ret)
		ret = explain_map(&map);
	promise(unit_count_errors() == (ret < 0));
	if (!ret)
		check(&map);
	map_done(&map);
	map_tree_done(&tree);
	free(options.device_map);
	fuzz_end();
	return 0;
}
