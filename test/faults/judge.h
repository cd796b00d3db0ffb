/* SPDX-License-Identifier: GPL-2.0-only */
/* What is wrong with a dump or restore in which a call failed. */
#ifndef TEST_FAULTS_JUDGE_H
#define TEST_FAULTS_JUDGE_H

#include <stdbool.h>

#include "process.h"

struct rules {
	bool dumps_again; /* it was a dump that is made again where it fails */
	bool may_leave_pages, may_leave_images;
};

/* Whether the plugin said that it failed. Sentences are added to @wrong, "; " between them. */
bool judge(const struct outcome *outcome, const struct rules *rules, struct text *wrong);

/* Adds another. */
void judge_add(struct text *wrong, const char *format, ...) FORMAT(2);

#endif
