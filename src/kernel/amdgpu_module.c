// SPDX-License-Identifier: GPL-2.0-only
/* Reads files of /sys/module/amdgpu. */
#include "kernel/amdgpu_module.h"

#include <stdio.h>
#include <string.h>

#include "amdgpu_plugin_util.h"

#define MODULE "/sys/module/amdgpu/"

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
