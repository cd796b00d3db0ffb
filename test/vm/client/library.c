// SPDX-License-Identifier: GPL-2.0-only
/* What clients of stock libraries have in common. */
#include "library.h"

#include <dlfcn.h>
#include <string.h>

bool library_find(void *library, const char *name, void *ret_function)
{
	void *symbol = dlsym(library, name);

	memcpy(ret_function, &symbol, sizeof(symbol));
	return symbol != NULL;
}

bool library_good(struct report *report, int status, const char *what)
{
	return !status || report_fail(report, false, "%s: the status is %d", what, status);
}
