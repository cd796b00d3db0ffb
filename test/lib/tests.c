// SPDX-License-Identifier: GPL-2.0-only
/* The list of tests of a program, and its main(). */
#include "tests.h"

#include <stdio.h>
#include <stdlib.h>

static struct {
	int line;
	struct CMUnitTest test;
} list[128];
static size_t count;

/* The linker does not keep the order of constructors. */
void tests_add(int line, const char *name, CMUnitTestFunction test, CMFixtureFunction setup,
	       CMFixtureFunction teardown)
{
	size_t i;

	if (count == sizeof(list) / sizeof(list[0]))
		abort();
	for (i = count++; i > 0 && list[i - 1].line > line; i--)
		list[i] = list[i - 1];
	list[i].line = line;
	list[i].test = (struct CMUnitTest){ name, test, setup, teardown, NULL };
}

int main(void)
{
	struct CMUnitTest tests[sizeof(list) / sizeof(list[0])];
	size_t i;

	/* Children of tests must not write what is in the buffer once more. */
	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	for (i = 0; i < count; i++)
		tests[i] = list[i].test;
	return _cmocka_run_group_tests("tests", tests, count, tests_begin, tests_end);
}
