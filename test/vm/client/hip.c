// SPDX-License-Identifier: GPL-2.0-only
/* Finds HIP's runtime of the suite. */
#include "hip.h"

#include "library.h"

bool hip_open(struct report *report, struct hip *hip)
{
	static const char *const files[] = { "libamdhip64.so.7", "libamdhip64.so.6",
					     "libamdhip64.so.5", NULL };
#define HIP_NAME(name, parameters) "hip" #name,
	static const char *const names[] = { HIP_FUNCTIONS(HIP_NAME) NULL };
#undef HIP_NAME

	return library_open(report, files, names, hip);
}
