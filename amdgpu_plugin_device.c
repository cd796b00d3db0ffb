// SPDX-License-Identifier: GPL-2.0-only
/* The saved form of topology nodes. One table (TOPOLOGY_PROPERTIES) drives both directions. */
#include "amdgpu_plugin_device.h"

#include <errno.h>
#include <stdlib.h>

static int add_link(KfdDeviceEntry *entry, const struct topology_link *link)
{
	DevIolink *saved = malloc(sizeof(*saved));

	if (!saved)
		return -ENOMEM;
	dev_iolink__init(saved);
	saved->type = link->type;
	saved->node_to_id = link->node_to;
	saved->has_weight = true;
	saved->weight = link->weight;
	entry->iolinks[entry->n_iolinks++] = saved;
	return 0;
}

static int add_links(KfdDeviceEntry *entry, const struct topology *topology,
		     const struct topology_node *node)
{
	int ret = 0;

	if (!node->num_links)
		return 0;
	entry->iolinks = calloc(node->num_links, sizeof(*entry->iolinks));
	if (!entry->iolinks)
		return -ENOMEM;
	for (size_t i = 0; !ret && i < node->num_links; i++) {
		if (topology_find_node(topology, node->links[i].node_to))
			ret = add_link(entry, &node->links[i]);
	}
	return ret;
}

KfdDeviceEntry *device_entry_new(const struct topology *topology, const struct topology_node *node)
{
	KfdDeviceEntry *entry = malloc(sizeof(*entry));

	if (!entry)
		return NULL;
	kfd_device_entry__init(entry);
	entry->node_id = node->node_id;
	entry->gpu_id = node->gpu_id;
	entry->has_actual_gpu_id = true;
	entry->actual_gpu_id = node->actual_gpu_id;
	entry->vram_public = node->vram_public;
	entry->vram_size = node->vram_size;
#define SAVE_OLD(name, type) entry->name = node->name;
#define SAVE_NEW(name, type) (entry->has_##name = true, entry->name = node->name);
	TOPOLOGY_PROPERTIES(SAVE_OLD, SAVE_NEW)
#undef SAVE_OLD
#undef SAVE_NEW
	if (add_links(entry, topology, node) < 0) {
		kfd_device_entry__free_unpacked(entry, NULL);
		return NULL;
	}
	return entry;
}

int device_entry_read(const KfdDeviceEntry *entry, struct topology *topology)
{
	struct topology_node *node = topology_add(topology);

	if (!node)
		return -ENOMEM;
	node->node_id = entry->node_id;
	node->gpu_id = entry->gpu_id;
	node->actual_gpu_id = entry->has_actual_gpu_id ? entry->actual_gpu_id : entry->gpu_id;
	node->vram_public = entry->vram_public;
	node->vram_size = entry->vram_size;
	node->location_unknown = !entry->has_location_id;
	/* A missing optional field reads as 0, which is what a missing property is. */
#define LOAD(name, type) node->name = entry->name;
	TOPOLOGY_PROPERTIES(LOAD, LOAD)
#undef LOAD
	if (!entry->n_iolinks)
		return 0;

	node->links = calloc(entry->n_iolinks, sizeof(*node->links));
	if (!node->links)
		return -ENOMEM;
	node->num_links = entry->n_iolinks;
	for (size_t i = 0; i < node->num_links; i++) {
		node->links[i].type = entry->iolinks[i]->type;
		node->links[i].node_to = entry->iolinks[i]->node_to_id;
		node->links[i].weight = entry->iolinks[i]->weight;
	}
	return 0;
}
