// SPDX-License-Identifier: GPL-2.0-only
/* Finds the simulator's functions by name, because it is preloaded, or linked into the program. */
#include "simulator.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *simulator_find(const char *name)
{
	void *function = dlsym(RTLD_DEFAULT, name);

	if (!function) {
		(void)fprintf(stderr, "client: there is no simulator; preload libamdgpu_sim.so\n");
		exit(2);
	}
	return function;
}

int simulator_write(const char *file, const char *text)
{
	int (*function)(const char *file, const char *text) = simulator_find("amdgpu_sim_write");
	int ret = function(file, text);

	if (ret < 0)
		(void)fprintf(stderr, "client: the simulator refuses %s=%s: %s\n", file, text,
			      strerror(-ret));
	return ret;
}

int simulator_read(const char *file, char *text, size_t size)
{
	int (*function)(const char *file, char *text, size_t size) =
		simulator_find("amdgpu_sim_read");
	int ret = function(file, text, size);

	if (ret < 0)
		(void)fprintf(stderr, "client: %s: %s\n", file, strerror(-ret));
	return ret;
}

int simulator_read_all(const char *file, char **ret_text)
{
	int ret = simulator_read(file, (char[]){ 0 }, 1);

	if (ret < 0)
		return ret;
	*ret_text = malloc((size_t)ret + 1);
	return *ret_text ? simulator_read(file, *ret_text, (size_t)ret + 1) : -ENOMEM;
}
