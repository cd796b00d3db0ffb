// SPDX-License-Identifier: GPL-2.0-only
/* Finds RCCL of the suite. */
#include "rccl.h"

#include <dlfcn.h>

#include "library.h"

const char *rccl_open(struct rccl *rccl)
{
	void *library = dlopen("librccl.so.1", RTLD_NOW);

	if (!library)
		return "librccl.so.1";
#define RCCL_FIND(name, parameters)                            \
	if (!library_find(library, "nccl" #name, &rccl->name)) \
		return "nccl" #name;
	RCCL_FUNCTIONS(RCCL_FIND)
#undef RCCL_FIND
	return NULL;
}
