/* SPDX-License-Identifier: GPL-2.0-only */
/* Parses a command line by a table. */
#include "options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct choice *find(const struct choice *choices, const char *name)
{
	while (choices->name && strcmp(choices->name, name) != 0)
		choices++;
	return choices->name ? choices : NULL;
}

static bool parse(char **argv, const struct choice *choices)
{
	while (*++argv) {
		const struct choice *choice = find(choices, *argv);

		if (!choice || (!choice->flag && !*++argv))
			return false;
		if (choice->flag)
			*choice->flag = true;
		else if (choice->text)
			*choice->text = *argv;
		else if (choice->number)
			*choice->number = (uint32_t)strtoul(*argv, NULL, 10);
		else
			*choice->large_number = strtoull(*argv, NULL, 10);
	}
	for (; choices->name; choices++)
		if (choices->is_needed &&
		    !(choices->text ? *choices->text != NULL : *choices->number))
			return false;
	return true;
}

bool options_parse(char **argv, const struct choice *choices)
{
	if (parse(argv, choices))
		return true;
	(void)fprintf(stderr, "usage: %s", argv[0]);
	for (; choices->name; choices++)
		(void)fprintf(stderr, choices->is_needed ? " %s%s" : " [%s%s]", choices->name,
			      choices->text   ? " TEXT"
			      : choices->flag ? ""
					      : " N");
	(void)fputc('\n', stderr);
	return false;
}
