/* SPDX-License-Identifier: GPL-2.0-only */
/* Growing text, its lines and words, and sets of numbers. Without memory the program ends. */
#ifndef TEST_FAULTS_TOOLS_H
#define TEST_FAULTS_TOOLS_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FORMAT(at) __attribute__((format(printf, at, (at) + 1)))

/* Prints one line on stderr and ends the program. */
void fail(const char *format, ...) FORMAT(1) __attribute__((noreturn));
/* Returns the allocation; the program ends if it is NULL. */
void *must(void *memory);

/* The text that printf() would print. The caller frees it. */
char *formatted(const char *format, va_list arguments) __attribute__((format(printf, 1, 0)));

/* Empty at first: { 0 }. */
struct text {
	char *bytes; /* ends with a 0; NULL while nothing has been added */
	size_t length, room;
};

void text_append(struct text *text, const char *bytes, size_t length);
void text_add(struct text *text, const char *format, ...) FORMAT(2);
void text_vadd(struct text *text, const char *format, va_list arguments)
	__attribute__((format(printf, 2, 0)));
/* The text, which may be empty. It stays owned by @text. */
const char *text_string(const struct text *text);
void text_done(struct text *text);

/* The next piece of *@rest between characters of @ends, and moves *@rest on. Skips empty pieces.
 * NULL after the last piece. */
const char *piece_next(const char **rest, const char *ends, size_t *ret_length);
bool starts_with(const char *text, const char *start);

/* Empty at first: { 0 }. */
struct set {
	uint64_t *numbers; /* ascending */
	size_t count, room;
};

bool set_has(const struct set *set, uint64_t number);
void set_add(struct set *set, uint64_t number);
void set_done(struct set *set);

#endif
