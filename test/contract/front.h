/* SPDX-License-Identifier: GPL-2.0-only */
/* What differs between the worlds in which the rules run: native.c is the simulator in this
 * process, machine.c the driver of the kernel. */
#ifndef CONTRACT_FRONT_H
#define CONTRACT_FRONT_H

#include <stdbool.h>

#include "kernels.h"

/* The worlds, which are bits in the table of differences. */
enum world { WORLD_NATIVE = 1, WORLD_TRUE = 2 };

/* Finds the driver, and the row of its kernel. @kernel is the word of the command line, or NULL.
 * *@ret_is_known is false if the row is that of another kernel. Exits with a line that says why if
 * there is no driver. */
enum world front_open(const char *kernel, const struct kernel **ret_kernel, bool *ret_is_known);

/* The number of violations that the simulator has counted for this process. The emulated GPU counts
 * violations, too, and the scenario asks for them at its end. */
long front_violations(void);

#endif
