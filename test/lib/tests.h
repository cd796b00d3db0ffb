/* SPDX-License-Identifier: GPL-2.0-only */
/* The tests of a program of cmocka. TEST_WITH(name, setup, teardown) { ... } defines one and adds
 * it to the list. tests.c has main(), which runs the list in the order of the source. */
#ifndef TEST_LIB_TESTS_H
#define TEST_LIB_TESTS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* Adds a test to the list. Constructors call it, so before main(). */
void tests_add(int line, const char *name, CMUnitTestFunction test, CMFixtureFunction setup,
	       CMFixtureFunction teardown);

/* A program that defines these has something to do before its first or after its last test. They
 * return 0, or another number if that fails. */
int tests_begin(void **state) __attribute__((weak));
int tests_end(void **state) __attribute__((weak));

#define TEST_WITH(name, setup, teardown)                                \
	static void name(void **state);                                 \
	static __attribute__((constructor)) void tests_add_##name(void) \
	{                                                               \
		tests_add(__LINE__, #name, name, setup, teardown);      \
	}                                                               \
	static void name(void **state __attribute__((unused)))

#define PLAIN_TEST(name) TEST_WITH(name, NULL, NULL)

#endif
