/* SPDX-License-Identifier: GPL-2.0-only */
/* The end of tasks that CRIU traces. */
#ifndef AMDGPU_PLUGIN_RESTORE_REAP_H
#define AMDGPU_PLUGIN_RESTORE_REAP_H

#include <sys/types.h>

/* Kills process @pid, which this thread traces, and waits until waitpid() reports its end. Leaves
 * that report to the caller's next waitpid(). Returns after some seconds without progress, too. */
void reap_kill(pid_t pid);

#endif
