// SPDX-License-Identifier: GPL-2.0-only
#include "gpus.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int gpus_choose(struct report *report, const char *choice, struct gpus *gpus)
{
	struct gpus chosen = { .count = 0 };
	const char *at = strcmp(choice, "all") == 0 ? "" : choice;

	if (!gpus->count)
		return report_fail(report, -ENODEV, "no GPU is listed");
	if (!*at)
		return 0;
	while (*at) {
		char *end;
		unsigned long index = strtoul(at, &end, 10);

		if (end == at || (*end && *end != ','))
			return report_fail(report, -EINVAL, "--gpus %s: not a list of numbers",
					   choice);
		if (index >= (unsigned long)gpus->count)
			return report_fail(report, -ENODEV, "no GPU %lu: there are %d", index,
					   gpus->count);
		if (chosen.count == GPUS_MAX)
			return report_fail(report, -E2BIG, "--gpus %s: too many", choice);
		chosen.list[chosen.count++] = gpus->list[index];
		at = *end ? end + 1 : end;
	}
	*gpus = chosen;
	return 0;
}
