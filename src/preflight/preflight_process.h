/* SPDX-License-Identifier: GPL-2.0-only */
/* The rules of a process as a whole. For the first broken rule a check logs one error line and
 * returns -EOPNOTSUPP. With AMDGPU_FORCE=1 and a rule that can be forced, it logs a warning and
 * goes on. */
#ifndef AMDGPU_PLUGIN_PREFLIGHT_PREFLIGHT_PROCESS_H
#define AMDGPU_PLUGIN_PREFLIGHT_PREFLIGHT_PROCESS_H

#include <sys/types.h>

#include "session/dump_session.h"

struct proc_mapping;

/* Whether this kernel cannot rebuild processes without BOs: -EINVAL; -EFAULT: it can; other errors:
 * the plugin cannot ask. */
int preflight_process_ask_without_bos(void);
/* Refuses process @pid, for which RESTORE would get no BOs, if the kernel takes no such process.
 * Logs on error. */
int preflight_process_refuse_without_bos(const struct dump_session *session, pid_t pid);
/* Before the first pause of a task: whether the end of the pause would crash the kernel, or
 * a CHECKPOINT of a process that is known to have BOs. */
int preflight_process_check_before_pause(struct dump_session *session);
/* Before the first CHECKPOINT of @process, which is paused: rules that need no CHECKPOINT. */
int preflight_process_check(const struct dumped_process *process);
/* The rule of a /dev/kfd that another task opens at a restore. The process has its vpids. */
int preflight_process_check_reopen(const struct dumped_process *process);
/* The rule of HSA_HIGH_PRECISION_MODE. */
int preflight_process_check_precision(const struct dumped_process *process);
/* For a process that runs on, of which /proc and sysfs have given the GPUs and the number of BOs,
 * or 0 if it is not known: the rules of a process that show early. Each broken rule has a line. */
int preflight_process_check_early(const struct dumped_process *process);
/* The rules of one mapping of the process. */
int preflight_process_check_mapping(const struct dumped_process *process,
				    const struct proc_mapping *mapping);

#endif
