// SPDX-License-Identifier: GPL-2.0-only
/* Text and sets of numbers. */
#include "tools.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void fail(const char *format, ...)
{
	va_list arguments;

	(void)fputs("faults: ", stderr);
	va_start(arguments, format);
	(void)vfprintf(stderr, format, arguments);
	va_end(arguments);
	(void)fputc('\n', stderr);
	exit(1);
}

void *must(void *memory)
{
	if (!memory)
		fail("out of memory");
	return memory;
}

char *formatted(const char *format, va_list arguments)
{
	char *text;

	if (vasprintf(&text, format, arguments) < 0)
		fail("out of memory");
	return text;
}

void text_append(struct text *text, const char *bytes, size_t length)
{
	size_t wanted = text->length + length + 1;

	if (wanted > text->room) {
		text->room = wanted > 2 * text->room ? wanted : 2 * text->room;
		text->bytes = must(realloc(text->bytes, text->room));
	}
	memcpy(text->bytes + text->length, bytes, length);
	text->length += length;
	text->bytes[text->length] = '\0';
}

void text_vadd(struct text *text, const char *format, va_list arguments)
{
	char *added = formatted(format, arguments);

	text_append(text, added, strlen(added));
	free(added);
}

void text_add(struct text *text, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	text_vadd(text, format, arguments);
	va_end(arguments);
}

const char *text_string(const struct text *text)
{
	return text->bytes ? text->bytes : "";
}

void text_done(struct text *text)
{
	free(text->bytes);
	*text = (struct text){ 0 };
}

const char *piece_next(const char **rest, const char *ends, size_t *ret_length)
{
	const char *piece = *rest + strspn(*rest, ends);
	size_t length = strcspn(piece, ends);

	*rest = piece + length;
	*ret_length = length;
	return length ? piece : NULL;
}

bool starts_with(const char *text, const char *start)
{
	return strncmp(text, start, strlen(start)) == 0;
}

/* The index of @number, or where it belongs. */
static size_t set_find(const struct set *set, uint64_t number)
{
	size_t from = 0, to = set->count;

	while (from < to) {
		size_t middle = (from + to) / 2;

		if (set->numbers[middle] < number)
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

bool set_has(const struct set *set, uint64_t number)
{
	size_t at = set_find(set, number);

	return at < set->count && set->numbers[at] == number;
}

void set_add(struct set *set, uint64_t number)
{
	size_t at = set_find(set, number);

	if (at < set->count && set->numbers[at] == number)
		return;
	if (set->count == set->room) {
		set->room = 2 * set->room + 16;
		set->numbers = must(realloc(set->numbers, set->room * sizeof(*set->numbers)));
	}
	memmove(set->numbers + at + 1, set->numbers + at,
		(set->count - at) * sizeof(*set->numbers));
	set->numbers[at] = number;
	set->count++;
}

void set_done(struct set *set)
{
	free(set->numbers);
	*set = (struct set){ 0 };
}
