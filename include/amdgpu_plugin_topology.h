/* SPDX-License-Identifier: GPL-2.0-only */
/* The CPUs, GPUs and links of one machine, as data: read from a directory laid out like
 * /sys/class/kfd/kfd/topology (kfd_topology.c in the kernel). Decides nothing. */
#ifndef AMDGPU_PLUGIN_TOPOLOGY_H
#define AMDGPU_PLUGIN_TOPOLOGY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "criu-amdgpu.pb-c.h"

#define TOPOLOGY_SYSFS "/sys/class/kfd/kfd/topology"

/* More nodes than any machine has, or links a node. */
#define TOPOLOGY_ENTRIES_MAX 1024

/* The lines of a node's `properties` file that matter, by their names there. A property that a
 * kernel does not print is 0. OLD ones are in every image, NEW ones in images of this plugin. */
#define TOPOLOGY_PROPERTIES(OLD, NEW)             \
	OLD(cpu_cores_count, uint32_t)            \
	OLD(simd_count, uint32_t)                 \
	OLD(mem_banks_count, uint32_t)            \
	OLD(caches_count, uint32_t)               \
	OLD(io_links_count, uint32_t)             \
	OLD(max_waves_per_simd, uint32_t)         \
	OLD(lds_size_in_kb, uint32_t)             \
	OLD(gds_size_in_kb, uint32_t)             \
	OLD(num_gws, uint32_t)                    \
	OLD(wave_front_size, uint32_t)            \
	OLD(array_count, uint32_t)                \
	OLD(simd_arrays_per_engine, uint32_t)     \
	OLD(cu_per_simd_array, uint32_t)          \
	OLD(simd_per_cu, uint32_t)                \
	OLD(max_slots_scratch_cu, uint32_t)       \
	OLD(vendor_id, uint32_t)                  \
	OLD(device_id, uint32_t)                  \
	OLD(domain, uint32_t)                     \
	OLD(drm_render_minor, uint32_t)           \
	OLD(hive_id, uint64_t)                    \
	OLD(num_sdma_engines, uint32_t)           \
	OLD(num_sdma_xgmi_engines, uint32_t)      \
	OLD(num_sdma_queues_per_engine, uint32_t) \
	OLD(num_cp_queues, uint32_t)              \
	OLD(fw_version, uint32_t)                 \
	OLD(capability, uint32_t)                 \
	OLD(sdma_fw_version, uint32_t)            \
	NEW(location_id, uint32_t)                \
	NEW(unique_id, uint64_t)                  \
	NEW(gfx_target_version, uint32_t)         \
	NEW(num_xcc, uint32_t)                    \
	NEW(cwsr_size, uint32_t)                  \
	NEW(ctl_stack_size, uint32_t)

/* io_links type (CRAT link types in kfd_crat.h). */
enum topology_link_type {
	LINK_PCIE = 2,
	LINK_XGMI = 11,
};

struct topology_link {
	uint32_t type;
	uint32_t node_to;
	uint32_t weight;
};

struct topology_node {
	uint32_t node_id;
	/* 0: a CPU node. In a topology read from an image, the id that the process knows. */
	uint32_t gpu_id;
	/* The id that the machine of this topology gave; equal to gpu_id when read from sysfs. */
	uint32_t actual_gpu_id;
	uint64_t vram_size;
	/* All VRAM is visible to the CPU. */
	uint32_t vram_public;
	/* From an image that does not tell location_id. */
	bool location_unknown;
	/* Nobody here can open its render node; set by whoever has tried. */
	bool unreachable;
	/* Position in the listing of the directory of nodes; sysfs lists by a hash of the name. 0
	 * in a topology read from an image. */
	uint32_t listed;
#define TOPOLOGY_FIELD(name, type) type name;
	TOPOLOGY_PROPERTIES(TOPOLOGY_FIELD, TOPOLOGY_FIELD)
#undef TOPOLOGY_FIELD
	struct topology_link *links;
	size_t num_links;
};

/* topology_read() sorts nodes by node_id. A topology read from an image has the image's order. */
struct topology {
	struct topology_node *nodes;
	size_t num_nodes;
};

/* Reads the topology below directory @root. Nodes that cannot be used are left out, with a line in
 * the log that names file and line: hidden by the device cgroup (reading gpu_id fails), without a
 * VRAM bank, not initialised, or with a file that is not lines of "name number". Links to nodes
 * that are not in the result stay, and lead nowhere. -ENOENT: no such directory, so no KFD. */
int topology_read(const char *root, struct topology *ret_topology);
void topology_done(struct topology *topology);

/* Appends a zeroed node; NULL: no memory. The pointer is valid until the next call. */
struct topology_node *topology_add(struct topology *topology);

/* NULL where there is none. Id 0 is no GPU's. */
const struct topology_node *topology_find_gpu(const struct topology *topology, uint32_t gpu_id);
const struct topology_node *topology_find_actual(const struct topology *topology, uint32_t id);
const struct topology_node *topology_find_minor(const struct topology *topology, uint32_t minor);
const struct topology_node *topology_find_node(const struct topology *topology, uint32_t node_id);
/* @position: below TOPOLOGY_ENTRIES_MAX. Nodes that were left out leave gaps. */
const struct topology_node *topology_find_listed(const struct topology *topology,
						 uint32_t position);
size_t topology_count_gpus(const struct topology *topology);

/* A message made of malloc() alone; free with kfd_device_entry__free_unpacked(). Only those links
 * are saved that lead to a node of @topology. NULL: no memory. */
KfdDeviceEntry *device_entry_new(const struct topology *topology, const struct topology_node *node);

/* Appends the node that @entry describes. -ENOMEM. */
int device_entry_read(const KfdDeviceEntry *entry, struct topology *topology);

#endif
