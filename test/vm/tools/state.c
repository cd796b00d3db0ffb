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

#define FDS_MAX (1 << 20)

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

static int compare_numbers(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

static void show_fds(const char *pid)
{
	static int fds[FDS_MAX];
	char path[64], target[512];
	struct dirent *entry;
	size_t count = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%s/fd", pid);
	dir = opendir(path);
	while (dir && (entry = readdir(dir)) && count < FDS_MAX) {
		if (isdigit((unsigned char)*entry->d_name))
			fds[count++] = atoi(entry->d_name);
	}
	if (dir)
		closedir(dir);
	qsort(fds, count, sizeof(*fds), compare_numbers);
	for (size_t i = 0; i < count; i++) {
		ssize_t length;

		snprintf(path, sizeof(path), "/proc/%s/fd/%d", pid, fds[i]);
		length = readlink(path, target, sizeof(target) - 1);
		target[length < 0 ? 0 : length] = '\0';
		printf("%d ", fds[i]);
		show_name(target);
	}
}

static void show_limit(const char *pid)
{
	FILE *limits = open_of(pid, "limits");
	char line[256];

	while (limits && fgets(line, sizeof(line), limits)) {
		if (strstr(line, "open files"))
			fputs(line, stdout);
	}
	if (limits)
		fclose(limits);
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
	FILE *stat = open_of(pid, "stat");
	char line[512] = "", *after;
	long session = -1;

	if (stat && fgets(line, sizeof(line), stat) && (after = strrchr(line, ')')))
		sscanf(after, ") %*c %*d %*d %ld", &session);
	if (stat)
		fclose(stat);
	return session;
}

/* The pid in the process's own pid namespace, or 0 if the process has ended. */
static long own_number(const char *pid)
{
	FILE *status = open_of(pid, "status");
	char line[512];
	long number = 0;

	while (status && fgets(line, sizeof(line), status)) {
		if (!strncmp(line, "NSpid:", 6))
			number = atol(strrchr(line, '\t') + 1);
	}
	if (status)
		fclose(status);
	return number;
}

/* By own number: a restore keeps that one only. */
static int compare_processes(const struct dirent **a, const struct dirent **b)
{
	long first = own_number((*a)->d_name), second = own_number((*b)->d_name);

	return first == second ? versionsort(a, b) : first < second ? -1 : 1;
}

static int is_process(const struct dirent *entry)
{
	return isdigit((unsigned char)*entry->d_name);
}

int main(int argc, char **argv)
{
	struct dirent **processes;
	int count, shown = 0;

	if (argc == 3 && !strcmp(argv[1], "-m"))
		any_minor = 1;
	if (argc != 2 + any_minor)
		return 2;
	count = scandir("/proc", &processes, is_process, compare_processes);
	for (int i = 0; i < count; i++) {
		const char *pid = processes[i]->d_name;

		if (session_of(pid) != atol(argv[argc - 1]))
			continue;
		printf("process %s\n", pid);
		show_fds(pid);
		show_limit(pid);
		show_mappings(pid);
		shown++;
	}
	return shown ? 0 : 1;
}
