/* SPDX-License-Identifier: GPL-2.0-only */
/* Mistakes of clients that would hang real hardware, fault, or corrupt memory silently. They are
 * counted and kept as text, so that a test fails even if the client did not check its errors. */
#ifndef SIM_VIOLATION_H
#define SIM_VIOLATION_H

#include "sim_env.h"

#define SIM_VIOLATION_TEXT 160
#define SIM_VIOLATIONS     64

struct sim;

struct sim_violations {
	struct sim_lock lock;
	u64 count;
	char text[SIM_VIOLATIONS][SIM_VIOLATION_TEXT];
};

void sim_violations_init(struct sim_violations *violations);
__attribute__((format(printf, 2, 3))) void sim_violation(struct sim *sim, const char *format, ...);
void sim_violations_clear(struct sim_violations *violations);
int sim_violations_print(struct sim_violations *violations, char *text, u32 size);

#endif
