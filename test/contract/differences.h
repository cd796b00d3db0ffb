/* SPDX-License-Identifier: GPL-2.0-only */
/* The rules that do not hold, or cannot be tried, in one of the worlds, each with its reason.
 * docs/testing.md has the same table. */
#ifndef CONTRACT_DIFFERENCES_H
#define CONTRACT_DIFFERENCES_H

#include <stdbool.h>

#include "front.h"

struct difference {
	const char *rule;
	unsigned int worlds; /* bits of enum world */
	const char *kernel;  /* NULL: all */
	/* The rule is tried, and has to fail: otherwise the row is out of date. */
	bool tried;
	const char *reason;
};

/* The row for a rule, or NULL if the rule has to hold. */
const struct difference *difference_find(const char *rule, enum world world,
					 const struct kernel *kernel);

#endif
