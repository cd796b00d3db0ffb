/* SPDX-License-Identifier: GPL-2.0-only */
/* Calls of libraries that a client opens at run time. */
#ifndef CLIENT_LIBRARY_H
#define CLIENT_LIBRARY_H

#include <stdbool.h>

#include "report.h"

/* Sets a pointer to a function of a library. False: the library has none of that name. */
bool library_find(void *library, const char *name, void *ret_function);

/* Whether a call had the status 0. Reports another one as a failure of @what. */
bool library_good(struct report *report, int status, const char *what);

#endif
