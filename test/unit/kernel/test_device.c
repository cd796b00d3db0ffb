// SPDX-License-Identifier: GPL-2.0-only
/* Conversion of topology nodes to messages and back. */
#include "host.h"

#include "amdgpu_plugin_topology.h"
#include "wire.h"

/* Images of CRIU's own plugin have fields 1 to 31 and links, and no fields from 1000 up. */
#define OLD_FIELDS 31

/* A GPU with a different value in each field, and large values in 64-bit fields. */
static void fill_gpu(struct topology_node *node)
{
	uint32_t next = 0x80000001;

	node->node_id = 3;
	node->gpu_id = 0xbeef;
	node->actual_gpu_id = 0xcafe;
	node->vram_size = 0xfedcba9876543210;
	node->vram_public = 1;
#define FILL(name, type) node->name = (type)next++ * (sizeof(type) == 8 ? 0x100000001 : 1);
	TOPOLOGY_PROPERTIES(FILL, FILL)
#undef FILL
}

static void add_links(struct topology_node *node, const struct topology_link *links, size_t count)
{
	node->links = calloc(count, sizeof(*links));
	assert_non_null(node->links);
	memcpy(node->links, links, count * sizeof(*links));
	node->num_links = count;
}

/* CPU node 0, and a GPU with links to the CPU and to a missing node. */
static void make_machine(struct topology *topology)
{
	static const struct topology_link links[] = {
		{ LINK_PCIE, 0, 20 },
		{ LINK_XGMI, 9, 15 },
		{ LINK_XGMI, 0, 13 },
	};
	struct topology_node *node = topology_add(topology);

	node->cpu_cores_count = 64;
	node = topology_add(topology);
	fill_gpu(node);
	add_links(node, links, ARRAY_SIZE(links));
}

static void assert_same_node(const struct topology_node *a, const struct topology_node *b)
{
	assert_int_equal(a->node_id, b->node_id);
	assert_int_equal(a->gpu_id, b->gpu_id);
	assert_int_equal(a->actual_gpu_id, b->actual_gpu_id);
	assert_int_equal(a->vram_size, b->vram_size);
	assert_int_equal(a->vram_public, b->vram_public);
#define SAME(name, type) assert_int_equal(a->name, b->name);
	TOPOLOGY_PROPERTIES(SAME, SAME)
#undef SAME
}

static uint8_t *pack(const KfdDeviceEntry *entry, size_t *ret_size)
{
	uint8_t *bytes = malloc(kfd_device_entry__get_packed_size(entry));

	assert_non_null(bytes);
	*ret_size = kfd_device_entry__pack(entry, bytes);
	return bytes;
}

UNIT_TEST(a_message_restores_all_fields_of_a_node)
{
	_cleanup_(topology_done) struct topology topology = { 0 }, read = { 0 };
	KfdDeviceEntry *entry, *unpacked;
	_cleanup_free_ uint8_t *bytes = NULL;
	size_t size;

	make_machine(&topology);
	entry = topology_entry_new(&topology, &topology.nodes[1]);
	assert_non_null(entry);
	bytes = pack(entry, &size);
	kfd_device_entry__free_unpacked(entry, NULL);
	unpacked = kfd_device_entry__unpack(NULL, size, bytes);
	assert_non_null(unpacked);
	assert_int_equal(topology_entries_read(&unpacked, 1, &read), 0);
	kfd_device_entry__free_unpacked(unpacked, NULL);

	assert_int_equal(read.num_nodes, 1);
	assert_same_node(&read.nodes[0], &topology.nodes[1]);
}

UNIT_TEST(only_links_to_known_nodes_are_saved)
{
	_cleanup_(topology_done) struct topology topology = { 0 }, read = { 0 };
	KfdDeviceEntry *entry;

	make_machine(&topology);
	entry = topology_entry_new(&topology, &topology.nodes[1]);
	assert_int_equal(topology_entries_read(&entry, 1, &read), 0);
	kfd_device_entry__free_unpacked(entry, NULL);
	assert_int_equal(read.nodes[0].num_links, 2);
	assert_int_equal(read.nodes[0].links[0].type, LINK_PCIE);
	assert_int_equal(read.nodes[0].links[0].node_to, 0);
	assert_int_equal(read.nodes[0].links[0].weight, 20);
	assert_int_equal(read.nodes[0].links[1].type, LINK_XGMI);
	assert_int_equal(read.nodes[0].links[1].weight, 13);
}

/* The field numbers of CRIU's own plugin. */
static const struct {
	unsigned int number;
	size_t offset;
} fields[] = {
#define ROW(number, name)                                    \
	{                                                    \
		number, offsetof(struct topology_node, name) \
	}
	ROW(1, node_id),
	ROW(2, gpu_id),
	ROW(3, cpu_cores_count),
	ROW(4, simd_count),
	ROW(5, mem_banks_count),
	ROW(6, caches_count),
	ROW(7, io_links_count),
	ROW(8, max_waves_per_simd),
	ROW(9, lds_size_in_kb),
	ROW(10, gds_size_in_kb),
	ROW(11, num_gws),
	ROW(12, wave_front_size),
	ROW(13, array_count),
	ROW(14, simd_arrays_per_engine),
	ROW(15, cu_per_simd_array),
	ROW(16, simd_per_cu),
	ROW(17, max_slots_scratch_cu),
	ROW(18, vendor_id),
	ROW(19, device_id),
	ROW(20, domain),
	ROW(21, drm_render_minor),
	ROW(23, num_sdma_engines),
	ROW(24, num_sdma_xgmi_engines),
	ROW(25, num_sdma_queues_per_engine),
	ROW(26, num_cp_queues),
	ROW(27, fw_version),
	ROW(28, capability),
	ROW(29, sdma_fw_version),
	ROW(30, vram_public),
#undef ROW
};

UNIT_TEST(fields_have_the_numbers_of_crius_plugin)
{
	_cleanup_(topology_done) struct topology topology = { 0 };
	KfdDeviceEntry *entry;
	const uint8_t *at = NULL;
	_cleanup_free_ uint8_t *bytes = NULL;
	uint64_t value = 0;
	size_t size;

	make_machine(&topology);
	entry = topology_entry_new(&topology, &topology.nodes[1]);
	bytes = pack(entry, &size);
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
		const char *field = (const char *)&topology.nodes[1] + fields[i].offset;

		print_message("case field %u\n", fields[i].number);
		assert_true(wire_find(bytes, size, fields[i].number, 0, &value, &at));
		assert_int_equal(value, *(const uint32_t *)(const void *)field);
	}
	assert_true(wire_find(bytes, size, 22, 0, &value, &at));
	assert_int_equal(value, topology.nodes[1].hive_id);
	assert_true(wire_find(bytes, size, 31, 0, &value, &at));
	assert_int_equal(value, topology.nodes[1].vram_size);
	assert_true(wire_find(bytes, size, 32, 1, &value, &at));
	assert_true(wire_has_up_to(at, value, 2));
	kfd_device_entry__free_unpacked(entry, NULL);
}

UNIT_TEST(missing_fields_of_crius_images_are_zero)
{
	struct wire wire = { 0 }, link = { 0 };
	_cleanup_(topology_done) struct topology read = { 0 };
	const struct topology_node *node;
	KfdDeviceEntry *entry;

	for (unsigned int field = 1; field <= OLD_FIELDS; field++)
		wire_number(&wire, field, 1000 + field);
	wire_number(&link, 1, LINK_XGMI);
	wire_number(&link, 2, 7);
	wire_bytes(&wire, 32, link.bytes, link.size);
	entry = kfd_device_entry__unpack(NULL, wire.size, wire.bytes);
	assert_non_null(entry);
	assert_int_equal(topology_entries_read(&entry, 1, &read), 0);
	kfd_device_entry__free_unpacked(entry, NULL);

	node = &read.nodes[0];
	assert_int_equal(node->node_id, 1001);
	assert_int_equal(node->gpu_id, 1002);
	assert_int_equal(node->vram_size, 1031);
	/* The image was not dumped after a restore, so both ids are equal. */
	assert_int_equal(node->actual_gpu_id, 1002);
#define OLD(name, type) assert_in_range(node->name, 1000, 1000 + OLD_FIELDS);
#define NEW(name, type) assert_int_equal(node->name, 0);
	TOPOLOGY_PROPERTIES(OLD, NEW)
#undef OLD
#undef NEW
	assert_int_equal(node->num_links, 1);
	assert_int_equal(node->links[0].type, LINK_XGMI);
	assert_int_equal(node->links[0].node_to, 7);
	assert_int_equal(node->links[0].weight, 0);
}
