/* SPDX-License-Identifier: GPL-2.0-only */
/* The kernels whose driver the simulator can imitate. A personality is a set of values for the
 * knobs in which kernels differ. */
#ifndef SIM_KERNELS_H
#define SIM_KERNELS_H

#include "sim_os.h"

struct sim;

/* Sets each knob that differs between kernels to its value under the kernel @name. A later write to
 * a knob has priority. -EINVAL: there is no such kernel. */
int sim_kernel_set(struct sim *sim, const char *name);

#endif
