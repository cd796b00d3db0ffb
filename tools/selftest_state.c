// SPDX-License-Identifier: GPL-2.0-only
/* Reads what the kernel says of a process, as lines of text to compare. */
#include "selftest_state.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "amdgpu_plugin_util.h"
#include "kernel/proc.h"
#include "kernel/render_node.h"

#define RENDER_PATH "/dev/dri/renderD"

static void read_target(pid_t pid, int number, char target[PATH_MAX])
{
	char path[64];
	ssize_t length;

	(void)snprintf(path, sizeof(path), "/proc/%d/fd/%d", pid, number);
	length = readlink(path, target, PATH_MAX - 1);
	target[length < 0 ? 0 : length] = '\0';
}

bool selftest_state_has_open(pid_t pid, const char *path)
{
	_cleanup_closedir_ DIR *stream = NULL;
	int ret = proc_open_fds(pid, &stream), number, error = 0;
	char target[PATH_MAX];

	while (!ret && proc_next_fd(stream, &number, &error)) {
		read_target(pid, number, target);
		if (!strcmp(target, path))
			return true;
	}
	return false;
}

/* A process of the job. */
struct place {
	pid_t pid;
	/* Its lines begin with these, empty for the first process. */
	char words[32];
	/* The minors of two render nodes, each of which is called by that of the other one, or 0.
	 */
	uint32_t swapped[2];
};

static uint32_t swap(const struct place *place, uint32_t number)
{
	for (int i = 0; i < 2; i++) {
		if (place->swapped[i] == number)
			return place->swapped[!i];
	}
	return number;
}

static void swap_node(const struct place *place, char target[PATH_MAX])
{
	uint32_t number;
	char end;

	if (sscanf(target, RENDER_PATH "%u%c", &number, &end) == 1)
		(void)snprintf(target, PATH_MAX, RENDER_PATH "%u", swap(place, number));
}

static uint32_t swap_minor(const struct place *place, dev_t device)
{
	const uint32_t number = minor(device);

	return major(device) == major(render_node_device(0)) ? swap(place, number) : number;
}

/* By number, because /proc has them in that order. */
static int write_fds(const struct place *place, FILE *to)
{
	_cleanup_closedir_ DIR *stream = NULL;
	int ret = proc_open_fds(place->pid, &stream), number, error = 0;
	char target[PATH_MAX];

	while (!ret && proc_next_fd(stream, &number, &error)) {
		read_target(place->pid, number, target);
		swap_node(place, target);
		(void)fprintf(to, "%sdescriptor %d: %s\n", place->words, number, target);
	}
	return ret ? ret : error;
}

static int write_threads(const struct place *place, FILE *to)
{
	struct stat file;
	char path[64];

	/* A directory has a link of each directory in it, and two more. */
	(void)snprintf(path, sizeof(path), "/proc/%d/task", place->pid);
	if (stat(path, &file) < 0)
		return -errno;
	(void)fprintf(to, "%s%ju threads\n", place->words, (uintmax_t)file.st_nlink - 2);
	return 0;
}

/* Offsets in devices are others after a restore. Neighbours may have become one mapping, or the
 * other way round. */
static int write_mappings(const struct place *place, FILE *to)
{
	_cleanup_free_ struct proc_mapping *mappings = NULL;
	size_t count = 0, i = 0;
	int ret = proc_list_mappings(place->pid, &mappings, &count);

	while (!ret && i < count) {
		size_t first = i++;

		while (i < count && mappings[i].start == mappings[i - 1].end &&
		       mappings[i].device == mappings[first].device)
			i++;
		(void)fprintf(to, "%smapping %" PRIx64 "-%" PRIx64 " of device %u:%u\n",
			      place->words, mappings[first].start, mappings[i - 1].end,
			      major(mappings[first].device),
			      swap_minor(place, mappings[first].device));
	}
	return ret;
}

static int write_process(const struct place *place, FILE *to)
{
	int ret = write_fds(place, to);

	if (!ret)
		ret = write_threads(place, to);
	return ret ? ret : write_mappings(place, to);
}

static int write_tree(pid_t pid, const struct place *names, FILE *to)
{
	_cleanup_(pid_list_done) struct pid_list tree = { 0 };
	int ret = proc_list_tree(pid, &tree);

	if (!ret && !tree.count)
		return -ESRCH;
	for (size_t i = 0; !ret && i < tree.count; i++) {
		struct place place = *names;

		place.pid = tree.pids[i];
		if (place.pid != pid)
			(void)snprintf(place.words, sizeof(place.words), "process %d: ", place.pid);
		ret = write_process(&place, to);
	}
	return ret;
}

int selftest_state_read(pid_t pid, uint32_t one, uint32_t other, char **ret_text)
{
	_cleanup_free_ char *text = NULL;
	size_t size = 0;
	FILE *to = open_memstream(&text, &size);
	int ret;

	if (!to)
		return -errno;
	ret = write_tree(pid, &(const struct place){ .swapped = { one, other } }, to);
	if (fclose(to))
		ret = ret ? ret : -ENOMEM;
	if (ret)
		return ret;
	*ret_text = take_ptr(&text);
	return 0;
}

static bool has_line(const char *text, const char *line, size_t length)
{
	for (const char *at = text; *at; at = strchr(at, '\n') + 1) {
		if (!strncmp(at, line, length + 1))
			return true;
	}
	return false;
}

/* Writes the first line of @text that @other does not have. */
static bool find_alone(const char *text, const char *other, const char *word, char *line,
		       size_t size)
{
	for (const char *at = text; *at; at = strchr(at, '\n') + 1) {
		size_t length = strcspn(at, "\n");

		if (has_line(other, at, length))
			continue;
		(void)snprintf(line, size, "%s: %.*s", word, (int)length, at);
		return true;
	}
	return false;
}

const char *selftest_state_compare(const char *before, const char *after, char *line, size_t size)
{
	if (find_alone(before, after, "lost", line, size) ||
	    find_alone(after, before, "new", line, size))
		return line;
	return NULL;
}
