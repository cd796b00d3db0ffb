/* SPDX-License-Identifier: GPL-2.0-only */
/* How criu.c and criu_restore.c call the hooks of the plugin. */
#ifndef TEST_NATIVE_CRIU_CALLS_H
#define TEST_NATIVE_CRIU_CALLS_H

#include <stdbool.h>

#include "criu.h"
#include "criu/plugin_abi.h"

/* init() and exit() of the plugin, in the table of times behind the hooks. */
enum { CRIU_INIT = HOOK_MAX, CRIU_EXIT };

struct criu {
	void *version, *plugin;
	struct criu_plugin_desc *desc;
	unsigned int hooks; /* of this version */
	bool takes_mapping_fd;
	const char *memory;
	const struct workload *workload;
	double seconds[CRIU_EXIT + 1];
};

double criu_now(void);

/* Evaluates @expression and adds its time to that of hook @number. */
#define TIMED(criu, number, expression)                         \
	({                                                      \
		double begin_ = criu_now();                     \
		__typeof__(expression) result_ = (expression);  \
                                                                \
		(criu)->seconds[number] += criu_now() - begin_; \
		result_;                                        \
	})

/* Prints @what and returns -EINVAL. */
int criu_complain(const char *what);
/* The plugin's function; NULL: this version has no such hook, or the plugin has none. */
void *criu_hook(const struct criu *criu, enum criu_plugin_hook number);
/* Call a hook. 0 for -ENOTSUP, because there is no other plugin. */
int criu_call_with_pid(struct criu *criu, enum criu_plugin_hook number, int pid);
int criu_call_without(struct criu *criu, enum criu_plugin_hook number);
/* Tells the simulator which pid a process has, and whether it is traced. */
int criu_believe(const char *file, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* CRIU numbers all files of all tasks; the number of the first file of @task. */
int criu_first_id(const struct task *tasks, const struct task *task);
/* The end of a dump or restore with result @ret. */
void criu_leave(struct criu *criu, int stage, int ret);

#endif
