// SPDX-License-Identifier: GPL-2.0-only
/* The knobs that are plain numbers, by name. The README describes each. */
#include "process.h"

#define KNOB(name, value) { #name, __builtin_offsetof(struct sim_knobs, name) },
static const struct {
	const char *name;
	u32 offset;
} knobs[] = { SIM_KNOBS(KNOB) };

static bool is_record_size(s64 value)
{
	return value >= SIM_PRIV_BO_MIN && value <= SIM_PRIV_BO_MAX && value % 8 == 0;
}

int sim_knob_set(struct sim *sim, const char *name, s64 value)
{
	u32 knob = 0, i;

	while (knob < ARRAY_SIZE(knobs) && strcmp(knobs[knob].name, name) != 0)
		knob++;
	if (knob == ARRAY_SIZE(knobs))
		return -ENOENT;
	if (strcmp(name, "bo_record_size") == 0 && !is_record_size(value))
		return -EINVAL;
	__atomic_store_n((s64 *)((char *)&sim->knobs + knobs[knob].offset), value,
			 __ATOMIC_RELAXED);
	/* threads that wait for the end of the hang check again */
	for (i = 0; i < sim->num_gpus; i++)
		sim_os_wake(&sim->gpus[i].job_wait);
	return 0;
}
