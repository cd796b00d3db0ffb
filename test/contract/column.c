// SPDX-License-Identifier: GPL-2.0-only
/* Tries a rule with one other value of the table of kernels after the other. */
#include "column.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

/* amd and unchecked_handles are not among them: where they are set, rules leave out what crashes
 * such a driver. */
#define FLAGS(X)         \
	X(svm)           \
	X(exports)       \
	X(one_dmabuf)    \
	X(hive_imports)  \
	X(addressless)   \
	X(bos_required)  \
	X(event_types)   \
	X(pause_nests)   \
	X(event_page)    \
	X(user_ids)      \
	X(process_pasid) \
	X(contexts)      \
	X(checks_rings)

#define FLAG(field) { .name = #field, .offset = offsetof(struct kernel, field) },

static const struct flag {
	const char *name;
	size_t offset;
} flags[] = { FLAGS(FLAG) };

/* Bytes in the list of GEM handles. */
static const uint32_t units[] = { 0, 1, 4096 };

#define NUM_FLAGS (sizeof(flags) / sizeof(flags[0]))
#define NUM_UNITS (sizeof(units) / sizeof(units[0]))

_Static_assert(sizeof(struct kernel) <= 64,
	       "each offset is a bit of the fields that were asked for");

static bool *place_of(struct kernel *kernel, const struct flag *flag)
{
	return (bool *)((char *)kernel + flag->offset);
}

static bool value_of(const struct kernel *kernel, const struct flag *flag)
{
	return *(const bool *)((const char *)kernel + flag->offset);
}

static bool is_asked(uint64_t asked, size_t offset)
{
	return asked & 1ull << offset;
}

void column_init(struct column *column, const struct kernel *row)
{
	*column = (struct column){ .row = row, .seen = *row };
}

/* The values that make the rule hold. */
struct findings {
	unsigned int count;
	char *text;
	struct kernel last;
};

static void add(struct findings *findings, const struct kernel *kernel, const char *name,
		unsigned int value)
{
	size_t length = strlen(findings->text);

	findings->last = *kernel;
	snprintf(findings->text + length, COLUMN_TEXT - length, "%s%s=%u",
		 findings->count++ ? " or " : "", name, value);
}

static void try_flags(const struct kernel *row, const struct rule *rule, uint64_t asked,
		      column_try *holds, struct findings *findings)
{
	for (size_t i = 0; i < NUM_FLAGS; i++) {
		struct kernel other = *row;

		if (!is_asked(asked, flags[i].offset))
			continue;
		*place_of(&other, &flags[i]) ^= true;
		if (holds(rule, &other))
			add(findings, &other, flags[i].name, value_of(&other, &flags[i]));
	}
}

static void try_units(const struct kernel *row, const struct rule *rule, uint64_t asked,
		      column_try *holds, struct findings *findings)
{
	for (size_t i = 0; i < NUM_UNITS; i++) {
		struct kernel other = *row;

		other.alignment_unit = units[i];
		if (is_asked(asked, offsetof(struct kernel, alignment_unit)) &&
		    units[i] != row->alignment_unit && holds(rule, &other))
			add(findings, &other, "alignment_unit", units[i]);
	}
}

/* Takes over what differs from the row in @kernel. */
static void adopt(struct column *column, const struct kernel *kernel)
{
	for (size_t i = 0; i < NUM_FLAGS; i++) {
		if (value_of(kernel, &flags[i]) != value_of(column->row, &flags[i]))
			*place_of(&column->seen, &flags[i]) = value_of(kernel, &flags[i]);
	}
	if (kernel->alignment_unit != column->row->alignment_unit)
		column->seen.alignment_unit = kernel->alignment_unit;
}

bool column_explain(struct column *column, const struct rule *rule, uint64_t asked,
		    column_try *holds, char ret_text[static COLUMN_TEXT])
{
	struct findings findings = { .text = ret_text };

	ret_text[0] = '\0';
	try_flags(column->row, rule, asked, holds, &findings);
	try_units(column->row, rule, asked, holds, &findings);
	if (findings.count == 1)
		adopt(column, &findings.last);
	return findings.count > 0;
}

void column_print(const struct column *column)
{
	struct utsname system = { .release = "" };

	(void)uname(&system);
	printf("column of Linux %s: as %s", system.release, column->row->name);
	for (size_t i = 0; i < NUM_FLAGS; i++) {
		if (value_of(&column->seen, &flags[i]) != value_of(column->row, &flags[i]))
			printf(" %s=%u", flags[i].name, value_of(&column->seen, &flags[i]));
	}
	if (column->seen.alignment_unit != column->row->alignment_unit)
		printf(" alignment_unit=%u", column->seen.alignment_unit);
	printf("\n");
}
