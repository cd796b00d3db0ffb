// SPDX-License-Identifier: GPL-2.0-only
/* Captured machines with broken files: reading ends, and invents no GPU. */
#include "host.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "amdgpu_plugin_util.h"
#include "map/map.h"
#include "pairs.h"
#include "synthetic.h"

#define BREAKS     260
#define FILES_MAX  2000
#define TIME_LIMIT 240

static const char *const machines[] = { "mi210-8gpu-2hive", "desktop-3gpu-gfx906-gfx1102-gfx1032",
					"rccl-frontier-mi250x-8gcd-nps4" };

static struct {
	char *paths[FILES_MAX];
	size_t count;
	size_t root_length;
	/* The directory of the copy, below that of the test. Each copy has a new one. */
	char copy[16];
	unsigned int copies;
} files;

static int note_file(const char *path, const struct stat *stat, int type, struct FTW *walk)
{
	(void)stat;
	(void)walk;
	if (type == FTW_F && files.count < FILES_MAX)
		files.paths[files.count++] = strdup(path + files.root_length);
	return 0;
}

static int compare_paths(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static size_t read_whole(const char *path, char **ret_text)
{
	_cleanup_fclose_ FILE *file = fopen(path, "re");
	size_t size;

	assert_non_null(file);
	*ret_text = malloc(65536);
	assert_non_null(*ret_text);
	size = fread(*ret_text, 1, 65536, file);
	return size;
}

/* Copies the machine to a directory below that of the test. */
static void copy_machine(const char *name)
{
	char root[256];

	(void)snprintf(root, sizeof(root), "%s/%s/", TREES, name);
	(void)snprintf(files.copy, sizeof(files.copy), "machine%u", files.copies++);
	files.count = 0;
	files.root_length = strlen(root);
	assert_int_equal(nftw(root, note_file, 16, FTW_PHYS), 0);
	assert_true(files.count > 20);
	/* Sorted, so that a seed always breaks the same file. */
	qsort(files.paths, files.count, sizeof(files.paths[0]), compare_paths);
	for (size_t i = 0; i < files.count; i++) {
		char from[512], to[512], *text;
		size_t size;

		(void)snprintf(from, sizeof(from), "%s%s", root, files.paths[i]);
		(void)snprintf(to, sizeof(to), "%s/%s", files.copy, files.paths[i]);
		size = read_whole(from, &text);
		unit_write(to, text, size);
		free(text);
	}
}

static void free_paths(void)
{
	while (files.count)
		free(files.paths[--files.count]);
}

static const char *const breakages[] = {
	"truncated",        "emptied",           "binary",      "huge",
	"one byte changed", "one line repeated", "a directory", "a FIFO",
	"a link to itself", "an endless device", "not there",   "another file",
	"a long line",
};

static void write_huge(const char *path)
{
	_cleanup_free_ char *text = malloc(3 << 20);

	assert_non_null(text);
	for (size_t i = 0; i < 3 << 20; i++)
		text[i] = "simd_count 18446744073709551615\n"[i % 32];
	unit_write(path, text, 3 << 20);
}

static void write_binary(struct dice *dice, const char *path)
{
	char bytes[4096];

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (char)dice_roll(dice, 256);
	unit_write(path, bytes, dice_roll(dice, sizeof(bytes)));
}

static void break_file(struct dice *dice, size_t how, const char *path, const char *text,
		       size_t size)
{
	char full[512], copy[65536 + 1];
	size_t at = size ? dice_roll(dice, (uint32_t)size) : 0;

	(void)strcpy(full, unit_path("%s", path));
	assert_int_equal(unlink(full), 0);
	memcpy(copy, text, size);
	switch (how) {
	case 0:
		unit_write(path, text, at);
		break;
	case 1:
		unit_write(path, "", 0);
		break;
	case 2:
		write_binary(dice, path);
		break;
	case 3:
		write_huge(path);
		break;
	case 4:
		copy[at] = (char)dice_roll(dice, 256);
		unit_write(path, copy, size);
		break;
	case 5:
		unit_print(path, "%.*s%.*s", (int)size, text, (int)size, text);
		break;
	case 6:
		assert_int_equal(mkdir(full, 0755), 0);
		break;
	case 7:
		assert_int_equal(mkfifo(full, 0644), 0);
		break;
	case 8:
		assert_int_equal(symlink(full, full), 0);
		break;
	case 9:
		assert_int_equal(symlink("/dev/zero", full), 0);
		break;
	case 10:
		break;
	case 11:
		assert_int_equal(symlink("/proc/self/maps", full), 0);
		break;
	default:
		memset(copy, '7', 60000);
		unit_write(path, copy, 60000);
	}
}

static void restore_file(const char *path, const char *text, size_t size)
{
	(void)remove(unit_path("%s", path));
	unit_write(path, text, size);
}

/* Only the broken node may change: at most one gpu_id is new, and at most one GPU is missing. */
static void assert_at_most_one_gpu_changed(const struct topology *whole,
					   const struct topology *broken)
{
	size_t new_ids = 0;

	assert_true(broken->num_nodes <= whole->num_nodes);
	for (size_t i = 0; i < broken->num_nodes; i++) {
		assert_true(!i || broken->nodes[i - 1].node_id < broken->nodes[i].node_id);
		new_ids += broken->nodes[i].gpu_id &&
			   !topology_find_gpu(whole, broken->nodes[i].gpu_id);
	}
	assert_true(new_ids <= 1);
	assert_true(topology_count_gpus(broken) + 1 >= topology_count_gpus(whole));
}

static void map_both_ways(const struct topology *whole, const struct topology *broken)
{
	const struct map_options options = pair_options();
	_cleanup_(map_done) struct gpu_map map = { 0 };

	(void)pair_explain(whole, broken, &options);
	assert_int_equal(map_decide(broken, whole, &options, &map), 0);
	unit_forget_lines();
}

UNIT_TEST(reading_a_broken_file_ends_and_invents_no_gpu)
{
	(void)alarm(TIME_LIMIT);
	for (size_t m = 0; m < ARRAY_SIZE(machines); m++) {
		_cleanup_(topology_done) struct topology whole = { 0 };

		copy_machine(machines[m]);
		assert_int_equal(topology_read(unit_path("%s", files.copy), &whole), 0);
		for (uint64_t seed = 0; seed < BREAKS; seed++) {
			struct dice dice = { seed * 31 + m };
			size_t file = dice_roll(&dice, (uint32_t)files.count), size;
			_cleanup_(topology_done) struct topology broken = { 0 };
			char path[512], *text;

			(void)snprintf(path, sizeof(path), "%s/%s", files.copy, files.paths[file]);
			print_message("case %s: %s %s\n", machines[m], path,
				      breakages[seed % ARRAY_SIZE(breakages)]);
			size = read_whole(unit_path("%s", path), &text);
			break_file(&dice, seed % ARRAY_SIZE(breakages), path, text, size);
			assert_int_equal(topology_read(unit_path("%s", files.copy), &broken), 0);
			assert_at_most_one_gpu_changed(&whole, &broken);
			map_both_ways(&whole, &broken);
			restore_file(path, text, size);
			free(text);
		}
		free_paths();
	}
	(void)alarm(0);
}

UNIT_TEST(the_log_names_the_broken_file_and_line)
{
	static const struct {
		const char *file;
		const char *text;
		const char *place;
		const char *problem;
	} cases[] = {
		{ "nodes/3/properties", "simd_count 8\nsimd_per_cu four\n", "nodes/3/properties:2",
		  "\"simd_per_cu four\": expected \"name number\"" },
		{ "nodes/3/properties", "\n\nx\n", "nodes/3/properties:3", "\"x\"" },
		{ "nodes/3/properties", "simd_count 99999999999\n", "nodes/3/properties:1",
		  "too large" },
		{ "nodes/3/properties", "a\xff\x1b[2J 5x\n", "nodes/3/properties:1",
		  "\"a??[2J 5x\"" },
		{ "nodes/3/mem_banks/0/properties", "heap_type 1\nsize_in_bytes -\n",
		  "nodes/3/mem_banks/0/properties:2", "\"size_in_bytes -\"" },
		{ "nodes/3/io_links/0/properties", "type  2\n", "nodes/3/io_links/0/properties:1",
		  "\"type  2\"" },
		{ "nodes/3/gpu_id", "none\n", "nodes/3/gpu_id:1", "\"none\": not a gpu_id" },
	};

	copy_machine(machines[0]);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_(topology_done) struct topology topology = { 0 };
		char path[256], *text;
		size_t size;

		print_message("case %s\n", cases[i].place);
		(void)snprintf(path, sizeof(path), "%s/%s", files.copy, cases[i].file);
		size = read_whole(unit_path("%s", path), &text);
		unit_print(path, "%s", cases[i].text);
		assert_int_equal(topology_read(unit_path("%s", files.copy), &topology), 0);
		assert_logged("node 3", cases[i].place, cases[i].problem);
		assert_null(topology_find_node(&topology, 3));
		assert_int_equal(topology_count_gpus(&topology), 7);
		unit_forget_lines();
		restore_file(path, text, size);
		free(text);
	}
	free_paths();
}

/* The links of the GPUs are enough. */
UNIT_TEST(a_cpu_node_with_broken_links_is_kept)
{
	_cleanup_(topology_done) struct topology topology = { 0 };
	char path[64];

	copy_machine(machines[0]);
	(void)snprintf(path, sizeof(path), "%s/nodes/0/io_links/0/properties", files.copy);
	unit_print(path, "broken\n");
	assert_int_equal(topology_read(unit_path("%s", files.copy), &topology), 0);
	assert_non_null(topology_find_node(&topology, 0));
	assert_int_equal(topology_find_node(&topology, 0)->num_links, 0);
	assert_logged("Warn  (amdgpu_plugin): ", "CPU node 0", "nodes/0/io_links/0/properties:1");
	free_paths();
}

UNIT_TEST(too_many_nodes_are_an_error)
{
	struct topology topology;

	for (unsigned int i = 0; i < 1025; i++) {
		char path[64];

		(void)snprintf(path, sizeof(path), "many/nodes/%u/gpu_id", i);
		unit_print(path, "0\n");
	}
	assert_int_equal(topology_read(unit_path("many"), &topology), -E2BIG);
	assert_logged("Warn  (amdgpu_plugin): ", "nodes", "too many");
}

UNIT_TEST(a_failure_to_list_the_nodes_is_returned)
{
	struct topology topology;

	unit_print("broken/nodes", "no directory\n");
	assert_int_equal(topology_read(unit_path("broken"), &topology), -ENOTDIR);
	assert_logged("Warn  (amdgpu_plugin): ", "topology: nodes: Not a directory\n");
	assert_false(unit_logged("Error (amdgpu_plugin): ", NULL));
}

UNIT_TEST(more_than_64_gpus_are_refused)
{
	const struct map_options options = pair_options();
	_cleanup_(topology_done) struct topology many = { 0 }, few = { 0 };
	_cleanup_(map_done) struct gpu_map map = { 0 };

	machine_of_hives(1, 65, 1, false, &many);
	machine_of_hives(1, 2, 1, false, &few);
	assert_int_equal(map_decide(&few, &many, &options, &map), 0);
	assert_int_equal(map.reason, REASON_TOO_MANY);
	map_done(&map);
	assert_int_equal(map_decide(&many, &few, &options, &map), 0);
	assert_int_equal(map.reason, REASON_TOO_MANY);
	assert_int_equal(pair_explain(&few, &many, &options), -ENODEV);
	assert_logged("Error (amdgpu_plugin): ", "more than 64 GPUs");
}
