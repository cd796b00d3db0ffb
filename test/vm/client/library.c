// SPDX-License-Identifier: GPL-2.0-only
/* Opens libraries, and reports what fails. */
#include "library.h"

#include <dlfcn.h>
#include <string.h>

bool library_open(struct report *report, const char *const *files, const char *const *names,
		  void *ret_functions)
{
	void *library = NULL;

	for (size_t i = 0; !library && files[i]; i++)
		library = dlopen(files[i], RTLD_NOW);
	if (!library)
		return report_fail(report, false, "there is no %s", files[0]);
	for (size_t i = 0; names[i]; i++) {
		void *symbol = dlsym(library, names[i]);

		if (!symbol)
			return report_fail(report, false, "%s has no %s", files[0], names[i]);
		memcpy((char *)ret_functions + i * sizeof(symbol), &symbol, sizeof(symbol));
	}
	return true;
}

bool library_good(struct report *report, int status, const char *what)
{
	return !status || report_fail(report, false, "%s: the status is %d", what, status);
}
