/* SPDX-License-Identifier: GPL-2.0-only */
/* CRIU copies memfds and unlinked files when it lists the mappings of a task (dump_filemap() in
 * proc_parse.c), before it shows /dev/kfd. With CRIU 4.0 and newer the plugin stops the queues
 * before that, in CHECKPOINT_DEVICES. */
#ifndef AMDGPU_PLUGIN_PREFLIGHT_COPIED_MEMORY_H
#define AMDGPU_PLUGIN_PREFLIGHT_COPIED_MEMORY_H

struct dumped_process;

/* Refuses a process whose GPUs may have written such a file after CRIU has copied it. Logs on
 * error. */
int copied_memory_check(const struct dumped_process *process);

/* Warns of an unlinked file that is too large for CRIU's default --ghost-limit: CRIU fails by it,
 * and its error does not name the option. CRIU's own limit is not known. */
void copied_memory_warn(const struct dumped_process *process);

#endif
