// SPDX-License-Identifier: GPL-2.0-only
/* Counts violations and remembers the newest. The callers decide what is one. */
#include "violation.h"
#include "sim.h"

void sim_violations_init(struct sim_violations *violations)
{
	memset(violations, 0, sizeof(*violations));
	sim_lock_init(&violations->lock);
}

void sim_violation(struct sim *sim, const char *format, ...)
{
	struct sim_violations *violations = &sim->violations;
	char text[SIM_VIOLATION_TEXT];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	sim_lock(&violations->lock);
	memcpy(violations->text[violations->count % SIM_VIOLATIONS], text, sizeof(text));
	violations->count++;
	sim_unlock(&violations->lock);
	(void)fprintf(stderr, "amdgpu_sim: %s\n", text);
}

void sim_violations_clear(struct sim_violations *violations)
{
	sim_lock(&violations->lock);
	violations->count = 0;
	sim_unlock(&violations->lock);
}

int sim_violations_print(struct sim_violations *violations, char *text, u32 size)
{
	u64 first, i;
	u32 used;

	sim_lock(&violations->lock);
	used = (u32)snprintf(text, size, "%llu\n", violations->count);
	first = violations->count > SIM_VIOLATIONS ? violations->count - SIM_VIOLATIONS : 0;
	for (i = first; i < violations->count && used < size; i++)
		used += (u32)snprintf(text + used, size - used, "%s\n",
				      violations->text[i % SIM_VIOLATIONS]);
	sim_unlock(&violations->lock);
	return (int)min(used, size - 1);
}
