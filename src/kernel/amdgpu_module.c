// SPDX-License-Identifier: GPL-2.0-only
/* Reads files of /sys/module/amdgpu. Follows kfd_process_xnack_mode() of the kernel's
 * kfd_process.c, and amdgpu_gmc_noretry_set() of its amdgpu_gmc.c. A GPU does not say whether it
 * supports XNACK. */
#include "kernel/amdgpu_module.h"

#include <stdio.h>
#include <string.h>

#include "amdgpu_plugin_util.h"

#define MODULE "/sys/module/amdgpu/"

/* gfx_target_version of MI210 and MI250, and of GPUs of gfx12.1, which support XNACK again. */
#define GFX90A  90010
#define GFX1250 120500

static FILE *open_file(const char *folder, const char *name)
{
	char path[128];

	(void)snprintf(path, sizeof(path), MODULE "%s%s", folder, name);
	return stream_open(path);
}

bool amdgpu_module_parameter(const char *name, int *ret_value)
{
	_cleanup_fclose_ FILE *file = open_file("parameters/", name);

	return file && fscanf(file, "%d", ret_value) == 1;
}

bool amdgpu_module_text(const char *name, char *text, size_t size)
{
	_cleanup_fclose_ FILE *file = open_file("", name);

	if (!file || !fgets(text, (int)size, file))
		return false;
	text[strcspn(text, "\n")] = '\0';
	return true;
}

/* Vega 10, Vega 20 and MI100. Other GPUs of gfx9 retry unless the parameter says otherwise. */
static bool forbids_by_default(uint32_t version)
{
	return version == 90000 || version == 90006 || version == 90008 || version >= GFX1250;
}

int amdgpu_module_read_noretry(void)
{
	int noretry;

	return amdgpu_module_parameter("noretry", &noretry) ? noretry : AMDGPU_NORETRY_AUTO;
}

bool amdgpu_module_forbids_xnack(const struct topology_node *gpu, int noretry)
{
	uint32_t version = gpu->gfx_target_version;

	/* Older GPUs have no say. The others here have a mode for each process. */
	if (version < TOPOLOGY_GFX9 || version == GFX90A || topology_has_partitions(gpu))
		return false;
	if (version >= TOPOLOGY_GFX10 && version < GFX1250)
		return true;
	return noretry == AMDGPU_NORETRY_AUTO ? forbids_by_default(version) : noretry != 0;
}
