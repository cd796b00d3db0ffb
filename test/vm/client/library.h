/* SPDX-License-Identifier: GPL-2.0-only */
/* Calls of libraries that a client opens at run time, because they differ between suites. */
#ifndef CLIENT_LIBRARY_H
#define CLIENT_LIBRARY_H

#include <stdbool.h>

#include "report.h"

/* Opens the first library of @files that is there, and sets the pointers of @ret_functions to its
 * functions of these names, in their order. Both lists end with NULL. Reports what is missing. */
bool library_open(struct report *report, const char *const *files, const char *const *names,
		  void *ret_functions);

/* A member of the struct of the functions, whose status is an int, for their list. */
#define LIBRARY_MEMBER(name, parameters) int(*name) parameters;

/* Whether a call by a client had the status 0. Reports another one as a failure of the call. */
#define GOOD(client, call) library_good(&(client)->report, (client)->call, #call)
bool library_good(struct report *report, int status, const char *what);

#endif
