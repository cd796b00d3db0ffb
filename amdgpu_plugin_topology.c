// SPDX-License-Identifier: GPL-2.0-only
/* Reads a KFD topology directory into data. Which GPU may stand for which is the mapper's job. */
#include "amdgpu_plugin_topology.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "amdgpu_plugin_host.h"
#include "amdgpu_plugin_util.h"

/* Larger than any file of a node; what does not fit is no such file. */
#define NODE_FILE_MAX 65536

struct property {
	const char *name;
	size_t offset;
	size_t size;
};

static const struct property node_properties[] = {
#define PROPERTY(field, type) { #field, offsetof(struct topology_node, field), sizeof(type) },
	TOPOLOGY_PROPERTIES(PROPERTY, PROPERTY)
#undef PROPERTY
};

static const struct property link_properties[] = {
	{ "type", offsetof(struct topology_link, type), sizeof(uint32_t) },
	{ "node_to", offsetof(struct topology_link, node_to), sizeof(uint32_t) },
	{ "weight", offsetof(struct topology_link, weight), sizeof(uint32_t) },
};

struct memory_bank {
	uint32_t heap_type;
	uint64_t size_in_bytes;
};

static const struct property bank_properties[] = {
	{ "heap_type", offsetof(struct memory_bank, heap_type), sizeof(uint32_t) },
	{ "size_in_bytes", offsetof(struct memory_bank, size_in_bytes), sizeof(uint64_t) },
};

enum heap_type {
	HEAP_VRAM_PUBLIC = 1,
	HEAP_VRAM_PRIVATE = 2,
};

/* Reads file @path below @dir into @text, terminated. */
static int read_text(int dir, const char *path, char text[static NODE_FILE_MAX])
{
	_cleanup_close_ int fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
	size_t length = 0;
	ssize_t got;

	if (fd < 0)
		return -errno;
	do {
		got = read(fd, text + length, NODE_FILE_MAX - 1 - length);
		if (got < 0)
			return -errno;
		length += (size_t)got;
	} while (got > 0 && length < NODE_FILE_MAX - 1);
	text[length] = '\0';
	/* A file with a zero byte in it is not text. */
	return got > 0 || strlen(text) != length ? -EINVAL : 0;
}

static void store(const struct property *property, void *object, uint64_t value)
{
	char *field = (char *)object + property->offset;

	if (property->size == sizeof(uint64_t))
		memcpy(field, &value, sizeof(value));
	else
		memcpy(field, &(uint32_t){ (uint32_t)value }, sizeof(uint32_t));
}

/* One line "name number". Names not in the table are other kernels' and ignored. */
static int parse_line(char *line, const struct property *table, size_t rows, void *object)
{
	char *number = strchr(line, ' ');
	unsigned long long value;
	char *end;

	if (!number || number == line || number[1] < '0' || number[1] > '9')
		return -EINVAL;
	*number++ = '\0';
	errno = 0;
	value = strtoull(number, &end, 10);
	if (errno || *end)
		return -EINVAL;

	for (size_t i = 0; i < rows; i++) {
		if (strcmp(table[i].name, line))
			continue;
		if (table[i].size == sizeof(uint32_t) && value > UINT32_MAX)
			return -EINVAL;
		store(&table[i], object, value);
	}
	return 0;
}

static int parse_file(int dir, const char *path, const struct property *table, size_t rows,
		      void *object)
{
	_cleanup_free_ char *text = malloc(NODE_FILE_MAX);
	char *line, *rest;
	int ret;

	if (!text)
		return -ENOMEM;
	ret = read_text(dir, path, text);
	if (ret < 0)
		return ret;

	rest = text;
	while ((line = strsep(&rest, "\n"))) {
		if (!*line)
			continue;
		ret = parse_line(line, table, rows, object);
		if (ret < 0)
			return ret;
	}
	return 0;
}

static int compare_numbers(const void *left, const void *right)
{
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;

	return a < b ? -1 : a > b;
}

/* The numeric names in directory @path below @dir, ascending. A missing directory is empty. */
static int list_numbers(int dir, const char *path, uint32_t **ret_numbers, size_t *ret_count)
{
	_cleanup_free_ uint32_t *numbers = NULL;
	struct dirent *entry;
	size_t count = 0;
	DIR *stream;
	int fd;

	fd = openat(dir, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 && errno != ENOENT)
		return -errno;
	stream = fd < 0 ? NULL : fdopendir(fd);
	while (stream && (entry = readdir(stream))) {
		char *end;
		unsigned long number = strtoul(entry->d_name, &end, 10);
		uint32_t *grown;

		if (*end || end == entry->d_name || number > UINT32_MAX)
			continue;
		grown = realloc(numbers, (count + 1) * sizeof(*numbers));
		if (!grown) {
			(void)closedir(stream);
			return -ENOMEM;
		}
		numbers = grown;
		numbers[count++] = (uint32_t)number;
	}
	if (stream)
		(void)closedir(stream);
	if (count)
		qsort(numbers, count, sizeof(*numbers), compare_numbers);
	*ret_numbers = take_ptr(&numbers);
	*ret_count = count;
	return 0;
}

static int read_vram(int dir, struct topology_node *node)
{
	_cleanup_free_ uint32_t *numbers = NULL;
	char path[64];
	size_t count;
	int ret;

	snprintf(path, sizeof(path), "nodes/%u/mem_banks", node->node_id);
	ret = list_numbers(dir, path, &numbers, &count);
	for (size_t i = 0; !ret && i < count; i++) {
		struct memory_bank bank = { 0 };

		snprintf(path, sizeof(path), "nodes/%u/mem_banks/%u/properties", node->node_id,
			 numbers[i]);
		ret = parse_file(dir, path, bank_properties, ARRAY_SIZE(bank_properties), &bank);
		if (ret < 0 || !bank.size_in_bytes)
			continue;
		if (bank.heap_type != HEAP_VRAM_PUBLIC && bank.heap_type != HEAP_VRAM_PRIVATE)
			continue;
		node->vram_size = bank.size_in_bytes;
		node->vram_public = bank.heap_type == HEAP_VRAM_PUBLIC;
	}
	return ret;
}

static int read_links(int dir, struct topology_node *node)
{
	_cleanup_free_ uint32_t *numbers = NULL;
	char path[64];
	size_t count;
	int ret;

	snprintf(path, sizeof(path), "nodes/%u/io_links", node->node_id);
	ret = list_numbers(dir, path, &numbers, &count);
	if (ret < 0 || !count)
		return ret;

	node->links = calloc(count, sizeof(*node->links));
	if (!node->links)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		snprintf(path, sizeof(path), "nodes/%u/io_links/%u/properties", node->node_id,
			 numbers[i]);
		ret = parse_file(dir, path, link_properties, ARRAY_SIZE(link_properties),
				 &node->links[node->num_links++]);
		if (ret < 0)
			return ret;
	}
	return 0;
}

static int read_gpu_id(int dir, uint32_t node_id, uint32_t *ret_gpu_id)
{
	_cleanup_free_ char *text = malloc(NODE_FILE_MAX);
	char path[64], *end;
	unsigned long id;
	int ret;

	if (!text)
		return -ENOMEM;
	snprintf(path, sizeof(path), "nodes/%u/gpu_id", node_id);
	ret = read_text(dir, path, text);
	if (ret < 0)
		return ret;
	id = strtoul(text, &end, 10);
	if (end == text || (*end && *end != '\n') || id > UINT32_MAX)
		return -EINVAL;
	*ret_gpu_id = (uint32_t)id;
	return 0;
}

/* Why a node does not count, or NULL. */
static const char *unusable(const struct topology_node *node)
{
	if (!node->gpu_id && !node->cpu_cores_count)
		return "it was not initialised";
	if (node->gpu_id && !node->vram_size)
		return "it has no VRAM bank";
	return NULL;
}

static int read_node(int dir, struct topology_node *node)
{
	char path[64];
	int ret;

	snprintf(path, sizeof(path), "nodes/%u/properties", node->node_id);
	ret = parse_file(dir, path, node_properties, ARRAY_SIZE(node_properties), node);
	if (ret < 0)
		return ret;
	node->actual_gpu_id = node->gpu_id;
	ret = node->gpu_id ? read_vram(dir, node) : 0;
	return ret < 0 ? ret : read_links(dir, node);
}

/* Takes the node just added away again. */
static void drop_last(struct topology *topology)
{
	topology->num_nodes--;
	free(topology->nodes[topology->num_nodes].links);
}

static int add_from_sysfs(int dir, uint32_t node_id, struct topology *topology)
{
	struct topology_node *node;
	const char *reason;
	uint32_t gpu_id;
	int ret;

	ret = read_gpu_id(dir, node_id, &gpu_id);
	if (ret == -ENOMEM)
		return ret;
	if (ret < 0) {
		log_debug("topology: node %u is hidden or unreadable: %s", node_id, strerror(-ret));
		return 0;
	}
	node = topology_add(topology);
	if (!node)
		return -ENOMEM;
	node->node_id = node_id;
	node->gpu_id = gpu_id;
	ret = read_node(dir, node);
	if (ret == -ENOMEM)
		return ret;
	reason = ret < 0 ? strerror(-ret) : unusable(node);
	if (!reason)
		return 0;
	log_warn("topology: node %u (GPU 0x%04x) is left out: %s", node_id, gpu_id, reason);
	drop_last(topology);
	return 0;
}

int topology_read(const char *root, struct topology *ret_topology)
{
	_cleanup_(topology_done) struct topology topology = { 0 };
	_cleanup_free_ uint32_t *numbers = NULL;
	_cleanup_close_ int dir = -1;
	size_t count;
	int ret;

	dir = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return -errno;
	ret = list_numbers(dir, "nodes", &numbers, &count);
	for (size_t i = 0; !ret && i < count; i++)
		ret = add_from_sysfs(dir, numbers[i], &topology);
	if (ret < 0)
		return ret;

	*ret_topology = topology;
	topology = (struct topology){ 0 };
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
	struct topology_node *grown;

	grown = realloc(topology->nodes, (topology->num_nodes + 1) * sizeof(*grown));
	if (!grown)
		return NULL;
	topology->nodes = grown;
	grown += topology->num_nodes++;
	memset(grown, 0, sizeof(*grown));
	return grown;
}

#define DEFINE_FIND(name, field, valid)                                               \
	const struct topology_node *name(const struct topology *topology, uint32_t id)  \
	{                                                                               \
		for (size_t i = 0; i < topology->num_nodes; i++) {                      \
			const struct topology_node *node = &topology->nodes[i];         \
                                                                                        \
			if (node->field == id && (valid))                               \
				return node;                                            \
		}                                                                       \
		return NULL;                                                            \
	}

DEFINE_FIND(topology_find_gpu, gpu_id, id != 0)
DEFINE_FIND(topology_find_actual, actual_gpu_id, id != 0)
DEFINE_FIND(topology_find_minor, drm_render_minor, node->gpu_id != 0)
DEFINE_FIND(topology_find_node, node_id, true)

size_t topology_count_gpus(const struct topology *topology)
{
	size_t count = 0;

	for (size_t i = 0; i < topology->num_nodes; i++)
		count += topology->nodes[i].gpu_id != 0;
	return count;
}
