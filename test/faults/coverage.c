// SPDX-License-Identifier: GPL-2.0-only
/* Counts the results, and writes them to a file. */
#include "coverage.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "amdgpu_plugin_util.h"
#include "calls.h"

#define CALL_NAME(name, answer, faults) #name,
static const char *const call_names[] = { CALLS(CALL_NAME) };

#define NUM_CALLS ARRAY_SIZE(call_names)

/* Places by their hashes. */
struct call {
	const char *name;
	struct set met[PHASES], injected[PHASES];
	size_t injections;
};

struct coverage {
	FILE *file;
	const char *path;
	bool verbose;
	size_t good, bad, not_met_again;
	struct call calls[NUM_CALLS]; /* by name */
};

static int compare_calls(const void *one, const void *other)
{
	const struct call *a = one, *b = other;

	return strcmp(a->name, b->name);
}

struct coverage *coverage_new(const char *path, bool verbose)
{
	struct coverage *coverage = must(calloc(1, sizeof(*coverage)));

	coverage->path = path;
	coverage->verbose = verbose;
	coverage->file = fopen(path, "we");
	if (!coverage->file)
		fail("%s: %s", path, strerror(errno));
	for (size_t i = 0; i < NUM_CALLS; i++)
		coverage->calls[i].name = call_names[i];
	qsort(coverage->calls, NUM_CALLS, sizeof(*coverage->calls), compare_calls);
	return coverage;
}

void coverage_free(struct coverage *coverage)
{
	bool bad = ferror(coverage->file);

	if (fclose(coverage->file) || bad)
		fail("%s: cannot be written", coverage->path);
	for (size_t i = 0; i < NUM_CALLS; i++) {
		for (int phase = 0; phase < PHASES; phase++) {
			set_done(&coverage->calls[i].met[phase]);
			set_done(&coverage->calls[i].injected[phase]);
		}
	}
	free(coverage);
}

static struct call *find_call(struct coverage *coverage, const struct place *place)
{
	struct call wanted = { .name = place->name }, *call;

	call = bsearch(&wanted, coverage->calls, NUM_CALLS, sizeof(wanted), compare_calls);
	if (!call)
		fail("the injector has met %s, which it does not know", place->name);
	return call;
}

static void count(struct coverage *coverage, const struct injection *injection,
		  const struct trial *trial)
{
	struct call *call = find_call(coverage, &injection->place);

	coverage->good += !trial->wrong.length;
	coverage->bad += !!trial->wrong.length;
	if (trial->result == NOT_MET_AGAIN) {
		coverage->not_met_again++;
		return;
	}
	call->injections++;
	set_add(&call->injected[injection->phase], injection->place.hash);
}

static void print_log(const char *log)
{
	const char *line;
	size_t length;

	while ((line = piece_next(&log, "\n", &length)))
		printf("    %.*s\n", (int)length, line);
	printf("\n");
}

void coverage_add(struct coverage *coverage, const struct injection *injection,
		  const struct trial *trial, const struct symbols *symbols)
{
	_cleanup_(text_done) struct text words = { 0 };
	const char *result = result_names[trial->result], *wrong = text_string(&trial->wrong);

	count(coverage, injection, trial);
	injection_describe(injection, symbols, &words);
	(void)fprintf(coverage->file, "%s | %s%s%s\n", words.bytes, result,
		      *wrong ? " | WRONG: " : "", wrong);
	if (!*wrong)
		return;
	printf("faults: %s | %s: %s\n", words.bytes, result, wrong);
	if (coverage->verbose)
		print_log(text_string(&trial->log));
}

void coverage_add_place(struct coverage *coverage, const struct place *place, enum phase phase)
{
	if (*place->faults)
		set_add(&find_call(coverage, place)->met[phase], place->hash);
}

void coverage_add_test(struct coverage *coverage, bool good, const char *lines)
{
	(void)fputs(lines, coverage->file);
	coverage->good += good;
	coverage->bad += !good;
}

void coverage_print_calls(const struct coverage *coverage)
{
	size_t injections = 0;

	printf("faults: call | places met | places injected | injections\n");
	for (size_t i = 0; i < NUM_CALLS; i++) {
		const struct call *call = &coverage->calls[i];
		size_t met = call->met[DUMP].count + call->met[RESTORE].count;

		injections += call->injections;
		if (met)
			printf("faults: %s | %zu | %zu | %zu\n", call->name, met,
			       call->injected[DUMP].count + call->injected[RESTORE].count,
			       call->injections);
	}
	printf("faults: %zu injections, %zu more not met again; %s\n", injections,
	       coverage->not_met_again, coverage->path);
}

size_t coverage_good(const struct coverage *coverage)
{
	return coverage->good;
}

size_t coverage_bad(const struct coverage *coverage)
{
	return coverage->bad;
}
