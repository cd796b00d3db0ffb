// SPDX-License-Identifier: GPL-2.0-only
/* The program behind test/faults/run, which describes it. For each phase of a scenario it runs the
 * phase without a failure, plans the injections, tries them in parallel, and checks their results.
 */
#include <errno.h>
#include <linux/close_range.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "amdgpu_plugin_util.h"
#include "coverage.h"
#include "pool.h"
#include "sites.h"

#define REASONS "test/faults/unmet"

struct arguments {
	const char *build;
	unsigned int jobs;
	bool few, verbose; /* the short selection; whether output is printed */
	char **names;      /* the names of scenarios; none: all */
	int num_names;
};

struct exploration {
	const struct arguments *arguments;
	struct build build;
	struct symbols *symbols;
	struct coverage *coverage;
	struct set seen[PHASES]; /* the call sites of earlier scenarios, by hash */
	struct set met;          /* the lines of call sites */
};

/* Injections that are tried in parallel. */
struct round {
	struct exploration *exploration;
	struct trial_setup setup;
	const struct injections *injections;
	struct trial *trials;
	struct injections *behind; /* the call sites that were met for the first time */
};

static int usage(void)
{
	(void)fprintf(stderr, "usage: test/faults/run [-s] [-j JOBS] [-v] [SCENARIO...]\n");
	return 2;
}

static int parse_arguments(int argc, char **argv, struct arguments *arguments)
{
	long jobs = sysconf(_SC_NPROCESSORS_ONLN);

	for (int option; (option = getopt(argc, argv, "b:sj:v")) >= 0;) {
		switch (option) {
		case 'b':
			arguments->build = optarg;
			break;
		case 's':
			arguments->few = true;
			break;
		case 'j':
			jobs = strtol(optarg, NULL, 10);
			break;
		case 'v':
			arguments->verbose = true;
			break;
		default:
			return -EINVAL;
		}
	}
	arguments->names = argv + optind;
	arguments->num_names = argc - optind;
	arguments->jobs = (unsigned int)jobs;
	return !arguments->build || jobs < 1 || jobs > 1000 ? -EINVAL : 0;
}

static void folder_of(const struct exploration *exploration, unsigned int worker, struct text *text)
{
	text_add(text, "%s/%u", exploration->build.work.bytes, worker + 1);
}

static void make_folder(const char *path)
{
	if (mkdir(path, 0700) < 0)
		fail("%s: %s", path, strerror(errno));
}

static void work(void *argument, size_t job, unsigned int worker)
{
	_cleanup_(text_done) struct text folder = { 0 };
	struct round *round = argument;

	folder_of(round->exploration, worker, &folder);
	trial_run(&round->setup, &round->injections->items[job], folder.bytes, &round->trials[job]);
}

static bool is_behind(const struct injections *behind, const struct place *place)
{
	for (size_t i = 0; i < behind->count; i++) {
		if (behind->items[i].place.frames[0] == place->frames[0])
			return true;
	}
	return false;
}

static void take(void *argument, size_t job)
{
	struct round *round = argument;
	struct trial *trial = &round->trials[job];
	const struct injection *injection = &round->injections->items[job];

	coverage_add(round->exploration->coverage, injection, trial, round->exploration->symbols);
	for (size_t i = 0; i < trial->num_behind; i++) {
		if (!is_behind(round->behind, &trial->behind[i]))
			plan_behind(injection, &trial->behind[i], round->behind);
	}
	trial_done(trial);
}

/* Adds to @behind an injection for each call site that a failure has revealed, after the injection
 * that led there. */
static void try_all(struct exploration *exploration, const struct injections *injections,
		    const char *images, struct injections *behind)
{
	struct round round = {
		.exploration = exploration,
		.setup = { &exploration->build, exploration->symbols, &exploration->met, images },
		.injections = injections,
		.trials = must(calloc(injections->count + 1, sizeof(*round.trials))),
		.behind = behind,
	};
	const struct pool pool = { injections->count, work, take, &round };

	pool_run(&pool, exploration->arguments->jobs);
	free(round.trials);
}

static void note_met(struct exploration *exploration, const struct place *place)
{
	if (place_is_own(place))
		set_add(&exploration->met, place->frames[0]);
}

static void add_frames(struct set *frames, const struct place *place)
{
	for (uint64_t i = 0; i < place->num_frames; i++)
		set_add(frames, place->frames[i]);
}

static void note_places(struct exploration *exploration, const struct places *places,
			enum phase phase)
{
	_cleanup_(set_done) struct set frames = { 0 };

	for (size_t i = 0; i < places->count; i++) {
		add_frames(&frames, places->items[i]);
		coverage_add_place(exploration->coverage, places->items[i], phase);
		note_met(exploration, places->items[i]);
	}
	symbols_load(exploration->symbols, &frames);
}

static void note_behind(struct exploration *exploration, const struct injections *behind)
{
	_cleanup_(set_done) struct set frames = { 0 };

	for (size_t i = 0; i < behind->count; i++) {
		add_frames(&frames, &behind->items[i].place);
		coverage_add_place(exploration->coverage, &behind->items[i].place,
				   behind->items[i].phase);
	}
	symbols_load(exploration->symbols, &frames);
}

static void plan(struct exploration *exploration, const struct scenario *scenario, enum phase phase,
		 const struct places *places, struct injections *ret_injections)
{
	const struct injection kind = { .scenario = scenario, .phase = phase };

	if (exploration->arguments->few)
		plan_short(&kind, places, exploration->symbols, ret_injections);
	else
		plan_all(&kind, places, exploration->symbols, &exploration->seen[phase],
			 ret_injections);
}

/* The second round, for the call sites that the first has revealed. */
static void try_behind(struct exploration *exploration, const struct injections *behind,
		       const char *images)
{
	_cleanup_(injections_done) struct injections none = { 0 };

	note_behind(exploration, behind);
	if (exploration->arguments->few)
		return;
	try_all(exploration, behind, images, &none);
	for (size_t i = 0; i < behind->count; i++)
		note_met(exploration, &behind->items[i].place);
}

static void explore_phase(struct exploration *exploration, const struct scenario *scenario,
			  enum phase phase)
{
	_cleanup_(injections_done) struct injections injections = { 0 }, behind = { 0 };
	_cleanup_(places_done) struct places places = { 0 };
	_cleanup_(text_done) struct text images = { 0 };
	_cleanup_free_ struct table *table = NULL;
	size_t bad = coverage_bad(exploration->coverage);

	text_add(&images, "%s/images-%s", exploration->build.work.bytes, scenario->name);
	table = trial_without(&exploration->build, scenario, phase, images.bytes);
	places_list(table, &places);
	note_places(exploration, &places, phase);
	plan(exploration, scenario, phase, &places, &injections);
	try_all(exploration, &injections, images.bytes, &behind);
	try_behind(exploration, &behind, images.bytes);
	printf("faults: %s %s: %zu places, %zu injections, %zu wrong\n", scenario->name,
	       phase_names[phase], places.count,
	       injections.count + (exploration->arguments->few ? 0 : behind.count),
	       coverage_bad(exploration->coverage) - bad);
}

static bool is_chosen(const struct arguments *arguments, const struct scenario *scenario)
{
	for (int i = 0; i < arguments->num_names; i++) {
		if (scenario_find(arguments->names[i]) == scenario)
			return true;
	}
	return !arguments->num_names;
}

static void explore(struct exploration *exploration)
{
	const struct arguments *arguments = exploration->arguments;
	const struct sites_question question = { exploration->build.plugin.bytes, REASONS,
						 &exploration->met };
	bool ended = false;

	for (size_t i = 0; i < num_scenarios && !ended; i++) {
		if (!is_chosen(arguments, &scenarios[i]))
			continue;
		for (enum phase phase = DUMP; phase < PHASES; phase++)
			explore_phase(exploration, &scenarios[i], phase);
		ended = arguments->few;
	}
	coverage_print_calls(exploration->coverage);
	if (!arguments->few && !arguments->num_names)
		sites_check(&question, exploration->symbols, exploration->coverage);
}

static void exploration_init(struct exploration *exploration, const struct arguments *arguments)
{
	*exploration = (struct exploration){ .arguments = arguments };
	build_init(&exploration->build, arguments->build);
	make_folder(exploration->build.work.bytes);
	for (unsigned int i = 0; i < arguments->jobs; i++) {
		_cleanup_(text_done) struct text folder = { 0 };

		folder_of(exploration, i, &folder);
		make_folder(folder.bytes);
	}
	trial_make_old_images(&exploration->build);
	exploration->symbols = symbols_new(exploration->build.plugin.bytes);
	exploration->coverage = coverage_new(exploration->build.coverage.bytes, arguments->verbose);
}

static void exploration_done(struct exploration *exploration)
{
	coverage_free(exploration->coverage);
	symbols_free(exploration->symbols);
	build_done(&exploration->build);
	set_done(&exploration->met);
	for (int phase = 0; phase < PHASES; phase++)
		set_done(&exploration->seen[phase]);
}

int main(int argc, char **argv)
{
	struct arguments arguments = { 0 };
	struct exploration exploration;
	size_t good, bad;

	if (parse_arguments(argc, argv, &arguments) < 0)
		return usage();
	for (int i = 0; i < arguments.num_names; i++) {
		if (!scenario_find(arguments.names[i]))
			fail("there is no scenario %s", arguments.names[i]);
	}
	/* close inherited descriptors: the tests count their own */
	(void)close_range(3, ~0u, CLOSE_RANGE_CLOEXEC);
	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	exploration_init(&exploration, &arguments);
	explore(&exploration);
	good = coverage_good(exploration.coverage);
	bad = coverage_bad(exploration.coverage);
	exploration_done(&exploration);
	printf("%zu passed, %zu failed\n", good, bad);
	return good && !bad ? 0 : 1;
}
