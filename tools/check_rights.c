// SPDX-License-Identifier: GPL-2.0-only
/* What CRIU cannot restore without CAP_SETPCAP (restore_creds() in CRIU's criu/pie/restorer.c): a
 * process that has lost capabilities from its bounding set. It drops them again, also those that
 * the restoring CRIU does not have, and only passes over an error if the process may gain no
 * privileges. */
#include <linux/capability.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "amdgpu_plugin_util.h"
#include "check.h"
#include "criu/log.h"
#include "kernel/proc.h"

#define LAST_CAP "/proc/sys/kernel/cap_last_cap"

static bool has_setpcap(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	return syscall(SYS_capget, &header, data) < 0 ||
	       data[CAP_TO_INDEX(CAP_SETPCAP)].effective & CAP_TO_MASK(CAP_SETPCAP);
}

/* All capabilities of this kernel, or 0 if it does not tell. */
static uint64_t all_capabilities(void)
{
	_cleanup_fclose_ FILE *file = fopen(LAST_CAP, "re");
	unsigned int last;

	if (!file || fscanf(file, "%u", &last) != 1 || last > 63)
		return 0;
	return UINT64_MAX >> (63 - last);
}

static bool is_restorable(pid_t pid, uint64_t all)
{
	uint64_t bounding;
	bool no_new_privs;

	/* A process that has ended needs no restore. */
	return proc_find_rights(pid, &bounding, &no_new_privs) < 0 || no_new_privs ||
	       !(all & ~bounding);
}

void check_rights(const struct pid_list *tree)
{
	uint64_t all = all_capabilities();

	if (has_setpcap())
		return;
	for (size_t i = 0; i < tree->count; i++) {
		if (is_restorable(tree->pids[i], all))
			continue;
		log_warn("process %d: lacks capabilities in its bounding set, so only a CRIU with"
			 " CAP_SETPCAP restores it; run CRIU as root, or start the job with"
			 " setpriv --no-new-privs",
			 tree->pids[i]);
		return;
	}
}
