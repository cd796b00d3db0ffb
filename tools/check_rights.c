// SPDX-License-Identifier: GPL-2.0-only
/* What CRIU lacks if a user without rights starts it. Such a CRIU has the capabilities of its file,
 * or those of this program. */
#include <endian.h>
#include <linux/capability.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "amdgpu_plugin_util.h"
#include "check.h"
#include "criu/log.h"
#include "kernel/proc.h"

#define LAST_CAP "/proc/sys/kernel/cap_last_cap"
#define YAMA     "/proc/sys/kernel/yama/ptrace_scope"
/* YAMA_SCOPE_NO_ATTACH in security/yama/yama_lsm.c */
#define YAMA_NO_ATTACH 3

/* Returns false if the file has none. */
static bool read_file_capabilities(const char *path, uint64_t *ret_capabilities)
{
	struct vfs_cap_data data;
	uint32_t magic;

	if (getxattr(path, "security.capability", &data, sizeof(data)) != XATTR_CAPS_SZ_2)
		return false;
	magic = le32toh(data.magic_etc);
	if ((magic & VFS_CAP_REVISION_MASK) != VFS_CAP_REVISION_2 ||
	    !(magic & VFS_CAP_FLAGS_EFFECTIVE))
		return false;
	*ret_capabilities =
		(uint64_t)le32toh(data.data[1].permitted) << 32 | le32toh(data.data[0].permitted);
	return true;
}

/* False if CRIU gets no capabilities from its file: the file has none, or exec ignores them. */
static bool find_file_capabilities(uint64_t *ret_capabilities)
{
	struct statvfs mount;
	char path[PATH_MAX];

	return check_find_program("criu", path) && geteuid() && !proc_in_user_namespace() &&
	       prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 0 && !statvfs(path, &mount) &&
	       !(mount.f_flag & ST_NOSUID) && read_file_capabilities(path, ret_capabilities);
}

static bool criu_has(unsigned int capability)
{
	uint64_t capabilities;

	if (!find_file_capabilities(&capabilities) && proc_own_capabilities(&capabilities) < 0)
		return true;
	return capabilities >> capability & 1;
}

bool check_may_checkpoint(void)
{
	const uint64_t sufficient = 1ULL << CAP_CHECKPOINT_RESTORE | 1ULL << CAP_SYS_ADMIN;
	uint64_t capabilities;

	return find_file_capabilities(&capabilities) && capabilities & sufficient;
}

void check_attach(struct check *check)
{
	_cleanup_fclose_ FILE *file = stream_open(YAMA);
	unsigned int scope;

	if (!file || fscanf(file, "%u", &scope) != 1 || !scope)
		return;
	if (scope >= YAMA_NO_ATTACH)
		check_refuse(
			check,
			"ptrace: kernel.yama.ptrace_scope is %u, so CRIU cannot attach to a job; remove it from sysctl.d and boot again",
			scope);
	else if (!criu_has(CAP_SYS_PTRACE))
		check_refuse(
			check,
			"ptrace: kernel.yama.ptrace_scope is %u, so only a CRIU with CAP_SYS_PTRACE can attach to a job; run CRIU as root, or set it to 0 (sysctl)",
			scope);
}

/* All capabilities of this kernel, or 0 if it does not tell. */
static uint64_t all_capabilities(void)
{
	_cleanup_fclose_ FILE *file = stream_open(LAST_CAP);
	unsigned int last;

	if (!file || fscanf(file, "%u", &last) != 1 || last > 63)
		return 0;
	return UINT64_MAX >> (63 - last);
}

/* CRIU drops capabilities again that the process has lost from its bounding set, also those that
 * CRIU itself does not have, and only passes over an error if the process may gain no privileges
 * (restore_creds() in CRIU's criu/pie/restorer.c). */
static bool is_restorable(pid_t pid, uint64_t all)
{
	struct proc_status status;

	/* A process that has ended needs no restore. */
	return proc_read_status(pid, &status) < 0 || status.no_new_privs ||
	       !(all & ~status.bounding);
}

void check_rights(const struct pid_list *tree)
{
	uint64_t all = all_capabilities();

	if (criu_has(CAP_SETPCAP))
		return;
	for (size_t i = 0; i < tree->count; i++) {
		if (is_restorable(tree->pids[i], all))
			continue;
		log_warn(
			"process %d: lacks capabilities in its bounding set, so only a CRIU with CAP_SETPCAP restores it; run CRIU as root, or start the job with setpriv --no-new-privs",
			tree->pids[i]);
		return;
	}
}
