// SPDX-License-Identifier: GPL-2.0-only
/* Asks addr2line for many addresses at once, and remembers the answers. */
#include "symbols.h"

#include <stdlib.h>
#include <string.h>

#include "amdgpu_plugin_util.h"
#include "places.h"
#include "process.h"

struct symbol {
	uint64_t offset;
	char *function, *line;
};

struct symbols {
	const char *plugin;
	struct symbol *items; /* by offset */
	size_t count;
};

#define LIBRARY_NAME(file, name) name,
static const char *const library_names[] = { LIBRARIES(LIBRARY_NAME) };

struct symbols *symbols_new(const char *plugin)
{
	struct symbols *symbols = must(calloc(1, sizeof(*symbols)));

	symbols->plugin = plugin;
	return symbols;
}

void symbols_free(struct symbols *symbols)
{
	for (size_t i = 0; i < symbols->count; i++) {
		free(symbols->items[i].function);
		free(symbols->items[i].line);
	}
	free(symbols->items);
	free(symbols);
}

static int compare_symbols(const void *one, const void *other)
{
	const struct symbol *a = one, *b = other;

	return (a->offset > b->offset) - (a->offset < b->offset);
}

static const struct symbol *find(const struct symbols *symbols, uint64_t offset)
{
	struct symbol wanted = { .offset = offset };

	if (!symbols->count)
		return NULL;
	return bsearch(&wanted, symbols->items, symbols->count, sizeof(wanted), compare_symbols);
}

/* A return address may be on the line after the call. */
static void ask(const char *plugin, const struct set *offsets, struct text *ret_answer)
{
	_cleanup_(command_done) struct command command = { 0 };

	command_add(&command, "addr2line");
	command_add(&command, "-fse");
	command_add(&command, "%s", plugin);
	for (size_t i = 0; i < offsets->count; i++)
		command_add(&command, "%#lx", offsets->numbers[i] - 1);
	process_must(&command, ret_answer);
}

static char *copy_line(const char **rest)
{
	size_t length;
	const char *line = piece_next(rest, "\n", &length);

	if (!line)
		fail("addr2line says too little");
	return must(strndup(line, length));
}

/* addr2line prints two lines for each offset. */
static void take_answer(struct symbols *symbols, const struct set *offsets, const char *answer)
{
	size_t count = symbols->count + offsets->count;

	symbols->items = must(realloc(symbols->items, count * sizeof(*symbols->items)));
	for (size_t i = 0; i < offsets->count; i++) {
		struct symbol *symbol = &symbols->items[symbols->count++];
		char *discriminator;

		symbol->offset = offsets->numbers[i];
		symbol->function = copy_line(&answer);
		symbol->line = copy_line(&answer);
		discriminator = strstr(symbol->line, " (discriminator");
		if (discriminator)
			*discriminator = '\0';
	}
	qsort(symbols->items, symbols->count, sizeof(*symbols->items), compare_symbols);
}

void symbols_load(struct symbols *symbols, const struct set *frames)
{
	_cleanup_(set_done) struct set missing = { 0 };
	_cleanup_(text_done) struct text answer = { 0 };

	for (size_t i = 0; i < frames->count; i++) {
		if (!frame_library(frames->numbers[i]) && !find(symbols, frames->numbers[i]))
			set_add(&missing, frames->numbers[i]);
	}
	if (!missing.count)
		return;
	ask(symbols->plugin, &missing, &answer);
	take_answer(symbols, &missing, text_string(&answer));
}

static const struct symbol *known(const struct symbols *symbols, uint64_t frame)
{
	const struct symbol *symbol = find(symbols, frame);

	if (!symbol)
		fail("address %#lx has not been looked up", frame);
	return symbol;
}

const char *symbols_function(const struct symbols *symbols, uint64_t frame)
{
	return frame_library(frame) ? "" : known(symbols, frame)->function;
}

bool symbols_is_in(const struct symbols *symbols, const struct place *place, const char *function)
{
	for (uint64_t i = 0; i < place->num_frames; i++) {
		if (!strcmp(symbols_function(symbols, place->frames[i]), function))
			return true;
	}
	return false;
}

const char *symbols_line(const struct symbols *symbols, uint64_t frame)
{
	unsigned int library = frame_library(frame);

	return library ? library_names[library] : known(symbols, frame)->line;
}

void symbols_add_site(const struct symbols *symbols, uint64_t frame, struct text *text)
{
	unsigned int library = frame_library(frame);

	if (library)
		text_add(text, "%s+%#lx", library_names[library], frame_offset(frame));
	else
		text_add(text, "%s() %s", symbols_function(symbols, frame),
			 symbols_line(symbols, frame));
}
