// SPDX-License-Identifier: GPL-2.0-only
/* Keeps the armed faults, and fires each once. The callers know the ioctls. */
#include "fault.h"

void sim_faults_init(struct sim_faults *faults)
{
	memset(faults, 0, sizeof(*faults));
	sim_lock_init(&faults->lock);
}

static bool name_matches(const char *armed, const char *group, const char *name)
{
	size_t length = strlen(group);

	return strncmp(armed, group, length) == 0 && armed[length] == ':' &&
	       strcmp(armed + length + 1, name) == 0;
}

int sim_fault(struct sim_faults *faults, const char *group, const char *name)
{
	int error = 0;
	u32 i;

	if (!__atomic_load_n(&faults->armed, __ATOMIC_RELAXED))
		return 0;
	sim_lock(&faults->lock);
	for (i = 0; i < SIM_FAULTS; i++) {
		struct sim_fault *fault = &faults->slot[i];

		if (!fault->countdown || !name_matches(fault->name, group, name))
			continue;
		if (--fault->countdown)
			continue;
		(void)__atomic_sub_fetch(&faults->armed, 1, __ATOMIC_RELAXED);
		if (!error)
			error = fault->error;
	}
	sim_unlock(&faults->lock);
	return error;
}

static int arm(struct sim_faults *faults, const struct sim_fault *fault)
{
	int ret = -ENOSPC;
	u32 i;

	sim_lock(&faults->lock);
	for (i = 0; i < SIM_FAULTS; i++) {
		if (faults->slot[i].countdown)
			continue;
		faults->slot[i] = *fault;
		(void)__atomic_add_fetch(&faults->armed, 1, __ATOMIC_RELAXED);
		ret = 0;
		break;
	}
	sim_unlock(&faults->lock);
	return ret;
}

static void disarm_all(struct sim_faults *faults)
{
	sim_lock(&faults->lock);
	memset(faults->slot, 0, sizeof(faults->slot));
	__atomic_store_n(&faults->armed, 0, __ATOMIC_RELAXED);
	sim_unlock(&faults->lock);
}

int sim_faults_command(struct sim_faults *faults, const char *line)
{
	struct sim_fault fault = { .name = "" };
	int length = 0;

	/* the width is that of the name */
	if (sscanf(line, "%47s %u %d %n", fault.name, &fault.countdown, &fault.error, &length) <
	    3) {
		if (strcmp(fault.name, "clear") != 0)
			return -EINVAL;
		disarm_all(faults);
		return 0;
	}
	if (!strchr(fault.name, ':') || !fault.countdown || !fault.error || line[length])
		return -EINVAL;
	fault.error = -abs(fault.error);
	return arm(faults, &fault);
}
