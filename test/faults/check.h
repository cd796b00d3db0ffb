/* SPDX-License-Identifier: GPL-2.0-only */
/* Checks a dump or restore in which a call failed. */
#ifndef TEST_FAULTS_CHECK_H
#define TEST_FAULTS_CHECK_H

#include <stdbool.h>

#include "process.h"

struct rules {
	bool dumps_again; /* a failed dump is repeated, if it has not ended CRIU */
	bool may_leave_pages, may_leave_images;
};

/* Whether the plugin reported a failure. Adds sentences about mistakes to @wrong, with "; " between
 * them. */
bool check_outcome(const struct outcome *outcome, const struct rules *rules, struct text *wrong);

/* Adds a sentence. */
void check_add(struct text *wrong, const char *format, ...) FORMAT(2);

#endif
