// SPDX-License-Identifier: GPL-2.0-only
/* Follows kfd_process_xnack_mode() of the kernel's kfd_process.c, and amdgpu_gmc_noretry_set() of
 * its amdgpu_gmc.c. A GPU does not say whether it supports XNACK. */
#include "kernel/kfd_xnack.h"

#include <stdint.h>

#include "kernel/amdgpu_module.h"

/* gfx_target_version of MI210 and MI250, and of GPUs of gfx12.1, which support XNACK again. */
#define GFX90A  90010
#define GFX1250 120500

/* Vega 10, Vega 20 and MI100. Other GPUs of gfx9 retry unless the parameter says otherwise. */
static bool forbids_by_default(uint32_t version)
{
	return version == 90000 || version == 90006 || version == 90008 || version >= GFX1250;
}

int kfd_xnack_read_noretry(void)
{
	int noretry;

	return amdgpu_module_parameter("noretry", &noretry) ? noretry : KFD_XNACK_AUTO;
}

bool kfd_xnack_is_forbidden(const struct topology_node *gpu, int noretry)
{
	uint32_t version = gpu->gfx_target_version;

	/* Older GPUs have no say. The others here have a mode for each process. */
	if (version < TOPOLOGY_GFX9 || version == GFX90A || topology_has_partitions(gpu))
		return false;
	if (version >= TOPOLOGY_GFX10 && version < GFX1250)
		return true;
	return noretry == KFD_XNACK_AUTO ? forbids_by_default(version) : noretry != 0;
}
