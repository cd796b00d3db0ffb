// SPDX-License-Identifier: GPL-2.0-only
/* Finds HIP's runtime of the suite. */
#include "hip.h"

#include <dlfcn.h>

#include "library.h"

const char *hip_open(struct hip *hip)
{
	static const char *const names[] = { "libamdhip64.so.7", "libamdhip64.so.6",
					     "libamdhip64.so.5" };
	void *library = NULL;

	for (unsigned int i = 0; !library && i < sizeof(names) / sizeof(*names); i++)
		library = dlopen(names[i], RTLD_NOW);
	if (!library)
		return "libamdhip64.so";
#define HIP_FIND(name, parameters)                           \
	if (!library_find(library, "hip" #name, &hip->name)) \
		return "hip" #name;
	HIP_FUNCTIONS(HIP_FIND)
#undef HIP_FIND
	return NULL;
}
