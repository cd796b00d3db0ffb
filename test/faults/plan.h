/* SPDX-License-Identifier: GPL-2.0-only */
/* Selects the calls that will fail, and their faults. */
#ifndef TEST_FAULTS_PLAN_H
#define TEST_FAULTS_PLAN_H

#include <stdbool.h>

#include "places.h"
#include "scenarios.h"
#include "symbols.h"

/* The @n-th call at a place fails with @fault. */
struct injection {
	const struct scenario *scenario;
	enum phase phase;
	struct place place;
	uint64_t n;
	char fault[FAULT_SIZE];
	/* another injection that leads there; NULL: none is needed */
	const struct injection *after;
};

/* Empty at first: { 0 }. */
struct injections {
	struct injection *items;
	size_t count, room;
};

void injections_add(struct injections *injections, const struct injection *injection);
void injections_done(struct injections *injections);

/* Selects injections of a scenario and phase by @kind: at each place the first call with all its
 * faults, a middle call and the last. Of places in @seen, which earlier scenarios had, it takes one
 * for each call site and caller of the function there, and its first call once. Adds to @seen. */
void plan_all(const struct injection *kind, const struct places *places,
	      const struct symbols *symbols, struct set *seen, struct injections *ret_injections);
/* Selects each call site once. */
void plan_short(const struct injection *kind, const struct places *places,
		const struct symbols *symbols, struct injections *ret_injections);
/* Selects a call at @place that is met only after @after has failed. */
void plan_behind(const struct injection *after, const struct place *place,
		 struct injections *injections);

/* Formats the injection for FAULTS_INJECT. */
void injection_add_words(const struct injection *injection, struct text *text);
/* The words: call site, call, place, scenario and phase, number of the call, fault. */
void injection_describe(const struct injection *injection, const struct symbols *symbols,
			struct text *text);

#endif
