// SPDX-License-Identifier: GPL-2.0-only
/* Finds which GPU here may stand for which GPU there, by depth-first search over the saved GPUs. */
#include "amdgpu_plugin_map.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "amdgpu_plugin_host.h"
#include "amdgpu_plugin_util.h"

/* Features of the debugger and of queue reset in `capability` (kfd_sysfs.h): they change with the
 * driver on one and the same card, and a restored process does not depend on them. */
#define CAPABILITY_OF_DRIVER 0xe0078000u

enum rule {
	SAME,
	/* Compared only where both sides state it: not all kernels print it. */
	SAME_IF_STATED,
	AT_LEAST,
	SAME_HARDWARE_BITS,
};

struct comparison {
	const char *name;
	size_t offset;
	size_t size;
	enum rule rule;
	const char *variable;
	size_t switch_offset;
};

#define FIELD(f) #f, offsetof(struct topology_node, f), sizeof(((struct topology_node *)0)->f)
#define SWITCH(variable, field) #variable, offsetof(struct options, field)
#define ALWAYS NULL, 0

static const struct comparison comparisons[] = {
	{ FIELD(vendor_id), SAME, ALWAYS },
	{ FIELD(device_id), SAME, ALWAYS },
	{ FIELD(simd_count), SAME, ALWAYS },
	{ FIELD(max_waves_per_simd), SAME, ALWAYS },
	{ FIELD(lds_size_in_kb), SAME, ALWAYS },
	{ FIELD(wave_front_size), SAME, ALWAYS },
	{ FIELD(array_count), SAME, ALWAYS },
	{ FIELD(simd_arrays_per_engine), SAME, ALWAYS },
	{ FIELD(cu_per_simd_array), SAME, ALWAYS },
	{ FIELD(simd_per_cu), SAME, ALWAYS },
	{ FIELD(max_slots_scratch_cu), SAME, ALWAYS },
	{ FIELD(num_sdma_engines), SAME, ALWAYS },
	{ FIELD(num_sdma_xgmi_engines), SAME, ALWAYS },
	{ FIELD(num_sdma_queues_per_engine), SAME, ALWAYS },
	{ FIELD(num_cp_queues), SAME, ALWAYS },
	{ FIELD(gfx_target_version), SAME_IF_STATED, ALWAYS },
	{ FIELD(num_xcc), SAME_IF_STATED, ALWAYS },
	{ FIELD(cwsr_size), SAME_IF_STATED, ALWAYS },
	{ FIELD(ctl_stack_size), SAME_IF_STATED, ALWAYS },
	{ FIELD(capability), SAME_HARDWARE_BITS, SWITCH(KFD_CAPABILITY_CHECK, check_capability) },
	{ FIELD(vram_size), AT_LEAST, SWITCH(KFD_VRAM_SIZE_CHECK, check_vram_size) },
	{ FIELD(num_gws), AT_LEAST, SWITCH(KFD_NUM_GWS_CHECK, check_num_gws) },
	{ FIELD(caches_count), AT_LEAST, SWITCH(KFD_CACHES_COUNT_CHECK, check_caches) },
	{ FIELD(fw_version), AT_LEAST, SWITCH(KFD_FW_VER_CHECK, check_fw_version) },
	{ FIELD(sdma_fw_version), AT_LEAST, SWITCH(KFD_SDMA_FW_VER_CHECK, check_sdma_fw) },
	/* What the CPU had mapped must stay mappable; the other way round nothing is lost. */
	{ FIELD(vram_public), AT_LEAST, ALWAYS },
};

static uint64_t value_of(const struct topology_node *node, const struct comparison *comparison)
{
	const char *field = (const char *)node + comparison->offset;

	if (comparison->size == sizeof(uint64_t))
		return *(const uint64_t *)(const void *)field;
	return *(const uint32_t *)(const void *)field;
}

static bool fits(const struct comparison *comparison, uint64_t saved, uint64_t local)
{
	switch (comparison->rule) {
	case SAME:
		return saved == local;
	case SAME_IF_STATED:
		return !saved || !local || saved == local;
	case AT_LEAST:
		return saved <= local;
	case SAME_HARDWARE_BITS:
		return !((saved ^ local) & ~(uint64_t)CAPABILITY_OF_DRIVER);
	}
	return false;
}

static const struct comparison *first_difference(const struct topology_node *saved,
						 const struct topology_node *local,
						 const struct options *options)
{
	for (size_t i = 0; i < ARRAY_SIZE(comparisons); i++) {
		const struct comparison *c = &comparisons[i];
		const char *choices = (const char *)options;

		if (c->variable && !*(const bool *)(choices + c->switch_offset))
			continue;
		if (!fits(c, value_of(saved, c), value_of(local, c)))
			return c;
	}
	return NULL;
}

const char *map_first_difference(const struct topology_node *saved,
				 const struct topology_node *local, const struct options *options,
				 const char **ret_variable)
{
	const struct comparison *difference = first_difference(saved, local, options);

	*ret_variable = difference ? difference->variable : NULL;
	return difference ? difference->name : NULL;
}

static bool links_to(const struct topology_node *from, const struct topology_node *to)
{
	for (size_t i = 0; i < from->num_links; i++) {
		if (from->links[i].type == LINK_XGMI && from->links[i].node_to == to->node_id)
			return true;
	}
	return false;
}

/* One direction is enough: the other end may be hidden from the reader. */
static bool xgmi_pair(const struct topology_node *a, const struct topology_node *b)
{
	return links_to(a, b) || links_to(b, a);
}

/* The link to the CPU node next to @node: lowest weight, then lowest node. NULL: none. */
static const struct topology_link *cpu_link(const struct topology *topology,
					    const struct topology_node *node)
{
	const struct topology_link *best = NULL;

	for (size_t i = 0; i < node->num_links; i++) {
		const struct topology_link *link = &node->links[i];
		const struct topology_node *to = topology_find_node(topology, link->node_to);

		if (!to || to->gpu_id || (link->type != LINK_PCIE && link->type != LINK_XGMI))
			continue;
		if (!best || link->weight < best->weight ||
		    (link->weight == best->weight && link->node_to < best->node_to))
			best = link;
	}
	return best;
}

struct search {
	const struct topology *saved;
	const struct topology *local;
	const struct options *options;
	/* GPUs of different CPU nodes may come together: the second try. */
	bool may_crowd;
	struct gpu_map *map;
};

/* Whether the CPU nodes of a pair of saved GPUs and of their local ones agree. */
static bool same_neighbourhood(const struct search *search, const struct topology_node *saved_a,
			       const struct topology_node *saved_b,
			       const struct topology_node *local_a,
			       const struct topology_node *local_b)
{
	const struct topology_link *from_a = cpu_link(search->saved, saved_a);
	const struct topology_link *from_b = cpu_link(search->saved, saved_b);
	const struct topology_link *to_a = cpu_link(search->local, local_a);
	const struct topology_link *to_b = cpu_link(search->local, local_b);
	bool together;

	if (!from_a || !from_b)
		return true;
	together = to_a && to_b && to_a->node_to == to_b->node_to;
	if (from_a->node_to == from_b->node_to)
		return together;
	return search->may_crowd || !together;
}

/* A GPU linked to its CPU by XGMI needs such a link; any link does for the others. */
static bool cpu_link_fits(const struct search *search, const struct topology_node *saved,
			  const struct topology_node *local)
{
	const struct topology_link *from = cpu_link(search->saved, saved);
	const struct topology_link *to = cpu_link(search->local, local);

	return !from || (to && (from->type != LINK_XGMI || to->type == LINK_XGMI));
}

static bool may_stand_for(const struct search *search, size_t index,
			  const struct topology_node *local)
{
	const struct topology_node *saved = &search->saved->nodes[index];

	if (!local->gpu_id || first_difference(saved, local, search->options))
		return false;
	if (search->options->check_numa && !cpu_link_fits(search, saved, local))
		return false;
	for (size_t i = 0; i < index; i++) {
		const struct topology_node *other = &search->saved->nodes[i];
		const struct topology_node *taken = search->map->local[i];

		if (!taken)
			continue;
		if (taken == local)
			return false;
		if (xgmi_pair(saved, other) && !xgmi_pair(local, taken))
			return false;
		if (search->options->check_numa &&
		    !same_neighbourhood(search, saved, other, local, taken))
			return false;
	}
	return true;
}

/* Images of other plugins do not tell the slot, only the id that was made from it. */
static bool same_slot(const struct topology_node *saved, const struct topology_node *local)
{
	return saved->domain == local->domain && saved->actual_gpu_id == local->actual_gpu_id &&
	       (!saved->location_id || saved->location_id == local->location_id);
}

static bool very_same(const struct topology_node *saved, const struct topology_node *local)
{
	return (saved->unique_id && saved->unique_id == local->unique_id) || same_slot(saved, local);
}

static bool place(const struct search *search, size_t index);

static bool try_local(const struct search *search, size_t index, const struct topology_node *local)
{
	if (!may_stand_for(search, index, local))
		return false;
	search->map->local[index] = local;
	if (place(search, index + 1))
		return true;
	search->map->local[index] = NULL;
	return false;
}

/* Places the saved nodes from @index on; the very same GPU is tried first. */
static bool place(const struct search *search, size_t index)
{
	const struct topology *local = search->local;
	const struct topology_node *saved;

	while (index < search->saved->num_nodes && !search->saved->nodes[index].gpu_id)
		index++;
	if (index == search->saved->num_nodes)
		return true;

	saved = &search->saved->nodes[index];
	for (int same = 1; same >= 0; same--) {
		for (size_t i = 0; i < local->num_nodes; i++) {
			if (very_same(saved, &local->nodes[i]) == same &&
			    try_local(search, index, &local->nodes[i]))
				return true;
		}
	}
	return false;
}

/* A line for each present GPU: what keeps it from standing for @saved. */
static bool explain_gpu(const struct topology_node *saved, const struct topology *local,
			const struct options *options)
{
	bool some_fits = false;

	for (size_t i = 0; i < local->num_nodes; i++) {
		const struct topology_node *node = &local->nodes[i];
		const struct comparison *c;

		if (!node->gpu_id)
			continue;
		c = first_difference(saved, node, options);
		some_fits |= !c;
		if (c)
			log_warn("map: saved GPU 0x%04x, present GPU 0x%04x: %s is %" PRIu64
				 " there, %" PRIu64 " here%s%s%s",
				 saved->gpu_id, node->gpu_id, c->name, value_of(saved, c),
				 value_of(node, c), c->variable ? " (" : "",
				 c->variable ? c->variable : "", c->variable ? "=0 relaxes)" : "");
	}
	return some_fits;
}

static int explain(const struct search *search)
{
	size_t wanted = topology_count_gpus(search->saved);
	size_t present = topology_count_gpus(search->local);

	if (wanted > present)
		return log_error(-ENODEV, "map: the image has %zu GPUs, here are %zu", wanted, present);
	for (size_t i = 0; i < search->saved->num_nodes; i++) {
		const struct topology_node *saved = &search->saved->nodes[i];

		if (saved->gpu_id && !explain_gpu(saved, search->local, search->options))
			return log_error(-ENODEV, "map: no GPU here can stand for saved GPU 0x%04x",
					 saved->gpu_id);
	}
	return log_error(-ENODEV, "map: each saved GPU has a match here, but not all at once with "
				  "their XGMI links and CPU nodes (KFD_NUMA_CHECK=0 relaxes the latter)");
}

int map_gpus(const struct topology *saved, const struct topology *local,
	     const struct options *options, struct gpu_map *ret_map)
{
	_cleanup_(map_done) struct gpu_map map = { .num_nodes = saved->num_nodes };
	struct search search = {
		.saved = saved, .local = local, .options = options, .map = &map
	};

	map.local = calloc(saved->num_nodes ? saved->num_nodes : 1, sizeof(const void *));
	if (!map.local)
		return -ENOMEM;
	if (!place(&search, 0)) {
		search.may_crowd = true;
		if (!options->check_numa || !place(&search, 0))
			return explain(&search);
		log_warn("map: GPUs of different CPU nodes come together on one");
	}
	for (size_t i = 0; i < saved->num_nodes; i++) {
		if (map.local[i])
			log_info("map: saved GPU 0x%04x (minor %u) -> GPU 0x%04x (minor %u)",
				 saved->nodes[i].gpu_id, saved->nodes[i].drm_render_minor,
				 map.local[i]->gpu_id, map.local[i]->drm_render_minor);
	}
	*ret_map = map;
	map = (struct gpu_map){ 0 };
	return 0;
}

void map_done(struct gpu_map *map)
{
	free(map->local);
	*map = (struct gpu_map){ 0 };
}
