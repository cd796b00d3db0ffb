// SPDX-License-Identifier: GPL-2.0-only
/* What one version of CRIU exports that others do not, or in another size. Compiled once for each
 * (HOOKS, and TAKES_MAPPING_FD, HAS_INVENTORY, HAS_OPTIONS, TABLE_SIZE), and loaded before the
 * plugin. */
#include <stdbool.h>
#include <stddef.h>
#include <unistd.h>

#include "criu_exports.h"

#ifndef TABLE_SIZE /* a list head a hook and one more */
#define TABLE_SIZE (16 * (HOOKS + 1))
#endif

const size_t criu_hooks = HOOKS;
char cr_plugin_ctl[TABLE_SIZE];

#ifdef TAKES_MAPPING_FD
const bool criu_takes_mapping_fd = true;

/* CRIU exports all its functions (-rdynamic); this one came with the change. */
int cr_fchown(int fd, uid_t uid, gid_t gid)
{
	return fchown(fd, uid, gid);
}
#else
const bool criu_takes_mapping_fd = false;
#endif

#ifdef HAS_INVENTORY
int add_inventory_plugin(const char *name)
{
	return criu_note_plugin(name);
}

bool check_and_remove_inventory_plugin(const char *name, size_t length)
{
	return criu_claim_plugin(name, length);
}
#endif

#ifdef HAS_OPTIONS
int criu_plugin_get_options(int *argc, char ***argv)
{
	*argc = 0;
	*argv = NULL;
	return 0;
}
#endif
