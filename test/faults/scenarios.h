/* SPDX-License-Identifier: GPL-2.0-only */
/* The scenarios: what is dumped and restored, and how. */
#ifndef TEST_FAULTS_SCENARIOS_H
#define TEST_FAULTS_SCENARIOS_H

#include <stdbool.h>
#include <stddef.h>

enum phase { DUMP, RESTORE, PHASES };

extern const char *const phase_names[PHASES];

struct scenario {
	const char *name;
	const char *workload;            /* see test/native/workload.h */
	const char *machine[PHASES];     /* of the simulator; NULL: one */
	const char *criu;                /* NULL: 4.3 */
	const char *environment[PHASES]; /* "NAME=VALUE", or NULL */
	bool streams;                    /* images are streams */
	bool ends_tasks;                 /* CRIU is to kill the tasks after the dump */
	bool private;         /* with /dev/shm and /etc of its own (test/faults/private) */
	bool over_old_images; /* an older dump went to the same directory */
	bool on_base;         /* shares with an older dump of its workload */
	bool fails[PHASES];   /* also run without a failure */
};

extern const struct scenario scenarios[];
extern const size_t num_scenarios;

/* NULL: there is no such scenario. */
const struct scenario *scenario_find(const char *name);

#endif
