/* SPDX-License-Identifier: GPL-2.0-only */
/* The KFD of this process, for the files here that use plain ioctls. gpus.c has it, because the
 * programs that share the other headers do not. */
#ifndef SELFTEST_PROCESS_H
#define SELFTEST_PROCESS_H

#include "gpus.h"
#include "raw_kfd.h"

/* After gpus_open(): a GPU with index I is gpu[I]. */
struct raw_process *process_get(void);
/* The GPUs that gpus_open() would open. Opens nothing. */
int gpus_list(struct report *report, const char *choice, struct gpus *ret_gpus);

#endif
