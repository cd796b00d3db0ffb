// SPDX-License-Identifier: GPL-2.0-only
/* Finds calls in the plugin's machine code, as objdump prints it, and reasons in a file. */
#include "sites.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "amdgpu_plugin_util.h"
#include "calls.h"
#include "process.h"

struct site {
	uint64_t offset; /* the return address of the call */
	const char *call;
};

struct sites {
	struct site *items; /* ascending */
	size_t count;
};

struct reason {
	char function[128], call[64], text[512];
};

struct reasons {
	struct reason *items;
	size_t count;
};

static const struct {
	const char *name, *faults;
} calls[] = {
#define CALL_ROW(name, answer, faults) { #name, faults },
	CALLS(CALL_ROW)
};

static void sites_done(struct sites *sites)
{
	free(sites->items);
}

static void reasons_done(struct reasons *reasons)
{
	free(reasons->items);
}

/* NULL: the injector cannot make any of them fail. */
static const char *find_call(const char *name, size_t length)
{
	for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
		if (*calls[i].faults && strlen(calls[i].name) == length &&
		    !strncmp(calls[i].name, name, length))
			return calls[i].name;
	}
	return NULL;
}

/* "0000000000001234 <name>:" begins a function. */
static bool is_function(const char *line, size_t length)
{
	return isxdigit(*line) && length > 2 && !strncmp(line + length - 2, ">:", 2);
}

/* protobuf-c makes a function for each message; the plugin unpacks by the descriptor. */
static bool is_generated(const char *line, size_t length)
{
	static const char end[] = "__unpack>:";

	return length >= strlen(end) && !strncmp(line + length - strlen(end), end, strlen(end));
}

/* "    1234:	call   1040 <name@plt>": the name's call, or NULL. */
static const char *called(const char *code, size_t length)
{
	const char *name, *at;

	if (!starts_with(code, "call"))
		return NULL;
	name = memrchr(code, '<', length);
	at = name ? memchr(name, '@', (size_t)(code + length - name)) : NULL;
	return at ? find_call(name + 1, (size_t)(at - name) - 1) : NULL;
}

static void add_site(struct sites *sites, uint64_t offset, const char *call)
{
	sites->items = must(realloc(sites->items, (sites->count + 1) * sizeof(*sites->items)));
	sites->items[sites->count++] = (struct site){ offset, call };
}

/* The return address identifies a call site. */
static void find_sites(const char *code, struct sites *ret_sites)
{
	const char *line, *call = NULL;
	bool generated = false;
	size_t length;

	while ((line = piece_next(&code, "\n", &length))) {
		uint64_t offset;
		int text = 0;

		if (is_function(line, length))
			generated = is_generated(line, length);
		if (generated || sscanf(line, " %lx: %n", &offset, &text) != 1 || !text)
			continue;
		if (call)
			add_site(ret_sites, offset, call);
		call = called(line + text, length - (size_t)text);
	}
}

static void sites_read(const char *plugin, struct sites *ret_sites)
{
	static const char *const words[] = { "objdump", "-d", "--no-show-raw-insn" };
	_cleanup_(command_done) struct command command = { 0 };
	_cleanup_(text_done) struct text code = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		command_add(&command, "%s", words[i]);
	command_add(&command, "%s", plugin);
	process_must(&command, &code);
	find_sites(text_string(&code), ret_sites);
}

static void reasons_read(const char *path, struct reasons *ret_reasons)
{
	_cleanup_fclose_ FILE *file = fopen(path, "re");
	struct reason reason;
	char line[1024];

	if (!file)
		fail("%s: %s", path, strerror(errno));
	while (fgets(line, sizeof(line), file)) {
		if (*line == '#' || *line == '\n')
			continue;
		if (sscanf(line, "%127s %63s %511[^\n]", reason.function, reason.call,
			   reason.text) != 3)
			fail("%s: what is this: %s", path, line);
		ret_reasons->items = must(
			realloc(ret_reasons->items, (ret_reasons->count + 1) * sizeof(reason)));
		ret_reasons->items[ret_reasons->count++] = reason;
	}
}

static const char *find_reason(const struct reasons *reasons, const char *function,
			       const char *call)
{
	for (size_t i = 0; i < reasons->count; i++) {
		const struct reason *reason = &reasons->items[i];

		if (!strcmp(reason->function, function) &&
		    (!strcmp(reason->call, call) || !strcmp(reason->call, "*")))
			return reason->text;
	}
	return NULL;
}

static bool same_line(const struct site *a, const struct site *b, const struct symbols *symbols)
{
	return !strcmp(a->call, b->call) &&
	       !strcmp(symbols_line(symbols, a->offset), symbols_line(symbols, b->offset)) &&
	       !strcmp(symbols_function(symbols, a->offset), symbols_function(symbols, b->offset));
}

/* The compiler may have duplicated one. */
static bool is_met(const struct sites *sites, const struct site *site, const struct set *met,
		   const struct symbols *symbols)
{
	if (set_has(met, site->offset))
		return true;
	for (size_t i = 0; i < sites->count; i++) {
		if (set_has(met, sites->items[i].offset) &&
		    same_line(&sites->items[i], site, symbols))
			return true;
	}
	return false;
}

static void load_symbols(const struct sites *sites, struct symbols *symbols)
{
	_cleanup_(set_done) struct set offsets = { 0 };

	for (size_t i = 0; i < sites->count; i++)
		set_add(&offsets, sites->items[i].offset);
	symbols_load(symbols, &offsets);
}

static void add_unmet(const struct site *site, const char *reason, const struct symbols *symbols,
		      struct text *lines)
{
	text_add(lines, "unmet: ");
	symbols_add_site(symbols, site->offset, lines);
	text_add(lines, " | %s | %s\n", site->call, reason ? reason : "NO REASON");
}

void sites_check(const struct sites_question *question, struct symbols *symbols,
		 struct coverage *coverage)
{
	_cleanup_(sites_done) struct sites sites = { 0 };
	_cleanup_(reasons_done) struct reasons reasons = { 0 };
	_cleanup_(text_done) struct text lines = { 0 }, complaints = { 0 };
	size_t unmet = 0, unexplained = 0;

	sites_read(question->plugin, &sites);
	reasons_read(question->reasons, &reasons);
	load_symbols(&sites, symbols);
	for (size_t i = 0; i < sites.count; i++) {
		const struct site *site = &sites.items[i];
		const char *reason;

		if (is_met(&sites, site, question->met, symbols))
			continue;
		reason = find_reason(&reasons, symbols_function(symbols, site->offset), site->call);
		add_unmet(site, reason, symbols, &lines);
		unmet++;
		if (reason)
			continue;
		text_add(&complaints, "faults: ");
		add_unmet(site, reason, symbols, &complaints);
		unexplained++;
	}
	printf("faults: %zu call sites in the plugin, %zu of them unmet, %zu of those without a reason\n%s",
	       sites.count, unmet, unexplained, text_string(&complaints));
	coverage_add_test(coverage, !unexplained, text_string(&lines));
}
