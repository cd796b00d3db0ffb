// SPDX-License-Identifier: GPL-2.0-only
/* Makes topologies of synthetic machines. */
#include "synthetic.h"

#include <stdlib.h>
#include <string.h>

#include "gpu_node.h"

uint32_t dice_roll(struct dice *dice, uint32_t sides)
{
	uint64_t mixed = dice->state += 0x9e3779b97f4a7c15ULL;

	mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9ULL;
	mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111ebULL;
	return (uint32_t)((mixed ^ mixed >> 31) % sides);
}

bool dice_percent(struct dice *dice, uint32_t percent)
{
	return dice_roll(dice, 100) < percent;
}

static void *checked(void *memory)
{
	if (!memory)
		abort();
	return memory;
}

static void add_link(struct topology_node *node, uint32_t type, uint32_t to, uint32_t weight)
{
	node->links = checked(realloc(node->links, (node->num_links + 1) * sizeof(*node->links)));
	node->links[node->num_links++] = (struct topology_link){ type, to, weight };
}

static struct topology_node *add_node(struct topology *topology)
{
	return checked(topology_add(topology));
}

static void add_cpu(struct topology *topology, uint32_t node_id)
{
	struct topology_node *node = add_node(topology);

	node->node_id = node_id;
	node->cpu_cores_count = 64;
}

static void add_gpu(struct topology *topology, uint32_t node_id, uint32_t gpu_id)
{
	struct topology_node *node = add_node(topology);

	*node = gpu_node(node_id, gpu_id);
	node->capability = 0x2c77a280;
	node->caches_count = 62;
	node->location_id = (uint32_t)(topology->num_nodes + 4) << 8;
}

/* Each property has few values, so that some GPUs fit and some do not. */
static void vary(struct dice *dice, struct topology_node *node)
{
	node->simd_count -= dice_percent(dice, 8);
	node->num_cp_queues = dice_percent(dice, 5) ? 24 : 0;
	node->num_xcc = dice_roll(dice, 100) < 10 ? 8 : dice_roll(dice, 100) < 10 ? 6 : 0;
	node->cwsr_size = dice_percent(dice, 5) ? 4096 * (1 + dice_roll(dice, 2)) : 0;
	node->fw_version += dice_percent(dice, 20);
	node->sdma_fw_version += dice_percent(dice, 10);
	node->caches_count -= dice_percent(dice, 5) ? 62 : 0;
	node->num_gws -= dice_percent(dice, 5);
	node->vram_size -= dice_percent(dice, 10) ? 16 << 20 : 0;
	node->vram_public = !dice_percent(dice, 15);
	node->capability ^= dice_percent(dice, 10) ? 1u << (15 + dice_roll(dice, 4)) : 0;
	node->capability ^= dice_percent(dice, 10) ? 1u << (29 + dice_roll(dice, 3)) : 0;
	node->capability ^= dice_percent(dice, 5) ? 1u << dice_roll(dice, 29) : 0;
	node->domain = dice_percent(dice, 10);
	node->location_id = (1 + dice_roll(dice, 8)) << 8;
	/* Such GPUs may be partitions. */
	node->gfx_target_version = 90402;
	node->location_id += dice_percent(dice, 20) ? 1 + dice_roll(dice, 2) : 0;
	node->unique_id = dice_percent(dice, 30) ? 0 : 0x1000000 + dice_roll(dice, 12);
	node->hive_id = dice_roll(dice, 3);
	node->io_links_count = dice_roll(dice, 9);
}

static void add_random_links(struct dice *dice, struct topology *topology, size_t num_cpus)
{
	/* The number of links varies from none to one for each pair, in hives or at random. */
	uint32_t density = dice_roll(dice, 5) * 25, num_hives = 1 + dice_roll(dice, 3);
	uint32_t no_cpu = dice_percent(dice, 20) ? 30 : 0,
		 xgmi_cpu = dice_percent(dice, 20) ? 50 : 0;

	for (size_t i = 0; i < topology->num_nodes; i++) {
		struct topology_node *a = &topology->nodes[i];

		if (!a->gpu_id)
			continue;
		for (size_t cpus = dice_percent(dice, no_cpu) ? 0 : 1 + dice_percent(dice, 15);
		     cpus && num_cpus; cpus--)
			add_link(a, dice_percent(dice, xgmi_cpu) ? LINK_XGMI : LINK_PCIE,
				 topology->nodes[dice_roll(dice, (uint32_t)num_cpus)].node_id,
				 20 + dice_roll(dice, 2));
		if (dice_percent(dice, 10))
			add_link(a, LINK_XGMI, 1000, 15);
		for (size_t j = 0; j < topology->num_nodes; j++) {
			struct topology_node *b = &topology->nodes[j];

			if (i == j || !b->gpu_id || i % num_hives != j % num_hives)
				continue;
			if (dice_percent(dice, density))
				add_link(a, dice_percent(dice, 95) ? LINK_XGMI : LINK_PCIE,
					 b->node_id, 15);
		}
	}
}

static int compare_nodes(const void *left, const void *right)
{
	const struct topology_node *a = left, *b = right;

	return a->node_id < b->node_id ? -1 : a->node_id > b->node_id;
}

static void sort_nodes(struct topology *topology)
{
	if (topology->num_nodes)
		qsort(topology->nodes, topology->num_nodes, sizeof(*topology->nodes),
		      compare_nodes);
}

static void shuffled(struct dice *dice, uint32_t *numbers, size_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		uint32_t j = dice_roll(dice, i + 1);

		numbers[i] = numbers[j];
		numbers[j] = i;
	}
}

void machine_random(struct dice *dice, size_t max_gpus, struct topology *ret_topology)
{
	size_t num_cpus = dice_roll(dice, 4), num_gpus = dice_roll(dice, (uint32_t)max_gpus + 1);
	struct topology topology = { 0 };
	/* If all GPUs are equal, the links decide. */
	bool alike = dice_percent(dice, 40);
	uint32_t ids[64];

	shuffled(dice, ids, num_cpus + num_gpus);
	for (size_t i = 0; i < num_cpus; i++)
		add_cpu(&topology, ids[i]);
	for (size_t i = 0; i < num_gpus; i++) {
		/* A few machines repeat a gpu_id. */
		uint32_t gpu_id = dice_percent(dice, 1) ? 0x10 : 0x10 + (uint32_t)i;

		add_gpu(&topology, ids[num_cpus + i], gpu_id);
		if (!alike)
			vary(dice, &topology.nodes[num_cpus + i]);
		if (dice_percent(dice, 3))
			topology.nodes[num_cpus + i].cpu_cores_count = 4;
	}
	if (num_cpus && dice_percent(dice, 5))
		topology.nodes[0].cpu_cores_count = 0;
	add_random_links(dice, &topology, num_cpus);
	sort_nodes(&topology);
	*ret_topology = topology;
}

void machine_of_hives(size_t num_hives, size_t size, size_t num_cpus, bool striped,
		      struct topology *ret_topology)
{
	struct topology topology = { 0 };

	for (size_t i = 0; i < num_cpus; i++)
		add_cpu(&topology, (uint32_t)i);
	for (size_t i = 0; i < num_hives * size; i++) {
		size_t hive = i / size, cpu = striped ? i % num_cpus : hive * num_cpus / num_hives;
		struct topology_node *node;

		add_gpu(&topology, (uint32_t)(num_cpus + i), 0x100 + (uint32_t)i);
		node = &topology.nodes[num_cpus + i];
		node->unique_id = 0x70000000 + i;
		add_link(node, LINK_PCIE, (uint32_t)cpu, 20);
		for (size_t j = hive * size; j < (hive + 1) * size; j++) {
			if (j != i)
				add_link(node, LINK_XGMI, (uint32_t)(num_cpus + j), 15);
		}
	}
	*ret_topology = topology;
}

void machine_copy(const struct topology *topology, struct topology *ret_topology)
{
	struct topology copy = { 0 };

	for (size_t i = 0; i < topology->num_nodes; i++) {
		struct topology_node *node = add_node(&copy);

		*node = topology->nodes[i];
		node->links = checked(calloc(node->num_links + 1, sizeof(*node->links)));
		if (node->num_links)
			memcpy(node->links, topology->nodes[i].links,
			       node->num_links * sizeof(*node->links));
	}
	*ret_topology = copy;
}

static uint32_t new_node_id(const struct topology *topology, const uint32_t *ids, uint32_t node_id)
{
	for (size_t i = 0; i < topology->num_nodes; i++) {
		if (topology->nodes[i].node_id == node_id)
			return ids[i];
	}
	return 5000 + node_id;
}

void machine_renamed(struct dice *dice, const struct topology *topology,
		     struct topology *ret_topology)
{
	struct topology copy;
	uint32_t ids[512], others[512];

	machine_copy(topology, &copy);
	shuffled(dice, ids, copy.num_nodes);
	shuffled(dice, others, copy.num_nodes);
	for (size_t i = 0; i < copy.num_nodes; i++) {
		struct topology_node *node = &copy.nodes[i];

		node->node_id = ids[i];
		for (size_t j = 0; j < node->num_links; j++)
			node->links[j].node_to =
				new_node_id(topology, ids, topology->nodes[i].links[j].node_to);
		if (!node->gpu_id)
			continue;
		/* A repeated gpu_id stays repeated. */
		for (size_t j = 0; j <= i; j++) {
			if (topology->nodes[j].gpu_id == topology->nodes[i].gpu_id) {
				node->gpu_id = node->actual_gpu_id = 0x8000 + others[j];
				break;
			}
		}
		node->drm_render_minor = 128 + others[i];
		node->location_id = (0x40 + others[i]) << 8;
		node->unique_id = 0x90000000 + others[i];
	}
	sort_nodes(&copy);
	*ret_topology = copy;
}

static bool has_id(const struct topology *topology, uint32_t gpu_id)
{
	return topology_find_gpu(topology, gpu_id) != NULL;
}

void machine_take_ids(struct dice *dice, const struct topology *other, uint32_t percent,
		      struct topology *topology)
{
	for (size_t i = 0; i < topology->num_nodes && other->num_nodes; i++) {
		uint32_t id = other->nodes[dice_roll(dice, (uint32_t)other->num_nodes)].gpu_id;

		if (topology->nodes[i].gpu_id && id && dice_percent(dice, percent) &&
		    !has_id(topology, id))
			topology->nodes[i].gpu_id = id;
	}
}

void machine_some(struct dice *dice, const struct topology *topology, size_t num_gpus,
		  struct topology *ret_topology)
{
	struct topology copy;

	machine_copy(topology, &copy);
	while (topology_count_gpus(&copy) > num_gpus) {
		size_t i = dice_roll(dice, (uint32_t)copy.num_nodes);

		if (!copy.nodes[i].gpu_id)
			continue;
		free(copy.nodes[i].links);
		copy.num_nodes--;
		memmove(&copy.nodes[i], &copy.nodes[i + 1],
			(copy.num_nodes - i) * sizeof(copy.nodes[0]));
	}
	*ret_topology = copy;
}

struct topology_node *machine_gpu(struct topology *topology, size_t index)
{
	for (size_t i = 0; i < topology->num_nodes; i++) {
		if (topology->nodes[i].gpu_id && !index--)
			return &topology->nodes[i];
	}
	abort();
}

void machine_move_gpu(struct topology *topology, size_t gpu, size_t other_gpu)
{
	struct topology_node *node = machine_gpu(topology, gpu),
			     *other = machine_gpu(topology, other_gpu);
	struct topology_link *to = NULL;

	for (size_t i = 0; i < other->num_links; i++) {
		const struct topology_node *at =
			topology_find_node(topology, other->links[i].node_to);

		if (at && !at->gpu_id)
			to = &other->links[i];
	}
	for (size_t i = 0; to && i < node->num_links; i++) {
		const struct topology_node *at =
			topology_find_node(topology, node->links[i].node_to);

		if (at && !at->gpu_id)
			node->links[i] = *to;
	}
}

static void lose_direction(struct topology_node *from, uint32_t to)
{
	for (size_t i = 0; i < from->num_links; i++) {
		if (from->links[i].node_to == to)
			from->links[i].type = LINK_PCIE;
	}
}

void machine_lose_link(struct topology *topology, size_t gpu_a, size_t gpu_b)
{
	struct topology_node *a = machine_gpu(topology, gpu_a), *b = machine_gpu(topology, gpu_b);

	lose_direction(a, b->node_id);
	lose_direction(b, a->node_id);
}
