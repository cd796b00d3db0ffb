/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Preloaded into CRIU, it stands for another task: a device node gets its name from that task just
 * before this task would give it the name with RENAME_NOREPLACE, which fails with EEXIST.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

int renameat2(int from, const char *temporary, int to, const char *name, unsigned int flags)
{
	struct stat node;

	if (flags & RENAME_NOREPLACE && !fstatat(from, temporary, &node, AT_SYMLINK_NOFOLLOW) &&
	    S_ISCHR(node.st_mode) && !mknodat(to, name, node.st_mode, node.st_rdev))
		(void)fchmodat(to, name, node.st_mode & 0777, 0);
	return (int)syscall(SYS_renameat2, from, temporary, to, name, flags);
}
