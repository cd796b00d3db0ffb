/* SPDX-License-Identifier: GPL-2.0-only */
/* The CPUs, GPUs and links of one machine, from /sys/class/kfd/kfd/topology (kfd_topology.c in the
 * kernel) or from an image. */
#ifndef AMDGPU_PLUGIN_TOPOLOGY_H
#define AMDGPU_PLUGIN_TOPOLOGY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "criu-amdgpu.pb-c.h"

#define TOPOLOGY_SYSFS "/sys/class/kfd/kfd/topology"

/* The limit of nodes, of links per node and of memory banks per node. */
#define TOPOLOGY_ENTRIES_MAX 1024

/* The properties of a node that the plugin reads from its `properties` file, by their names there.
 * A property that a kernel does not print is 0. Images of CRIU's own plugin have the OLD ones
 * only. */
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

/* gfx_target_version: major * 10000 + minor * 100 + stepping. */
#define TOPOLOGY_GFX9   90000u
#define TOPOLOGY_GFX940 90400u /* MI300 */
#define TOPOLOGY_GFX950 90500u /* MI350 */
#define TOPOLOGY_GFX10  100000u
#define TOPOLOGY_GFX11  110000u
#define TOPOLOGY_GFX12  120000u

/* The type of a link (CRAT link types in the kernel's kfd_crat.h). */
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
	/* 0 for a CPU node. In a topology from an image, the id that the process knows. */
	uint32_t gpu_id;
	/* The id that the machine gave; equal to gpu_id in a topology from sysfs. */
	uint32_t actual_gpu_id;
	uint64_t vram_size;
	/* Not 0 if the CPU can access all VRAM. */
	uint32_t vram_public;
	/* The image has no location_id. */
	bool location_unknown;
	/* CRIU cannot open the render node (map_note_unreachable()). */
	bool unreachable;
	/* A KFD process of this machine used the GPU before the restore. */
	bool in_use;
	/* The position in the listing of the directory of nodes: sysfs lists by a hash of the name.
	 * 0 in a topology from an image. */
	uint32_t listed;
#define TOPOLOGY_FIELD(name, type) type name;
	TOPOLOGY_PROPERTIES(TOPOLOGY_FIELD, TOPOLOGY_FIELD)
#undef TOPOLOGY_FIELD
	struct topology_link *links;
	size_t num_links;
};

/* Nodes from sysfs are in the order of node_id, nodes from an image in the order of the image. */
struct topology {
	struct topology_node *nodes;
	size_t num_nodes;
};

/* Reads the topology below directory @root. Ignores nodes that the device cgroup hides (reading
 * gpu_id fails), GPUs without a VRAM bank, nodes that the driver has not initialised, and nodes
 * with a file that does not parse; the log names file and line. Links to ignored nodes remain.
 * -ENOENT: there is no such directory, because the machine has no KFD. */
int topology_read(const char *root, struct topology *ret_topology);
void topology_done(struct topology *topology);

/* Appends a node of zeros. The pointer is valid until the next call. NULL: no memory. */
struct topology_node *topology_add(struct topology *topology);

/* Return NULL if there is no such node. No GPU has id 0. */
const struct topology_node *topology_find_gpu(const struct topology *topology, uint32_t gpu_id);
const struct topology_node *topology_find_actual(const struct topology *topology, uint32_t id);
const struct topology_node *topology_find_minor(const struct topology *topology, uint32_t minor);
const struct topology_node *topology_find_node(const struct topology *topology, uint32_t node_id);
/* @position: below TOPOLOGY_ENTRIES_MAX. Ignored nodes leave gaps. */
const struct topology_node *topology_find_listed(const struct topology *topology,
						 uint32_t position);
size_t topology_count_gpus(const struct topology *topology);

/* Whether GPUs of this generation can be partitions of a PCI device. */
bool topology_has_partitions(const struct topology_node *gpu);
/* The number of the partition in its PCI device, 0 for other generations. */
uint32_t topology_partition(const struct topology_node *gpu);
/* A number that GPUs have in common if, and only if, they are partitions of one PCI device. Such
 * GPUs share mmap offsets. */
uint64_t topology_pci_device(const struct topology_node *gpu);
/* Whether the GPUs of the PCI device have more XCCs than @gpu: its modes DPX, QPX and CPX. The
 * device cgroup may hide the others. */
bool topology_is_partition(const struct topology *topology, const struct topology_node *gpu);

/* Builds the message of a node; free it with kfd_device_entry__free_unpacked(). The message has
 * only those links that lead to a node of @topology. NULL: no memory. */
KfdDeviceEntry *topology_entry_new(const struct topology *topology,
				   const struct topology_node *node);

/* Appends the nodes of messages. */
int topology_entries_read(KfdDeviceEntry *const *entries, size_t count, struct topology *topology);

#endif
