/* SPDX-License-Identifier: GPL-2.0-only */
/* Calls that must fail: the test arms a name, a count and an errno, and the model asks by name
 * before it does anything. The callers choose the names. */
#ifndef SIM_FAULT_H
#define SIM_FAULT_H

#include "sim_env.h"

#define SIM_FAULT_NAME 48
#define SIM_FAULTS     32

struct sim_fault {
	char name[SIM_FAULT_NAME];
	u32 countdown; /* 0: the slot is free */
	s32 error;     /* negative */
};

struct sim_faults {
	struct sim_lock lock;
	u32 armed; /* atomic: read without the lock */
	struct sim_fault slot[SIM_FAULTS];
};

void sim_faults_init(struct sim_faults *faults);
/* 0, or the negative errno of this call. A colon joins @group and @name. */
int sim_fault(struct sim_faults *faults, const char *group, const char *name);
/* A line of the test: "group:NAME n errno" or "clear". -EINVAL, -ENOSPC. */
int sim_faults_command(struct sim_faults *faults, const char *line);

#endif
