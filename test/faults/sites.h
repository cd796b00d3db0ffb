/* SPDX-License-Identifier: GPL-2.0-only */
/* Calls in the plugin's code that can fail, whether a scenario met them or not. */
#ifndef TEST_FAULTS_SITES_H
#define TEST_FAULTS_SITES_H

#include "coverage.h"

struct sites_question {
	const char *plugin;
	const char *reasons; /* a file: function, call (* for all), why no scenario meets it */
	const struct set *met;
};

/* Checks the call sites that no scenario has met, as one test: each needs its reason. */
void sites_check(const struct sites_question *question, struct symbols *symbols,
		 struct coverage *coverage);

#endif
