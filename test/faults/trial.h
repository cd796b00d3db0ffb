/* SPDX-License-Identifier: GPL-2.0-only */
/* One injection: runs a dump or restore with it, and reports the errors of the result. */
#ifndef TEST_FAULTS_TRIAL_H
#define TEST_FAULTS_TRIAL_H

#include "host.h"
#include "plan.h"

enum result { FAILED, WENT_ON, NOT_MET_AGAIN };

extern const char *const result_names[];

/* Empty at first: { 0 }. */
struct trial {
	enum result result;
	struct text wrong; /* sentences; empty: no mistakes */
	struct text log;
	struct place *behind; /* failable calls of the plugin that were met for the first time */
	size_t num_behind;
};

/* For all trials of a phase of a scenario. Several threads may use it. */
struct trial_setup {
	const struct build *build;
	const struct symbols *symbols;
	const struct set *met; /* the lines of call sites */
	const char *images;    /* the images for a restore */
};

/* @folder belongs to the caller. */
void trial_run(const struct trial_setup *setup, const struct injection *injection,
	       const char *folder, struct trial *ret_trial);
void trial_done(struct trial *trial);

/* Runs without a failure; on a mistake the program ends with a line. The caller frees the places
 * with free(). */
struct table *trial_without(const struct build *build, const struct scenario *scenario,
			    enum phase phase, const char *images);
/* Makes a dump that another scenario overwrites. */
void trial_make_old_images(const struct build *build);

#endif
