/* SPDX-License-Identifier: GPL-2.0-only */
/* The KFD of this process, for the files here that use plain ioctls. gpus.c has it, because the
 * programs that share the other headers do not. */
#ifndef SELFTEST_PROCESS_H
#define SELFTEST_PROCESS_H

#include "raw_kfd.h"

/* After gpus_open(): a GPU with index I is gpu[I]. */
struct raw_process *process_get(void);

#endif
