/* SPDX-License-Identifier: GPL-2.0-only */
/* The command line of a client: options with an argument, and flags. */
#ifndef SELFTEST_OPTIONS_H
#define SELFTEST_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

/* An option has one of the pointers. */
struct choice {
	const char *name;
	const char **text;
	uint32_t *number;
	uint64_t *large_number;
	bool *flag; /* has no argument */
	bool is_needed;
};

/* Fills what the rows point to; the last row is empty. False after the usage on standard error. */
bool options_parse(char **argv, const struct choice *choices);

#endif
