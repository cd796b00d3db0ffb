/* SPDX-License-Identifier: GPL-2.0-only */
/* The rules of a process as a whole. For the first broken rule a check logs one error line and
 * returns -EOPNOTSUPP. With AMDGPU_FORCE=1 and a rule that can be forced, it logs a warning and
 * goes on. */
#ifndef AMDGPU_PLUGIN_PREFLIGHT_PREFLIGHT_PROCESS_H
#define AMDGPU_PLUGIN_PREFLIGHT_PREFLIGHT_PROCESS_H

#include <sys/types.h>

#include "session/dump_session.h"

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
/* CRIU copies memfds and unlinked files when it lists the mappings of a task (dump_filemap() in
 * proc_parse.c), before it shows /dev/kfd. With CRIU 4.0 and newer the plugin stops the queues
 * before that, in CHECKPOINT_DEVICES. Refuses a process, after CHECKPOINT, whose GPUs may have
 * written such a file after CRIU has copied it. */
int preflight_process_check_copies(const struct dumped_process *process);
/* Warns of an unlinked file that is too large for CRIU's default --ghost-limit: CRIU fails by it,
 * and its error does not name the option. CRIU's own limit is not known. */
void preflight_process_warn_of_ghost(const struct dumped_process *process);
/* The rules of one mapping of the process. */
int preflight_process_check_mapping(const struct dumped_process *process,
				    const struct proc_mapping *mapping);

/* Of a node of a topology: whether a job sees the GPU, and uses it. */
struct preflight_gpu {
	bool is_seen;
	bool is_used;
};

/* Warns of GPUs that a job sees and does not use: RESTORE takes a process only with as many GPUs as
 * it saw, so the job does not come back on a machine that has only the GPUs that it uses. Logs a
 * line if it uses others. @uses: one for each node. */
void preflight_process_warn_of_unused(const struct topology *topology,
				      const struct preflight_gpu *uses);
/* The same for all processes of a dump, after CHECKPOINT. A process uses a GPU on which it has
 * a queue or a BO. libhsakmt gives each GPU the page with its registers, which does not count.
 * -ENOMEM, logged. */
int preflight_process_check_unused(const struct dump_session *session);

#endif
