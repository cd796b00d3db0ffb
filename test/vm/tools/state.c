/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Says what must be the same before and after, for every process of a session: open files, their
 * limit, mappings of devices. Offsets of these mappings move, and neighbours may then merge or not,
 * so they are shown merged.
 *
 *     state [-m] SESSION
 *
 * -m leaves out the minors of render nodes: another machine has
 * others. The numbers of sockets and pipes are always left out, since new ones have new
 * numbers. */
#define _GNU_SOURCE
#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int any_minor;

static FILE *open_of(const char *pid, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%s/%s", pid, name);
	return fopen(path, "re");
}

static void show_name(const char *name)
{
	static const char render[] = "/dev/dri/renderD", socket[] = "socket:", pipe[] = "pipe:";

	if (any_minor && !strncmp(name, render, strlen(render)))
		name = render;
	if (!strncmp(name, socket, strlen(socket)))
		name = socket;
	if (!strncmp(name, pipe, strlen(pipe)))
		name = pipe;
	puts(name);
}

static int is_number(const struct dirent *entry)
{
	return isdigit((unsigned char)*entry->d_name);
}

static void show_fds(const char *pid)
{
	char path[sizeof("/proc//fd/") + 32], target[512];
	struct dirent **fds;
	int count;

	snprintf(path, sizeof(path), "/proc/%s/fd", pid);
	count = scandir(path, &fds, is_number, versionsort);
	for (int i = 0; i < count; i++) {
		ssize_t length;

		snprintf(path, sizeof(path), "/proc/%s/fd/%.16s", pid, fds[i]->d_name);
		length = readlink(path, target, sizeof(target) - 1);
		target[length < 0 ? 0 : length] = '\0';
		printf("%s ", fds[i]->d_name);
		show_name(target);
		free(fds[i]);
	}
	if (count >= 0)
		free(fds);
}

/* The line of a file of the process that begins with @start; "" without one. */
static const char *line_of(const char *pid, const char *name, const char *start)
{
	FILE *file = open_of(pid, name);
	static char line[512];
	int found = 0;

	while (file && !found && fgets(line, sizeof(line), file))
		found = !strncmp(line, start, strlen(start));
	if (file)
		fclose(file);
	return found ? line : "";
}

struct mapping {
	unsigned long start, end;
	char access[8];
	char name[256];
};

static void show_mapping(const struct mapping *mapping)
{
	if (!*mapping->name)
		return;
	printf("%lx-%lx %s ", mapping->start, mapping->end, mapping->access);
	show_name(mapping->name);
}

static int is_device(const char *name)
{
	return !strncmp(name, "/dev/kfd", 8) || !strncmp(name, "/dev/dri", 8);
}

static void show_mappings(const char *pid)
{
	FILE *maps = open_of(pid, "maps");
	struct mapping before = { .name = "" }, now;
	char line[1024];

	while (maps && fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%lx-%lx %7s %*s %*s %*s %255s", &now.start, &now.end, now.access,
			   now.name) != 4 ||
		    !is_device(now.name))
			continue;
		if (now.start == before.end && !strcmp(now.access, before.access) &&
		    !strcmp(now.name, before.name)) {
			before.end = now.end;
			continue;
		}
		show_mapping(&before);
		before = now;
	}
	show_mapping(&before);
	if (maps)
		fclose(maps);
}

static long session_of(const char *pid)
{
	const char *line = line_of(pid, "status", "NSsid:");

	return *line ? atol(line + strlen("NSsid:")) : -1;
}

/* The pid in the process's own pid namespace, or 0 if the process has ended. */
static long own_number(const char *pid)
{
	const char *line = line_of(pid, "status", "NSpid:");

	return *line ? atol(strrchr(line, '\t') + 1) : 0;
}

/* By own number: a restore keeps that one only. */
static int compare_processes(const struct dirent **a, const struct dirent **b)
{
	long first = own_number((*a)->d_name), second = own_number((*b)->d_name);

	return first == second ? versionsort(a, b) : first < second ? -1 : 1;
}

int main(int argc, char **argv)
{
	struct dirent **processes;
	int count, shown = 0;

	if (argc == 3 && !strcmp(argv[1], "-m"))
		any_minor = 1;
	if (argc != 2 + any_minor)
		return 2;
	count = scandir("/proc", &processes, is_number, compare_processes);
	for (int i = 0; i < count; i++) {
		const char *pid = processes[i]->d_name;

		if (session_of(pid) != atol(argv[argc - 1]))
			continue;
		printf("process %s\n", pid);
		show_fds(pid);
		fputs(line_of(pid, "limits", "Max open files"), stdout);
		show_mappings(pid);
		shown++;
	}
	return shown ? 0 : 1;
}
