// SPDX-License-Identifier: GPL-2.0-only
/* Selects injections, and describes each in words. */
#include "plan.h"

#include <stdlib.h>
#include <string.h>

#include "amdgpu_plugin_util.h"

/* Errors of these functions that are an answer of the driver, not a failure: CHECKPOINT reports a
 * process that is not paused, and GET_DMABUF_INFO a dma-buf of another driver. */
static const struct {
	const char *function, *call, *fault;
} answers[] = {
	{ "is_paused", "ioctl", "EINVAL" },
	{ "is_paused", "ioctl", "EBADF" },
	{ "kfd_is_dmabuf", "ioctl", "EINVAL" },
};

void injections_add(struct injections *injections, const struct injection *injection)
{
	if (injections->count == injections->room) {
		injections->room = 2 * injections->room + 16;
		injections->items =
			must(realloc(injections->items, injections->room * sizeof(*injection)));
	}
	injections->items[injections->count++] = *injection;
}

void injections_done(struct injections *injections)
{
	free(injections->items);
	*injections = (struct injections){ 0 };
}

static bool is_answer(const struct place *place, const char *fault, const struct symbols *symbols)
{
	for (size_t i = 0; i < ARRAY_SIZE(answers); i++) {
		if (!strcmp(answers[i].fault, fault) && !strcmp(answers[i].call, place->name) &&
		    symbols_is_in(symbols, place, answers[i].function))
			return true;
	}
	return false;
}

static void failures(const struct place *place, const struct symbols *symbols,
		     struct faults *ret_faults)
{
	struct faults all;

	place_faults(place, &all);
	ret_faults->count = 0;
	for (size_t i = 0; i < all.count; i++) {
		if (!is_answer(place, all.names[i], symbols))
			memcpy(ret_faults->names[ret_faults->count++], all.names[i], FAULT_SIZE);
	}
}

static void add(struct injections *injections, const struct injection *kind, uint64_t n,
		const char *fault)
{
	struct injection injection = *kind;

	injection.n = n;
	(void)snprintf(injection.fault, sizeof(injection.fault), "%s", fault);
	injections_add(injections, &injection);
}

static void add_new_place(struct injections *injections, const struct injection *kind,
			  const struct faults *faults)
{
	uint64_t last = kind->place.count, middle = (last + 1) / 2;

	for (size_t i = 0; i < faults->count; i++)
		add(injections, kind, 1, faults->names[i]);
	if (middle != 1 && middle != last)
		add(injections, kind, middle, faults_hardest(faults));
	if (last != 1)
		add(injections, kind, last, faults_hardest(faults));
}

static bool is_same_site(const struct place *a, const struct place *b)
{
	return !strcmp(a->name, b->name) && a->detail == b->detail &&
	       place_own_frame(a) == place_own_frame(b) &&
	       frame_library(a->frames[0]) == frame_library(b->frames[0]);
}

static bool has_same_caller(const struct place *a, const struct place *b)
{
	return is_same_site(a, b) && place_caller_frame(a) == place_caller_frame(b);
}

static bool is_planned(const struct injections *injections, const struct place *place,
		       bool (*alike)(const struct place *, const struct place *))
{
	for (size_t i = 0; i < injections->count; i++) {
		if (alike(&injections->items[i].place, place))
			return true;
	}
	return false;
}

void plan_all(const struct injection *kind, const struct places *places,
	      const struct symbols *symbols, struct set *seen, struct injections *ret_injections)
{
	struct injection next = *kind;
	struct faults faults;

	for (size_t i = 0; i < places->count; i++) {
		next.place = *places->items[i];
		failures(&next.place, symbols, &faults);
		if (!faults.count)
			continue;
		if (!set_has(seen, next.place.hash))
			add_new_place(ret_injections, &next, &faults);
		else if (!is_planned(ret_injections, &next.place, has_same_caller))
			add(ret_injections, &next, 1, faults_hardest(&faults));
		set_add(seen, next.place.hash);
	}
}

/* All files are opened in few functions, so the callers of these count as sites. */
void plan_short(const struct injection *kind, const struct places *places,
		const struct symbols *symbols, struct injections *ret_injections)
{
	struct injection next = *kind;
	struct faults faults;

	for (size_t i = 0; i < places->count; i++) {
		next.place = *places->items[i];
		failures(&next.place, symbols, &faults);
		if (!faults.count ||
		    is_planned(ret_injections, &next.place,
			       place_opens(&next.place) ? has_same_caller : is_same_site))
			continue;
		add(ret_injections, &next, 1, faults_hardest(&faults));
		if (place_opens(&next.place))
			add(ret_injections, &next, 1, "EINTR");
	}
}

void plan_behind(const struct injection *after, const struct place *place,
		 struct injections *injections)
{
	struct injection next = { after->scenario, after->phase, *place, .after = after };
	struct faults faults;

	place_faults(place, &faults);
	add(injections, &next, 1, faults_hardest(&faults));
}

void injection_add_words(const struct injection *injection, struct text *text)
{
	if (injection->after) {
		injection_add_words(injection->after, text);
		text_add(text, " ");
	}
	text_add(text, "%lx %lu %s", injection->place.hash, injection->n, injection->fault);
}

void injection_describe(const struct injection *injection, const struct symbols *symbols,
			struct text *text)
{
	const struct place *place = &injection->place;

	symbols_add_site(symbols, place_own_frame(place), text);
	text_add(text, " | ");
	place_add_call(place, text);
	for (uint64_t i = 0; i < place->num_frames; i++)
		text_add(text, "%s%s", i ? " < " : " | ", symbols_line(symbols, place->frames[i]));
	text_add(text, " | %s %s | %lu of %lu | %s", injection->scenario->name,
		 phase_names[injection->phase], injection->n, place->count, injection->fault);
	if (!injection->after)
		return;
	text_add(text, " after %s of ", injection->after->fault);
	symbols_add_site(symbols, place_own_frame(&injection->after->place), text);
}
