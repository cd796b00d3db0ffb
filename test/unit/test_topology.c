// SPDX-License-Identifier: GPL-2.0-only
/* Reads topology directories: those of whole machines, captures, and invalid ones. */
#include "host.h"

#include <dirent.h>

#include "amdgpu_plugin_topology.h"

/* What a test reads. */
static struct topology topology;

static int end(void **state)
{
	topology_done(&topology);
	return unit_end(state);
}

#define TEST(name) TEST_WITH(name, unit_begin, end)

/* A path for unit_print(). */
#define BELOW(...) (unit_path(__VA_ARGS__) + strlen(unit_directory()) + 1)

static void write_cpu(unsigned int node)
{
	unit_print(BELOW("nodes/%u/gpu_id", node), "0\n");
	unit_print(BELOW("nodes/%u/properties", node), "cpu_cores_count 16\nsimd_count 0\n");
}

static void write_bank(unsigned int node, unsigned int bank, unsigned int heap, uint64_t size)
{
	unit_print(BELOW("nodes/%u/mem_banks/%u/properties", node, bank),
		   "heap_type %u\nsize_in_bytes %llu\nflags 0\nwidth 4096\n", heap,
		   (unsigned long long)size);
}

static void write_link(unsigned int node, unsigned int link, unsigned int type, unsigned int to,
		       unsigned int weight)
{
	unit_print(BELOW("nodes/%u/io_links/%u/properties", node, link),
		   "type %u\nversion_major 0\nnode_from %u\nnode_to %u\nweight %u\nflags 1\n", type,
		   node, to, weight);
}

/* A valid GPU. */
static void write_gpu(unsigned int node, unsigned int gpu_id)
{
	unit_print(BELOW("nodes/%u/gpu_id", node), "%u\n", gpu_id);
	unit_print(BELOW("nodes/%u/properties", node),
		   "cpu_cores_count 0\nsimd_count 416\ndrm_render_minor %u\n", 128 + node);
	write_bank(node, 0, 2, 1ULL << 30);
	write_link(node, 0, LINK_PCIE, 0, 20);
}

static void read_machine(void)
{
	topology_done(&topology);
	assert_int_equal(topology_read(unit_path("."), &topology), 0);
}

/* Reads a machine with CPU node 0, valid GPU 0x11 on node 1 and an invalid node 2. The topology
 * must lack node 2, and the log must name it. */
static void assert_node_2_is_ignored(void)
{
	read_machine();
	assert_int_equal(topology.num_nodes, 2);
	assert_non_null(topology_find_gpu(&topology, 0x11));
	assert_null(topology_find_node(&topology, 2));
	assert_logged("amdgpu_plugin", "node 2");
}

static void write_cpu_and_two_gpus(void)
{
	write_cpu(0);
	write_gpu(1, 0x11);
	write_gpu(2, 0x22);
}

TEST(a_machine_without_kfd_has_no_topology)
{
	struct topology old = { .num_nodes = 42 };

	assert_int_equal(topology_read(unit_path("missing"), &old), -ENOENT);
	assert_int_equal(old.num_nodes, 42);
}

TEST(a_topology_without_nodes_is_empty)
{
	read_machine();
	assert_int_equal(topology.num_nodes, 0);
	assert_int_equal(topology_count_gpus(&topology), 0);
}

/* Ignored nodes have positions, too. */
TEST(nodes_are_sorted_and_have_their_position_in_the_listing)
{
	struct dirent *entry;
	uint32_t position = 0;
	DIR *stream;

	write_cpu(12);
	write_gpu(3, 0x33);
	write_cpu(0);
	unit_print("nodes/7/gpu_id", "damaged");
	write_gpu(10, 0x10);
	read_machine();
	assert_int_equal(topology.num_nodes, 4);
	for (size_t i = 1; i < topology.num_nodes; i++)
		assert_true(topology.nodes[i - 1].node_id < topology.nodes[i].node_id);
	stream = opendir(unit_path("nodes"));
	assert_non_null(stream);
	while ((entry = readdir(stream))) {
		uint32_t node_id = (uint32_t)strtoul(entry->d_name, NULL, 10);

		if (entry->d_name[0] == '.')
			continue;
		assert_ptr_equal(topology_find_listed(&topology, position),
				 topology_find_node(&topology, node_id));
		position++;
	}
	(void)closedir(stream);
	assert_int_equal(position, 5);
}

/* Each property has a value of its own, so that the test notices a field with the wrong value. */
#define VALUE_OF(name)                                               \
	((uint32_t)(strlen(#name) * 1000 + (unsigned char)#name[0] + \
		    (unsigned char)#name[sizeof(#name) - 3]))

TEST(each_property_is_read_by_its_name)
{
	const struct topology_node *node;
	char text[4096];
	size_t used = 0;

	write_cpu(0);
	write_gpu(1, 0x11);
#define PRINT(name, type)                                                                          \
	used += (size_t)snprintf(text + used, sizeof(text) - used, #name " %u\n", VALUE_OF(name)); \
	used += (size_t)snprintf(text + used, sizeof(text) - used, "x" #name " 7\n");
	TOPOLOGY_PROPERTIES(PRINT, PRINT)
#undef PRINT
	unit_print("nodes/1/properties", "%s", text);
	read_machine();
	node = topology_find_gpu(&topology, 0x11);
	assert_non_null(node);
#define CHECK(name, type) assert_int_equal(node->name, VALUE_OF(name));
	TOPOLOGY_PROPERTIES(CHECK, CHECK)
#undef CHECK
	assert_int_equal(node->actual_gpu_id, 0x11);
}

TEST(large_values_keep_all_bits)
{
	write_gpu(1, 0x11);
	write_bank(1, 0, 1, 0xffffffffff000ULL);
	unit_print("nodes/1/properties",
		   "unique_id 18446744073709551615\nhive_id 9223372036854775808\n"
		   "capability 4294967295\n");
	read_machine();
	assert_true(topology.nodes[0].unique_id == UINT64_MAX);
	assert_true(topology.nodes[0].hive_id == 1ULL << 63);
	assert_int_equal(topology.nodes[0].capability, UINT32_MAX);
	assert_true(topology.nodes[0].vram_size == 0xffffffffff000ULL);
}

TEST(missing_properties_are_0_and_unknown_ones_are_ignored)
{
	write_gpu(1, 0x11);
	unit_print("nodes/1/properties", "simd_count 8\nfrom_the_future 99999999999\n");
	read_machine();
	assert_int_equal(topology.num_nodes, 1);
	assert_int_equal(topology.nodes[0].simd_count, 8);
	assert_int_equal(topology.nodes[0].num_xcc, 0);
	assert_int_equal(topology.nodes[0].num_gws, 0);
}

TEST(only_numeric_names_are_nodes)
{
	write_gpu(1, 0x11);
	unit_print("nodes/readme", "hello\n");
	unit_print("nodes/2x/gpu_id", "5\n");
	unit_print("nodes/-1/gpu_id", "5\n");
	unit_print("nodes/99999999999999999999/gpu_id", "5\n");
	read_machine();
	assert_int_equal(topology.num_nodes, 1);
}

/* A device cgroup fails the read of gpu_id. A read of a directory fails on any file system. */
TEST(a_hidden_gpu_is_ignored)
{
	write_cpu_and_two_gpus();
	write_link(1, 1, LINK_XGMI, 2, 15);
	assert_int_equal(remove(unit_path("nodes/2/gpu_id")), 0);
	assert_int_equal(mkdir(unit_path("nodes/2/gpu_id"), 0755), 0);
	assert_node_2_is_ignored();

	/* Links to the GPU remain, as in the kernel. */
	read_machine();
	assert_int_equal(topology_find_gpu(&topology, 0x11)->num_links, 2);
}

TEST(a_gpu_that_is_not_initialised_is_ignored)
{
	write_cpu_and_two_gpus();
	unit_print("nodes/2/gpu_id", "0\n");
	unit_print("nodes/2/properties", "cpu_cores_count 0\nsimd_count 256\n");
	assert_node_2_is_ignored();
}

TEST(a_gpu_without_vram_is_ignored)
{
	write_cpu_and_two_gpus();
	write_bank(2, 0, 0, 1 << 30);
	assert_node_2_is_ignored();
	assert_logged("node 2", "VRAM");
	write_bank(2, 0, 1, 0);
	assert_node_2_is_ignored();
	assert_int_equal(remove(unit_path("nodes/2/mem_banks/0/properties")), 0);
	assert_int_equal(remove(unit_path("nodes/2/mem_banks/0")), 0);
	assert_int_equal(remove(unit_path("nodes/2/mem_banks")), 0);
	assert_node_2_is_ignored();
}

TEST(the_vram_bank_is_found_among_others)
{
	write_gpu(1, 0x11);
	write_bank(1, 0, 4, 65536);
	write_bank(1, 1, 1, 123 << 20);
	write_bank(1, 2, 5, 1 << 30);
	read_machine();
	assert_int_equal(topology.nodes[0].vram_size, 123 << 20);
	assert_int_equal(topology.nodes[0].vram_public, 1);
}

TEST(a_node_with_a_file_that_does_not_parse_is_ignored)
{
	static const struct {
		const char *file, *text;
		/* What the log says of it, and the line that it names, where a case is about that.
		 */
		const char *problem, *line;
	} cases[] = {
		{ "properties", "simd_count 8\nsimd_per_cu four\n",
		  "\"simd_per_cu four\": expected \"name number\"", ":2" },
		{ "properties", "\n\nx\n", "\"x\"", ":3" },
		{ "properties", "simd_count 99999999999\n", "too large", ":1" },
		{ "properties", "a\xff\x1b[2J 5x\n", "\"a??[2J 5x\"", ":1" },
		{ "mem_banks/0/properties", "heap_type 1\nsize_in_bytes -\n", "\"size_in_bytes -\"",
		  ":2" },
		{ "io_links/0/properties", "type  2\n", "\"type  2\"", ":1" },
		{ "gpu_id", "none\n", "\"none\": not a gpu_id", ":1" },
		{ "properties", "simd_count\n", "", "" },
		{ "properties", "simd_count \n", "", "" },
		{ "properties", "simd_count many\n", "", "" },
		{ "properties", "simd_count -1\n", "", "" },
		{ "properties", "simd_count 1 2\n", "", "" },
		{ "properties", "simd_count 0x10\n", "", "" },
		{ "properties", " 5\n", "", "" },
		{ "properties", "simd_count 8\nsimd_per_cu", "", "" },
		{ "properties", "simd_count 4294967296\n", "", "" },
		{ "properties", "unique_id 18446744073709551616\n", "", "" },
		{ "properties", "unknown word\n", "", "" },
		{ "mem_banks/0/properties", "size_in_bytes lots\n", "", "" },
		{ "io_links/0/properties", "type pcie\n", "", "" },
		{ "gpu_id", "", "", "" },
		{ "gpu_id", "\n", "", "" },
		{ "gpu_id", "gpu\n", "", "" },
		{ "gpu_id", "12 13\n", "", "" },
		{ "gpu_id", "4294967296\n", "", "" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char path[128];

		print_message("case %s: %s\n", cases[i].file, cases[i].text);
		write_cpu_and_two_gpus();
		(void)snprintf(path, sizeof(path), "nodes/2/%s", cases[i].file);
		unit_print(path, "%s", cases[i].text);
		unit_forget_lines();
		assert_node_2_is_ignored();
		(void)strcat(path, cases[i].line);
		assert_logged("node 2", path, cases[i].problem);
	}
}

/* A device cgroup hides GPUs, which is no reason for a warning, and a gpu_id of garbage is. */
TEST(only_a_gpu_id_that_does_not_parse_is_a_warning)
{
	write_cpu_and_two_gpus();
	assert_int_equal(remove(unit_path("nodes/2/gpu_id")), 0);
	assert_node_2_is_ignored();
	assert_int_equal(unit_count_lines("Warn  (amdgpu_plugin): "), 0);
	unit_print("nodes/2/gpu_id", "34\r\n");
	read_machine();
	assert_int_equal(topology.num_nodes, 2);
	assert_logged("Warn  (amdgpu_plugin): ", "node 2", "nodes/2/gpu_id:1: \"34?\"");
}

/* tar writes as many bytes of a file of sysfs as its size, a page. */
TEST(zeros_after_the_end_of_a_file_are_accepted)
{
	static const char *const files[] = { "gpu_id", "properties", "mem_banks/0/properties",
					     "io_links/0/properties" };
	struct topology_node plain;

	write_cpu_and_two_gpus();
	read_machine();
	plain = topology.nodes[2];
	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		assert_int_equal(truncate(unit_path("nodes/2/%s", files[i]), 4096), 0);
	read_machine();
	assert_int_equal(topology.num_nodes, 3);
	assert_int_equal(topology.nodes[2].gpu_id, 0x22);
	assert_int_equal(topology.nodes[2].simd_count, plain.simd_count);
	assert_int_equal(topology.nodes[2].vram_size, plain.vram_size);
	assert_int_equal(topology.nodes[2].num_links, plain.num_links);
}

static const char *const breakages[] = {
	"missing", "a directory", "a FIFO", "a link to itself", "an endless device", "another file",
	"binary",  "a long line", "huge",
};

static void break_file(size_t how, const char *path)
{
	const size_t size = 4 << 20;
	_cleanup_free_ char *text = malloc(size);
	char full[512];

	(void)strcpy(full, unit_path("%s", path));
	assert_int_equal(remove(full), 0);
	assert_non_null(text);
	switch (how) {
	case 0:
		break;
	case 1:
		assert_int_equal(mkdir(full, 0755), 0);
		break;
	case 2:
		assert_int_equal(symlink(full, full), 0);
		break;
	case 3:
		assert_int_equal(symlink("/dev/zero", full), 0);
		break;
	case 4:
		assert_int_equal(symlink("/proc/self/maps", full), 0);
		break;
	case 5:
		unit_write(path, "simd_count 4\0\xff\xfe\n", 17);
		break;
	case 6:
		memset(text, '7', 60000);
		unit_write(path, text, 60000);
		break;
	default:
		for (size_t i = 0; i < size; i++)
			text[i] = "a_name 12345678\n"[i % 16];
		unit_write(path, text, size);
	}
}

static const char *const node_files[] = {
	"nodes/2/gpu_id",
	"nodes/2/properties",
	"nodes/2/mem_banks/0/properties",
	"nodes/2/io_links/0/properties",
};

TEST(a_node_with_a_broken_file_is_ignored)
{
	(void)alarm(240);
	for (size_t i = 0; i < ARRAY_SIZE(node_files) * ARRAY_SIZE(breakages); i++) {
		const char *path = node_files[i % ARRAY_SIZE(node_files)];
		size_t how = i / ARRAY_SIZE(node_files);

		print_message("case %s: %s\n", path, breakages[how]);
		write_cpu_and_two_gpus();
		break_file(how, path);
		unit_forget_lines();
		assert_node_2_is_ignored();
		(void)remove(unit_path("%s", path));
	}
	(void)alarm(0);
}

/* It is an empty file for a reader that does not wait. */
TEST(a_fifo_does_not_block)
{
	for (size_t i = 0; i < ARRAY_SIZE(node_files); i++) {
		char path[512];

		write_cpu_and_two_gpus();
		(void)strcpy(path, unit_path("%s", node_files[i]));
		assert_int_equal(remove(path), 0);
		assert_int_equal(mkfifo(path, 0644), 0);
		read_machine();
		assert_non_null(topology_find_gpu(&topology, 0x11));
		assert_int_equal(remove(path), 0);
	}
}

/* The links of the GPUs are enough. */
TEST(a_cpu_node_with_broken_links_is_kept)
{
	write_cpu_and_two_gpus();
	unit_print("nodes/0/io_links/0/properties", "broken\n");
	read_machine();
	assert_non_null(topology_find_node(&topology, 0));
	assert_int_equal(topology_find_node(&topology, 0)->num_links, 0);
	assert_logged("Warn  (amdgpu_plugin): ", "CPU node 0", "nodes/0/io_links/0/properties:1");
}

TEST(too_many_nodes_are_an_error)
{
	for (unsigned int i = 0; i < 1025; i++)
		unit_print(BELOW("nodes/%u/gpu_id", i), "0\n");
	assert_int_equal(topology_read(unit_path("."), &topology), -E2BIG);
	assert_logged("Warn  (amdgpu_plugin): ", "nodes", "too many");
}

TEST(a_failure_to_list_the_nodes_is_returned)
{
	unit_print("nodes", "no directory\n");
	assert_int_equal(topology_read(unit_path("."), &topology), -ENOTDIR);
	assert_logged("Warn  (amdgpu_plugin): ", "topology: nodes: Not a directory\n");
	assert_false(unit_logged("Error (amdgpu_plugin): ", NULL));
}

/* All properties are 0. */
TEST(an_empty_properties_file_is_a_node_without_properties)
{
	write_gpu(1, 0x11);
	unit_print("nodes/1/properties", "%s", "");
	read_machine();
	assert_int_equal(topology.num_nodes, 1);
	assert_int_equal(topology.nodes[0].simd_count, 0);
}

TEST(links_are_read_with_type_target_and_weight)
{
	const struct topology_node *node;
	write_cpu_and_two_gpus();
	write_link(1, 10, LINK_PCIE, 7, 40);
	write_link(1, 2, LINK_XGMI, 2, 15);
	unit_print("nodes/1/p2p_links/0/properties", "type 2\nnode_to 2\nweight 52\n");
	read_machine();
	node = topology_find_gpu(&topology, 0x11);
	assert_int_equal(node->num_links, 3);
	assert_int_equal(node->links[0].type, LINK_PCIE);
	assert_int_equal(node->links[0].node_to, 0);
	assert_int_equal(node->links[0].weight, 20);
	assert_int_equal(node->links[1].type, LINK_XGMI);
	assert_int_equal(node->links[1].node_to, 2);
	assert_int_equal(node->links[1].weight, 15);
	assert_int_equal(node->links[2].node_to, 7);
}

/* Linux stores the number of a partition in the bits of the function, AMD's drivers of 2024 in bits
 * 28 to 31. */
TEST(partitions_have_one_location_with_each_driver)
{
	static const struct {
		unsigned int property;
		uint32_t location;
	} cases[] = {
		{ 0x6300, 0x6300 },
		{ 0x6301, 0x6301 },
		{ 0x10006300, 0x6301 },
		{ 0x70006300, 0x6307 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		write_cpu(0);
		write_gpu(1, 0x11);
		unit_print("nodes/1/properties", "simd_count 416\nlocation_id %u\n",
			   cases[i].property);
		read_machine();
		assert_int_equal(topology.nodes[1].location_id, cases[i].location);
	}
}

TEST(a_memory_node_is_not_called_a_gpu)
{
	write_cpu(0);
	unit_print("nodes/1/gpu_id", "0\n");
	unit_print("nodes/1/properties", "mem_banks_count 1\n");
	read_machine();
	assert_int_equal(topology.num_nodes, 1);
	assert_logged("amdgpu_plugin", "ignoring node 1: it has no CPUs and no GPU");
}

TEST(lookups_find_nodes_by_each_id)
{
	struct topology_node *node;

	node = topology_add(&topology);
	node->cpu_cores_count = 4;
	for (uint32_t i = 1; i <= 2; i++) {
		node = topology_add(&topology);
		node->node_id = i;
		node->gpu_id = 0x100 + i;
		node->actual_gpu_id = 0x200 + i;
		node->drm_render_minor = 128 + i;
	}
	assert_int_equal(topology_find_gpu(&topology, 0x101)->node_id, 1);
	assert_int_equal(topology_find_actual(&topology, 0x202)->node_id, 2);
	assert_int_equal(topology_find_minor(&topology, 130)->node_id, 2);
	assert_int_equal(topology_find_node(&topology, 0)->cpu_cores_count, 4);
	assert_int_equal(topology_count_gpus(&topology), 2);
	assert_null(topology_find_gpu(&topology, 0));
	assert_null(topology_find_gpu(&topology, 0x201));
	assert_null(topology_find_actual(&topology, 0));
	assert_null(topology_find_minor(&topology, 0));
	assert_null(topology_find_node(&topology, 3));
}

TEST(captured_machines_are_read_completely)
{
	static const struct {
		const char *name;
		size_t cpus;
		size_t gpus;
		uint32_t first_gpu_id;
		uint32_t first_minor;
		size_t first_links;
	} machines[] = {
		{ "one", 1, 1, 1997, 128, 1 },
		{ "one-other", 1, 1, 44021, 130, 1 },
		{ "eight", 2, 8, 1997, 128, 4 },
		{ "eight-other", 2, 8, 40211, 137, 4 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(machines); i++) {
		const struct topology_node *node;
		char path[128];

		print_message("case %s\n", machines[i].name);
		(void)snprintf(path, sizeof(path), MACHINES "/%s", machines[i].name);
		topology_done(&topology);
		assert_int_equal(topology_read(path, &topology), 0);
		assert_int_equal(topology.num_nodes, machines[i].cpus + machines[i].gpus);
		assert_int_equal(topology_count_gpus(&topology), machines[i].gpus);
		node = &topology.nodes[machines[i].cpus];
		assert_int_equal(node->gpu_id, machines[i].first_gpu_id);
		assert_int_equal(node->drm_render_minor, machines[i].first_minor);
		assert_int_equal(node->num_links, machines[i].first_links);
		assert_int_equal(node->device_id, 0x740f);
		assert_true(node->vram_size == 68702699520);
	}
	assert_int_equal(unit_count_lines("left out"), 0);
}
