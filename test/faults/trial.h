/* SPDX-License-Identifier: GPL-2.0-only */
/* One injection: runs a dump or restore with it, and reports the errors in its result. */
#ifndef TEST_FAULTS_TRIAL_H
#define TEST_FAULTS_TRIAL_H

#include "host.h"
#include "plan.h"

enum result { FAILED, WENT_ON, NOT_MET_AGAIN };

extern const char *const result_names[];

/* Empty at first: { 0 }. */
struct trial {
	enum result result;
	struct text wrong; /* sentences; empty: nothing is */
	struct text log;
	struct place *behind; /* failable calls of the plugin's that nobody had met before */
	size_t num_behind;
};

/* For all trials of a scenario's phase; several threads may use one. */
struct trial_setup {
	const struct build *build;
	const struct symbols *symbols;
	const struct set *met; /* call sites */
	const char *images;    /* that a restore is of */
};

/* @folder is the caller's own. */
void trial_run(const struct trial_setup *setup, const struct injection *injection,
	       const char *folder, struct trial *ret_trial);
void trial_done(struct trial *trial);

/* With nothing injected: the program ends with a line if anything is wrong.
 * The places are free()'s. */
struct table *trial_without(const struct build *build, const struct scenario *scenario,
			    enum phase phase, const char *images);
/* A dump that another scenario goes over. */
void trial_make_old_images(const struct build *build);

#endif
