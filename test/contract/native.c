// SPDX-License-Identifier: GPL-2.0-only
/* The native simulator, which is linked into this program. Each process has a machine of its own.
 */
#include <stdio.h>
#include <stdlib.h>

#include "amdgpu_sim.h"
#include "front.h"

enum world front_open(const char *name, const struct kernel **ret_kernel, bool *ret_is_known)
{
	const struct kernel *kernel;
	char knobs[128];

	*ret_is_known = true;
	*ret_kernel = kernel_find(name ? name : "default");
	if (!*ret_kernel) {
		fprintf(stderr, "contract: no row for the kernel %s\n", name);
		exit(2);
	}
	kernel = *ret_kernel;
	snprintf(knobs, sizeof(knobs), "kernel=%s;no_svm=%d;%s", kernel->name, !kernel->svm,
		 kernel->knobs ? kernel->knobs : "");
	setenv("AMDGPU_SIM_KNOBS", knobs, 1);
	return WORLD_NATIVE;
}

long front_violations(void)
{
	char text[8192];

	return amdgpu_sim_read("violations", text, sizeof(text)) < 0 ? -1 : strtol(text, NULL, 10);
}
