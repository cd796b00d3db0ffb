// SPDX-License-Identifier: GPL-2.0-only
/* Fuzzes a topology directory, and maps the topology to itself. The input is text: a line "@PATH"
 * begins a file, and the lines up to the next such line are its contents. */
#include "fuzz.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "amdgpu_plugin_topology.h"
#include "map/explain.h"
#include "map/map.h"

#define FILES_MAX 96

/* Whether the path stays inside the directory. */
static bool is_below(const char *path)
{
	return path[0] && path[0] != '/' && !strstr(path, "..") && !strstr(path, "//") &&
	       strlen(path) < 200;
}

static void make_directories(char *path)
{
	for (char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		(void)mkdirat(criu_stub.image_dir, path, 0700);
		*slash = '/';
	}
}

static void write_file(char *path, const char *text, size_t size)
{
	int fd;

	if (!is_below(path))
		return;
	make_directories(path);
	fd = openat(criu_stub.image_dir, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0)
		return;
	promise(write(fd, text, size) == (ssize_t)size);
	(void)close(fd);
}

static void write_tree(char *text, size_t size)
{
	char *end = text + size, *at = text;

	for (unsigned int i = 0; i < FILES_MAX && at < end && *at == '@'; i++) {
		char *line = memchr(at, '\n', (size_t)(end - at)), *next;

		if (!line)
			return;
		*line++ = '\0';
		next = line < end && *line == '@' ? line
						  : memmem(line, (size_t)(end - line), "\n@", 2);
		if (next && *next == '\n')
			next++;
		if (!next)
			next = end;
		write_file(at + 1, line, (size_t)(next - line));
		at = next;
	}
}

static void check_nodes(const struct topology *topology)
{
	for (size_t i = 0; i < topology->num_nodes; i++) {
		const struct topology_node *node = &topology->nodes[i];
		struct topology again = { 0 };
		KfdDeviceEntry *entry = topology_entry_new(topology, node);

		promise(!i || topology->nodes[i - 1].node_id < node->node_id);
		promise(node->gpu_id ? node->vram_size != 0 : node->cpu_cores_count != 0);
		promise(entry && topology_entries_read(&entry, 1, &again) == 0);
		promise(again.nodes[0].simd_count == node->simd_count);
		kfd_device_entry__free_unpacked(entry, NULL);
		topology_done(&again);
	}
}

static void map_to_itself(const struct topology *topology)
{
	struct map_options options = { .check_numa = true };
	struct gpu_map map = { 0 };
	int ret;

	ret = map_decide(topology, topology, &options, &map);
	if (!ret)
		ret = explain_map(&map);
	for (size_t i = 0; !ret && i < topology->num_nodes; i++)
		promise(map.local[i] == (topology->nodes[i].gpu_id ? &topology->nodes[i] : NULL) ||
			map.local[i]);
	map_done(&map);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct topology topology = { 0 };
	char *text = malloc(size + 1);
	int ret;

	promise(text);
	if (size)
		memcpy(text, bytes, size);
	fuzz_begin();
	write_tree(text, size);
	ret = topology_read(unit_path("%s", ""), &topology);
	/* topology_read() leaves error lines to its caller. */
	promise(unit_count_errors() == 0);
	if (!ret) {
		check_nodes(&topology);
		map_to_itself(&topology);
	}
	topology_done(&topology);
	free(text);
	fuzz_end();
	return 0;
}
