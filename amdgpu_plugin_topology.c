// SPDX-License-Identifier: GPL-2.0-only
/* Reads the topology of a machine from sysfs or from an image. map_decide() maps the GPUs of one
 * topology to those of another. */
#include "amdgpu_plugin_topology.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "amdgpu_plugin_util.h"
#include "criu/log.h"

/* Larger than any file of a node. */
#define NODE_FILE_MAX 65536

#define KEY_IS_LOCATION (1ULL << 63)
/* location_id: bus, device and function. The driver stores the number of a partition in the
 * function's bits (kfd_topology.c). AMD's drivers of 2024 stored it above the location. Only MI300
 * and newer GPUs of gfx9 have partitions. In a virtual machine, functions of one slot may be
 * different GPUs. */
#define LOCATION_BITS       0xffffu
#define FUNCTION_BITS       7u
#define OLD_PARTITION_SHIFT 28

/* A table ends with a row without name. */
struct property {
	const char *name;
	size_t offset;
	size_t size;
};

static const struct property node_properties[] = {
#define PROPERTY(field, type) { #field, offsetof(struct topology_node, field), sizeof(type) },
	TOPOLOGY_PROPERTIES(PROPERTY, PROPERTY)
#undef PROPERTY
		{ 0 },
};

static const struct property link_properties[] = {
	{ "type", offsetof(struct topology_link, type), sizeof(uint32_t) },
	{ "node_to", offsetof(struct topology_link, node_to), sizeof(uint32_t) },
	{ "weight", offsetof(struct topology_link, weight), sizeof(uint32_t) },
	{ 0 },
};

struct memory_bank {
	uint32_t heap_type;
	uint64_t size_in_bytes;
};

static const struct property bank_properties[] = {
	{ "heap_type", offsetof(struct memory_bank, heap_type), sizeof(uint32_t) },
	{ "size_in_bytes", offsetof(struct memory_bank, size_in_bytes), sizeof(uint64_t) },
	{ 0 },
};

enum heap_type {
	HEAP_VRAM_PUBLIC = 1,
	HEAP_VRAM_PRIVATE = 2,
};

struct reader {
	int dir;
	/* The contents of the last file. */
	char *text;
	/* The error in the last file, with its name and line. */
	char problem[256];
};

static int fail(struct reader *reader, int ret, const char *path, const char *problem)
{
	(void)snprintf(reader->problem, sizeof(reader->problem), "%s: %s", path, problem);
	return ret;
}

/* Quotes the beginning of @line, which may contain any bytes. */
static int fail_line(struct reader *reader, const char *path, unsigned int number, const char *line,
		     const char *problem)
{
	char shown[40];
	size_t i;

	for (i = 0; i < sizeof(shown) - 1 && line[i]; i++)
		shown[i] = (char)(line[i] >= ' ' && line[i] <= '~' ? line[i] : '?');
	shown[i] = '\0';
	(void)snprintf(reader->problem, sizeof(reader->problem), "%s:%u: \"%s\"%s", path, number,
		       shown, problem);
	return -EINVAL;
}

/* Reads file @path into reader->text. O_NONBLOCK keeps a FIFO from blocking. */
static int read_text(struct reader *reader, const char *path)
{
	_cleanup_close_ int fd = fd_open_at(reader->dir, path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	size_t length = 0;
	int ret;

	if (fd < 0)
		return fail(reader, fd, path, strerror(-fd));
	ret = read_short(fd, reader->text, NODE_FILE_MAX, &length);
	if (ret == -E2BIG)
		return fail(reader, -EINVAL, path, "too long");
	if (ret < 0)
		return fail(reader, ret, path, strerror(-ret));
	/* tar fills up the files of sysfs, which are shorter than their size, with zeros. */
	while (length && !reader->text[length - 1])
		length--;
	if (strlen(reader->text) != length)
		return fail(reader, -EINVAL, path, "contains zero bytes");
	return 0;
}

static void store(const struct property *property, void *object, uint64_t value)
{
	char *field = (char *)object + property->offset;

	if (property->size == sizeof(uint64_t))
		memcpy(field, &value, sizeof(value));
	else
		memcpy(field, &(uint32_t){ (uint32_t)value }, sizeof(uint32_t));
}

/* Parses a line "name number", and ignores names that are not in the table. Returns an error text,
 * or NULL. */
static const char *parse_line(const char *line, const struct property *table, void *object)
{
	const char *number = strchr(line, ' ');
	size_t name_length;
	unsigned long long value;
	char *end;

	if (!number || number == line || number[1] < '0' || number[1] > '9')
		return ": expected \"name number\"";
	name_length = (size_t)(number - line);
	errno = 0;
	value = strtoull(number + 1, &end, 10);
	if (*end)
		return ": expected \"name number\"";
	if (errno)
		return ": the number is too large";

	for (const struct property *row = table; row->name; row++) {
		if (strncmp(row->name, line, name_length) || row->name[name_length])
			continue;
		if (row->size == sizeof(uint32_t) && value > UINT32_MAX)
			return ": the number is too large";
		store(row, object, value);
	}
	return NULL;
}

static int parse_file(struct reader *reader, const char *path, const struct property *table,
		      void *object)
{
	unsigned int number = 0;
	char *line, *rest;
	int ret;

	ret = read_text(reader, path);
	if (ret < 0)
		return ret;
	rest = reader->text;
	while ((line = strsep(&rest, "\n"))) {
		const char *problem;

		number++;
		if (!*line)
			continue;
		problem = parse_line(line, table, object);
		if (problem)
			return fail_line(reader, path, number, line, problem);
	}
	return 0;
}

/* Accepts numbers as the kernel writes them: only digits, without leading zeros. */
static bool parse_number(const char *name, uint32_t *ret_number)
{
	size_t digits = strspn(name, "0123456789");
	unsigned long long number;

	if (!digits || digits > 10 || name[digits] || (digits > 1 && name[0] == '0'))
		return false;
	number = strtoull(name, NULL, 10);
	*ret_number = (uint32_t)number;
	return number <= UINT32_MAX;
}

struct numbers {
	uint32_t values[TOPOLOGY_ENTRIES_MAX];
	size_t count;
};

/* Lists the numeric names in directory @path in the kernel's order. A missing
 * directory is empty. */
static int list_unsorted(struct reader *reader, const char *path, struct numbers *ret_numbers)
{
	int error;
	_cleanup_closedir_ DIR *stream = dir_open_at(reader->dir, path, &error);
	struct dirent *entry = NULL;

	ret_numbers->count = 0;
	if (error == -ENOENT)
		return 0;
	while (stream && (entry = next_entry(stream, &error)) &&
	       ret_numbers->count < TOPOLOGY_ENTRIES_MAX) {
		if (parse_number(entry->d_name, &ret_numbers->values[ret_numbers->count]))
			ret_numbers->count++;
	}
	if (error < 0)
		return fail(reader, error, path, strerror(-error));
	if (entry)
		return fail(reader, -E2BIG, path, "too many entries");
	return 0;
}

/* Lists the numeric names in directory @path in ascending order. */
static int list_numbers(struct reader *reader, const char *path, struct numbers *ret_numbers)
{
	int ret = list_unsorted(reader, path, ret_numbers);

	if (!ret && ret_numbers->count)
		qsort(ret_numbers->values, ret_numbers->count, sizeof(uint32_t), compare_u32);
	return ret;
}

static int read_vram(struct reader *reader, struct topology_node *node)
{
	struct numbers banks;
	char path[64];
	int ret;

	(void)snprintf(path, sizeof(path), "nodes/%u/mem_banks", node->node_id);
	ret = list_numbers(reader, path, &banks);
	for (size_t i = 0; !ret && i < banks.count; i++) {
		struct memory_bank bank = { 0 };

		(void)snprintf(path, sizeof(path), "nodes/%u/mem_banks/%u/properties",
			       node->node_id, banks.values[i]);
		ret = parse_file(reader, path, bank_properties, &bank);
		if (ret < 0 || !bank.size_in_bytes)
			continue;
		if (bank.heap_type != HEAP_VRAM_PUBLIC && bank.heap_type != HEAP_VRAM_PRIVATE)
			continue;
		node->vram_size = bank.size_in_bytes;
		node->vram_public = bank.heap_type == HEAP_VRAM_PUBLIC;
	}
	return ret;
}

static int read_links(struct reader *reader, struct topology_node *node)
{
	struct numbers links;
	char path[64];
	int ret;

	(void)snprintf(path, sizeof(path), "nodes/%u/io_links", node->node_id);
	ret = list_numbers(reader, path, &links);
	if (ret < 0 || !links.count)
		return ret;
	node->links = calloc(links.count, sizeof(*node->links));
	if (!node->links)
		return -ENOMEM;
	for (size_t i = 0; !ret && i < links.count; i++) {
		(void)snprintf(path, sizeof(path), "nodes/%u/io_links/%u/properties", node->node_id,
			       links.values[i]);
		ret = parse_file(reader, path, link_properties, &node->links[i]);
	}
	node->num_links = ret < 0 ? 0 : links.count;
	return ret;
}

static int read_gpu_id(struct reader *reader, uint32_t node_id, uint32_t *ret_gpu_id)
{
	char path[64], *line;
	int ret;

	(void)snprintf(path, sizeof(path), "nodes/%u/gpu_id", node_id);
	ret = read_text(reader, path);
	if (ret < 0)
		return ret;
	line = reader->text;
	line[strcspn(line, "\n")] = '\0';
	if (parse_number(line, ret_gpu_id))
		return 0;
	return fail_line(reader, path, 1, line, ": not a gpu_id");
}

/* Why the plugin cannot use a node, or NULL. */
static const char *why_unusable(const struct topology_node *node)
{
	if (!node->gpu_id && !node->cpu_cores_count)
		return node->simd_count ? "the driver has not initialised it"
					: "it has no CPUs and no GPU";
	if (node->gpu_id && !node->vram_size)
		return "it has no VRAM bank";
	return NULL;
}

static int read_node(struct reader *reader, struct topology_node *node)
{
	char path[64];
	int ret;

	(void)snprintf(path, sizeof(path), "nodes/%u/properties", node->node_id);
	ret = parse_file(reader, path, node_properties, node);
	if (ret < 0)
		return ret;
	node->actual_gpu_id = node->gpu_id;
	node->location_id = (node->location_id & LOCATION_BITS) |
			    (node->location_id >> OLD_PARTITION_SHIFT & FUNCTION_BITS);
	ret = node->gpu_id ? read_vram(reader, node) : 0;
	if (!ret)
		ret = read_links(reader, node);
	/* The plugin does not use the links of CPUs: those of a GPU show where it is attached. */
	if (ret < 0 && ret != -ENOMEM && !node->gpu_id) {
		log_warn("topology: ignoring the links of CPU node %u: %s", node->node_id,
			 reader->problem);
		ret = 0;
	}
	return ret;
}

static void remove_last_node(struct topology *topology)
{
	topology->num_nodes--;
	free(topology->nodes[topology->num_nodes].links);
}

static int add_from_sysfs(struct reader *reader, uint32_t node_id, uint32_t listed,
			  struct topology *topology)
{
	struct topology_node *node;
	const char *reason;
	uint32_t gpu_id = 0;
	int ret;

	ret = read_gpu_id(reader, node_id, &gpu_id);
	if (ret == -EINVAL)
		log_warn("topology: ignoring node %u: %s", node_id, reader->problem);
	else if (ret < 0)
		log_debug("topology: ignoring node %u, which is hidden or unreadable: %s", node_id,
			  reader->problem);
	if (ret < 0)
		return 0;
	node = topology_add(topology);
	if (!node)
		return -ENOMEM;
	node->node_id = node_id;
	node->gpu_id = gpu_id;
	node->listed = listed;
	ret = read_node(reader, node);
	if (ret == -ENOMEM)
		return ret;
	reason = ret < 0 ? reader->problem : why_unusable(node);
	if (!reason)
		return 0;
	if (gpu_id)
		log_warn("topology: ignoring node %u (GPU 0x%04x): %s", node_id, gpu_id, reason);
	else
		log_warn("topology: ignoring node %u: %s", node_id, reason);
	remove_last_node(topology);
	return 0;
}

static int read_nodes(struct reader *reader, struct topology *topology)
{
	struct numbers listed;
	int ret;

	ret = list_unsorted(reader, "nodes", &listed);
	if (ret < 0) {
		log_warn("topology: %s", reader->problem);
		return ret;
	}
	for (uint32_t i = 0; !ret && i < listed.count; i++)
		ret = add_from_sysfs(reader, listed.values[i], i, topology);
	/* A node begins with its node_id. */
	if (topology->num_nodes)
		qsort(topology->nodes, topology->num_nodes, sizeof(*topology->nodes), compare_u32);
	return ret;
}

int topology_read(const char *root, struct topology *ret_topology)
{
	_cleanup_(topology_done) struct topology topology = { 0 };
	_cleanup_free_ char *text = malloc(NODE_FILE_MAX);
	_cleanup_close_ int dir = -1;
	struct reader reader;
	int ret;

	if (!text)
		return -ENOMEM;
	dir = fd_open(root, O_RDONLY | O_DIRECTORY);
	if (dir < 0)
		return dir;
	reader = (struct reader){ .dir = dir, .text = text };
	ret = read_nodes(&reader, &topology);
	if (ret < 0)
		return ret;

	*ret_topology = take_struct(topology);
	return 0;
}

void topology_done(struct topology *topology)
{
	for (size_t i = 0; i < topology->num_nodes; i++)
		free(topology->nodes[i].links);
	free(topology->nodes);
	*topology = (struct topology){ 0 };
}

struct topology_node *topology_add(struct topology *topology)
{
	static const struct topology_node empty;

	if (array_append(&topology->nodes, &topology->num_nodes, sizeof(empty), &empty) < 0)
		return NULL;
	return &topology->nodes[topology->num_nodes - 1];
}

#define DEFINE_FIND(name, field, valid)                                                \
	const struct topology_node *name(const struct topology *topology, uint32_t id) \
	{                                                                              \
		for (size_t i = 0; i < topology->num_nodes; i++) {                     \
			const struct topology_node *node = &topology->nodes[i];        \
                                                                                       \
			if (node->field == id && (valid))                              \
				return node;                                           \
		}                                                                      \
		return NULL;                                                           \
	}

DEFINE_FIND(topology_find_gpu, gpu_id, id != 0)
DEFINE_FIND(topology_find_actual, actual_gpu_id, id != 0)
DEFINE_FIND(topology_find_minor, drm_render_minor, node->gpu_id != 0)
DEFINE_FIND(topology_find_node, node_id, true)
DEFINE_FIND(topology_find_listed, listed, true)

size_t topology_count_gpus(const struct topology *topology)
{
	size_t count = 0;

	for (size_t i = 0; i < topology->num_nodes; i++)
		count += topology->nodes[i].gpu_id != 0;
	return count;
}

bool topology_has_partitions(const struct topology_node *gpu)
{
	return gpu->gfx_target_version >= TOPOLOGY_GFX940 &&
	       gpu->gfx_target_version < TOPOLOGY_GFX10;
}

uint32_t topology_partition(const struct topology_node *gpu)
{
	return topology_has_partitions(gpu) ? gpu->location_id & FUNCTION_BITS : 0;
}

/* A kernel that reports no location has no partitions. */
uint64_t topology_pci_device(const struct topology_node *gpu)
{
	if (!gpu->location_id)
		return gpu->drm_render_minor;
	return KEY_IS_LOCATION | (uint64_t)gpu->domain << 32 |
	       (gpu->location_id ^ topology_partition(gpu));
}

bool topology_is_partition(const struct topology *topology, const struct topology_node *gpu)
{
	const uint64_t device = topology_pci_device(gpu);
	uint64_t num_xcc = 0;

	for (size_t i = 0; i < topology->num_nodes; i++) {
		const struct topology_node *node = &topology->nodes[i];

		if (node->gpu_id && topology_pci_device(node) == device)
			num_xcc += node->num_xcc;
	}
	return num_xcc > gpu->num_xcc;
}

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

KfdDeviceEntry *topology_entry_new(const struct topology *topology,
				   const struct topology_node *node)
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

static int read_entry(const KfdDeviceEntry *entry, struct topology *topology)
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
	/* A missing optional field reads as 0, like a missing property. */
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

int topology_entries_read(KfdDeviceEntry *const *entries, size_t count, struct topology *topology)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < count; i++)
		ret = read_entry(entries[i], topology);
	return ret;
}
