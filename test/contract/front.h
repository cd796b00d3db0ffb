/* SPDX-License-Identifier: GPL-2.0-only */
/* What differs between the worlds in which the rules run: native.c is the simulator in this
 * process, machine.c a driver in the kernel. */
#ifndef CONTRACT_FRONT_H
#define CONTRACT_FRONT_H

#include <stdbool.h>

#include "kernels.h"

/* The worlds, which are bits in the table of differences. */
enum world { WORLD_NATIVE = 1, WORLD_MODULE = 2, WORLD_TRUE = 4 };

/* Finds the driver, and the row of its kernel. @kernel is the word of the command line, or NULL.
 * Exits with a line that says why if there is no driver. */
enum world front_open(const char *kernel, const struct kernel **ret_kernel);

/* The number of violations that the driver has counted for this process, or for all of them. */
long front_violations(void);
/* Whether a process counts its own violations. Otherwise they are counted for all. */
bool front_counts_own(void);
void front_clear_violations(void);

#endif
