// SPDX-License-Identifier: GPL-2.0-only
/* Prepares the directory, runs the host, checks the result, and restores the images of a dump. */
#include "trial.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "amdgpu_plugin_util.h"
#include "check.h"

/* Threads may reach a place in another order the next time. */
#define ATTEMPTS 3

/* After a fence that never signals, the engine may still write to staging memory, so the plugin
 * keeps it mapped: munmap() could wait forever for a GPU that hangs. */
static const char may_leave_pages[] = "poll_fence";
/* A plugin that cannot start has written nothing, so the images of an older dump are whole. */
static const char may_leave_images[] = "init";

const char *const result_names[] = { "failed", "went on", "not met again" };

struct place_of_work {
	struct text images, table, inject;
	bool own_images;
};

static void place_of_work_done(struct place_of_work *work)
{
	text_done(&work->images);
	text_done(&work->table);
	text_done(&work->inject);
}

static void call_tool(const char *const *words)
{
	_cleanup_(command_done) struct command command = { 0 };
	_cleanup_(text_done) struct text out = { 0 };

	for (; *words; words++)
		command_add(&command, "%s", *words);
	process_must(&command, &out);
}

static void remove_all(const char *path)
{
	call_tool((const char *const[]){ "rm", "-rf", path, NULL });
}

static void copy_all(const char *from, const char *to)
{
	call_tool((const char *const[]){ "cp", "-a", from, to, NULL });
}

static void old_images(const struct build *build, struct text *path)
{
	text_add(path, "%s/old-images", build->work.bytes);
}

static void copy_old_images(const struct build *build, const char *to)
{
	_cleanup_(text_done) struct text from = { 0 };

	old_images(build, &from);
	copy_all(from.bytes, to);
}

/* The images before the first attempt. */
static void get_ready(const struct trial_setup *setup, const struct injection *injection,
		      const struct place_of_work *work)
{
	if (unlink(work->table.bytes) < 0 && errno != ENOENT)
		fail("%s: %s", work->table.bytes, strerror(errno));
	if (!work->own_images)
		return;
	remove_all(work->images.bytes);
	if (injection->phase == RESTORE)
		copy_all(setup->images, work->images.bytes);
	else if (injection->scenario->over_old_images)
		copy_old_images(setup->build, work->images.bytes);
}

/* A stream can be read only once. */
static void plan_work(const struct trial_setup *setup, const struct injection *injection,
		      const char *folder, struct place_of_work *ret_work)
{
	struct place_of_work work = { .own_images = injection->phase == DUMP ||
						    injection->scenario->streams };

	if (work.own_images)
		text_add(&work.images, "%s/images", folder);
	else
		text_add(&work.images, "%s", setup->images);
	text_add(&work.table, "%s/table", folder);
	injection_add_words(injection, &work.inject);
	*ret_work = work;
}

/* A second dump would meet the second failure, too. */
static bool dumps_again(const struct injection *injection)
{
	return injection->phase == DUMP && !injection->after;
}

/* Whether all injected calls have failed, or the host has ended in a way that explains why not. */
static bool attempt(const struct trial_setup *setup, const struct injection *injection,
		    const struct place_of_work *work, struct outcome *ret_outcome,
		    struct table **ret_table)
{
	const struct host_call call = {
		.scenario = injection->scenario,
		.phase = injection->phase,
		.directory = work->images.bytes,
		.table = work->table.bytes,
		.inject = work->inject.bytes,
		.again = dumps_again(injection),
	};
	uint64_t wanted = injection->after ? 2 : 1;

	get_ready(setup, injection, work);
	host_run(setup->build, &call, ret_outcome);
	*ret_table = table_read(work->table.bytes);
	return (*ret_table)->fired >= wanted || !ret_outcome->ended ||
	       (ret_outcome->status != 0 && ret_outcome->status != 1);
}

static void note_behind(const struct trial_setup *setup, const struct table *table,
			struct trial *trial)
{
	for (size_t i = 0; i < PLACES_MAX; i++) {
		const struct place *place = &table->places[i];

		if (!*place->faults || !place_is_own(place) ||
		    set_has(setup->met, place->frames[0]))
			continue;
		trial->behind =
			must(realloc(trial->behind, (trial->num_behind + 1) * sizeof(*place)));
		trial->behind[trial->num_behind++] = *place;
	}
}

static void add_log(struct trial *trial, const struct outcome *outcome)
{
	text_add(&trial->log, "%s%s", text_string(&outcome->out), text_string(&outcome->err));
}

static void restore_dump(const struct trial_setup *setup, const struct injection *injection,
			 const char *images, struct trial *trial)
{
	const struct host_call call = { .scenario = injection->scenario,
					.phase = RESTORE,
					.directory = images };
	_cleanup_(outcome_done) struct outcome outcome = { 0 };

	host_run(setup->build, &call, &outcome);
	add_log(trial, &outcome);
	if (!outcome.ended || outcome.status)
		check_add(&trial->wrong, "what it wrote does not restore%s",
			  trial->result == FAILED ? ", after the second dump" : "");
}

/* An open() of the plugin that only a signal interrupted. */
static bool must_go_on(const struct injection *injection)
{
	return place_opens(&injection->place) && !strcmp(injection->fault, "EINTR") &&
	       !injection->after && !injection->scenario->fails[injection->phase];
}

static void check_trial(const struct trial_setup *setup, const struct injection *injection,
			const struct outcome *outcome, struct trial *trial)
{
	const struct rules rules = {
		.dumps_again = dumps_again(injection),
		.may_leave_pages =
			symbols_is_in(setup->symbols, &injection->place, may_leave_pages),
		.may_leave_images =
			injection->scenario->over_old_images &&
			symbols_is_in(setup->symbols, &injection->place, may_leave_images),
	};

	add_log(trial, outcome);
	trial->result = check_outcome(outcome, &rules, &trial->wrong) ? FAILED : WENT_ON;
	if (trial->result == FAILED && must_go_on(injection))
		check_add(&trial->wrong, "an open that a signal interrupts is not repeated");
	if (injection->scenario->fails[injection->phase] && trial->result != FAILED)
		check_add(&trial->wrong, "does not fail");
}

/* Checked as a run without a failure, because none was injected. */
static void check_unmet(const struct injection *injection, const struct outcome *outcome,
			struct trial *trial)
{
	const struct rules rules = { .dumps_again = dumps_again(injection) };

	add_log(trial, outcome);
	(void)check_outcome(outcome, &rules, &trial->wrong);
	trial->result = NOT_MET_AGAIN;
}

static bool wrote_images(const struct injection *injection, const struct outcome *outcome)
{
	return injection->phase == DUMP && outcome->ended && !outcome->status &&
	       !injection->scenario->fails[RESTORE];
}

void trial_run(const struct trial_setup *setup, const struct injection *injection,
	       const char *folder, struct trial *ret_trial)
{
	_cleanup_(place_of_work_done) struct place_of_work work = { 0 };
	_cleanup_(outcome_done) struct outcome outcome = { 0 };
	_cleanup_free_ struct table *table = NULL;
	struct trial trial = { 0 };
	bool met;

	plan_work(setup, injection, folder, &work);
	met = attempt(setup, injection, &work, &outcome, &table);
	for (int i = 1; i < ATTEMPTS && !met; i++) {
		outcome_done(&outcome);
		free(take_ptr(&table));
		met = attempt(setup, injection, &work, &outcome, &table);
	}
	if (!injection->after)
		note_behind(setup, table, &trial);
	if (met)
		check_trial(setup, injection, &outcome, &trial);
	else
		check_unmet(injection, &outcome, &trial);
	if (met && wrote_images(injection, &outcome))
		restore_dump(setup, injection, work.images.bytes, &trial);
	*ret_trial = trial;
}

void trial_done(struct trial *trial)
{
	text_done(&trial->wrong);
	text_done(&trial->log);
	free(trial->behind);
	*trial = (struct trial){ 0 };
}

/* A stream can be read only once, and is needed again. */
static void prepare_without(const struct build *build, const struct host_call *call,
			    const char *images)
{
	if (call->phase == DUMP && call->scenario->over_old_images)
		copy_old_images(build, images);
	if (call->directory != images)
		copy_all(images, call->directory);
}

struct table *trial_without(const struct build *build, const struct scenario *scenario,
			    enum phase phase, const char *images)
{
	const struct rules rules = { .dumps_again = phase == DUMP };
	_cleanup_(text_done) struct text table = { 0 }, once = { 0 }, wrong = { 0 };
	_cleanup_(outcome_done) struct outcome outcome = { 0 };
	struct host_call call = {
		.scenario = scenario, .phase = phase, .directory = images, .again = true
	};

	text_add(&table, "%s/places-%s-%s", build->work.bytes, scenario->name, phase_names[phase]);
	text_add(&once, "%s-once", images);
	call.table = table.bytes;
	if (phase == RESTORE && scenario->streams)
		call.directory = once.bytes;
	prepare_without(build, &call, images);
	host_run(build, &call, &outcome);
	if (check_outcome(&outcome, &rules, &wrong) != scenario->fails[phase] || wrong.length)
		fail("%s: %s fails with nothing injected: %s\n%s%s", scenario->name,
		     phase_names[phase], text_string(&wrong), text_string(&outcome.out),
		     text_string(&outcome.err));
	return table_read(table.bytes);
}

static void make_images(const struct build *build, const struct scenario *scenario,
			const struct text *path)
{
	_cleanup_(outcome_done) struct outcome outcome = { 0 };
	const struct host_call call = { .scenario = scenario,
					.phase = DUMP,
					.directory = path->bytes };

	host_run(build, &call, &outcome);
	if (!outcome.ended || outcome.status)
		fail("no old images: %s", text_string(&outcome.err));
}

void trial_make_old_images(const struct build *build)
{
	_cleanup_(text_done) struct text path = { 0 }, base = { 0 };

	old_images(build, &path);
	make_images(build, scenarios, &path);
	text_add(&base, "%s/base", build->work.bytes);
	make_images(build, scenario_find("base"), &base);
}
