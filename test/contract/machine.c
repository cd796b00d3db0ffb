// SPDX-License-Identifier: GPL-2.0-only
/* The driver of this kernel. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "front.h"

enum world front_open(const char *name, const struct kernel **ret_kernel, bool *ret_is_known)
{
	*ret_is_known = true;
	*ret_kernel = name ? kernel_find(name) : kernel_find_running(ret_is_known);
	if (!*ret_kernel) {
		fprintf(stderr, "contract: no row for the kernel %s\n", name);
		exit(2);
	}
	if (access("/dev/kfd", F_OK) < 0) {
		fprintf(stderr, "contract: there is no /dev/kfd\n");
		exit(2);
	}
	return WORLD_TRUE;
}

long front_violations(void)
{
	return 0;
}
