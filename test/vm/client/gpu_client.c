/* SPDX-License-Identifier: GPL-2.0-only */
/* gpu_client: a process that uses GPUs in all the ways that a checkpoint must preserve, and that
 * can tell whether it did. See README.md for options, log lines and signals. */
#include <signal.h>

#include "client.h"
#include "options.h"
#include "report.h"
#include "tree.h"

static bool parse(char **argv, struct options *options)
{
	const char *sizes = "small";
	const struct choice choices[] = {
		{ "--log", .text = &options->log, .is_needed = true },
		{ "--gpus", .text = &options->job.gpus },
		{ "--sizes", .text = &sizes },
		{ "--depth", .number = &options->job.depth },
		{ "--filler", .number = &options->job.filler_kib },
		{ "--many", .number = &options->many },
		{ "--tree", .number = &options->tree },
		{ "--render-first", .flag = &options->extras.render_first },
		{ "--compute-first", .flag = &options->extras.compute_first },
		{ "--second-kfd", .flag = &options->extras.second_kfd },
		{ "--gem-bo", .flag = &options->extras.gem_bo },
		{ "--undumpable", .flag = &options->extras.undumpable },
		{ "--fork-child", .flag = &options->extras.fork_child },
		{ "--split-mapping", .flag = &options->split_mapping },
		{ "--shared", .flag = &options->shared },
		{ "--kernel", .flag = &options->job.kernel },
		{ 0 },
	};

	return options_parse(argv, choices) &&
	       buffers_parse_sizes(sizes, &options->job.buffers.sizes) == 0 &&
	       options->tree <= TREE_MAX;
}

int main(int argc, char **argv)
{
	struct options options = { .job = { .gpus = "all", .depth = 4 } };
	struct report report;
	sigset_t set;

	(void)argc;
	if (!parse(argv, &options))
		return 2;

	/* All threads inherit this: signals are taken by sigwait() alone. */
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGUSR2);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGRTMIN);
	if (options.tree)
		sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);

	report_init(&report, options.log);
	if (options.tree)
		return tree_run(&report, &options);
	return client_run(&report, &options, 0, NULL);
}
