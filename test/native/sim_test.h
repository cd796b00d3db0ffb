/* SPDX-License-Identifier: GPL-2.0-only */
/* Helpers for tests of the simulator: its files, and fixtures that find violations and leaks. */
#ifndef TEST_NATIVE_SIM_TEST_H
#define TEST_NATIVE_SIM_TEST_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "amdgpu_sim.h"
#include "tests.h"

static inline void sim_write(const char *file, const char *text)
{
	assert_int_equal(amdgpu_sim_write(file, text), 0);
}

/* Reads the first number in @file. */
static inline long sim_number(const char *file)
{
	char text[8192];

	assert_true(amdgpu_sim_read(file, text, sizeof(text)) >= 0);
	return strtol(text, NULL, 10);
}

static inline int begin(void **state)
{
	(void)state;
	sim_write("violations", "0");
	return 0;
}

/* No test may cause a violation or leave an object behind. */
static inline int end(void **state)
{
	char text[8192], *rest = text, *line;
	bool clean = sim_number("violations") == 0;

	(void)state;
	sim_write("process_exit", "1");
	assert_true(amdgpu_sim_read("objects", text, sizeof(text)) >= 0);
	while ((line = strsep(&rest, "\n")) && *line) {
		if (strtol(strchr(line, ' '), NULL, 10)) {
			print_error("left behind: %s\n", line);
			clean = false;
		}
	}
	return clean ? 0 : -1;
}

#endif
