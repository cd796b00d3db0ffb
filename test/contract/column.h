/* SPDX-License-Identifier: GPL-2.0-only */
/* What a kernel does otherwise than its row of kernels.c says, in the words of that table. */
#ifndef CONTRACT_COLUMN_H
#define CONTRACT_COLUMN_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels.h"

#define COLUMN_TEXT 200

struct rule;

struct column {
	const struct kernel *row;
	/* The row, with the values that explain why rules fail. */
	struct kernel seen;
};

/* Whether a rule holds if the kernel is expected to do what @kernel says. */
typedef bool column_try(const struct rule *rule, const struct kernel *kernel);

void column_init(struct column *column, const struct kernel *row);

/* Looks for values with which a rule holds that fails with the row, one at a time: other values of
 * the fields for which the rule has @asked, a bit for the offset of each. Writes them to @ret_text,
 * such as "pause_nests=1". A value that is the only one goes to @column. Returns false if there is
 * none. */
bool column_explain(struct column *column, const struct rule *rule, uint64_t asked,
		    column_try *holds, char ret_text[static COLUMN_TEXT]);

/* Prints a line: what differs from the row. */
void column_print(const struct column *column);

#endif
