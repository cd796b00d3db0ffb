// SPDX-License-Identifier: GPL-2.0-only
/* A driver in the kernel: the true one of this kernel, or the simulator as a module. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "front.h"

#define VIOLATIONS "/sys/kernel/debug/amdgpu_sim/violations"

static bool is_module(void)
{
	return access(VIOLATIONS, F_OK) == 0;
}

enum world front_open(const char *name, const struct kernel **ret_kernel)
{
	*ret_kernel = kernel_find(is_module() ? "default" : name);
	if (!*ret_kernel) {
		fprintf(stderr, "contract: no row for this kernel\n");
		exit(2);
	}
	if (access("/dev/kfd", F_OK) < 0) {
		fprintf(stderr, "contract: there is no /dev/kfd\n");
		exit(2);
	}
	return is_module() ? WORLD_MODULE : WORLD_TRUE;
}

/* The emulated GPU counts violations too, and the scenario asks for them at its end. */
bool front_counts_own(void)
{
	return false;
}

long front_violations(void)
{
	FILE *stream = fopen(VIOLATIONS, "re");
	long count = is_module() ? -1 : 0;

	if (stream && fscanf(stream, "%ld", &count) != 1)
		count = -1;
	if (stream)
		fclose(stream);
	return count;
}

void front_clear_violations(void)
{
	int fd = open(VIOLATIONS, O_WRONLY | O_CLOEXEC);

	if (fd >= 0) {
		(void)!write(fd, "0", 1);
		close(fd);
	}
}
