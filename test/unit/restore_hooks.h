/* SPDX-License-Identifier: GPL-2.0-only */
/* Calls the hooks of a restore as CRIU does. */
#ifndef TEST_UNIT_RESTORE_HOOKS_H
#define TEST_UNIT_RESTORE_HOOKS_H

#include <stdint.h>
#include <sys/types.h>

#include "criu/plugin_abi.h"

extern struct criu_plugin_desc CR_PLUGIN_DESC;

static inline int restore_file(int id)
{
	int (*hook)(int) = CR_PLUGIN_DESC.hooks[HOOK_RESTORE_EXT_FILE];

	return hook(id);
}

static inline int update_mapping(const char *path, uint64_t addr, uint64_t offset,
				 uint64_t *new_offset, int *fd)
{
	int (*hook)(const char *, uint64_t, uint64_t, uint64_t *, int *) =
		CR_PLUGIN_DESC.hooks[HOOK_UPDATE_VMA_MAP];

	return hook(path, addr, offset, new_offset, fd);
}

static inline int resume(pid_t pid)
{
	int (*hook)(int) = CR_PLUGIN_DESC.hooks[HOOK_RESUME_DEVICES_LATE];

	return hook(pid);
}

#endif
