/* SPDX-License-Identifier: GPL-2.0-only */
/* gpu_client: a process that uses GPUs in all the ways that a checkpoint must preserve, and that
 * can tell whether it did. See README.md for options, log lines and signals. */
#include <signal.h>

#include "chain_model.h"
#include "client.h"
#include "options.h"
#include "report.h"
#include "tree.h"

int main(int argc, char **argv)
{
	struct options options;
	struct report report;
	sigset_t set;
	int ret;

	ret = options_parse(argc, argv, &options);
	if (ret != 0)
		return ret < 0 ? 2 : 0;
	if (options.self_test_chain)
		return chain_self_test() < 0 ? 1 : 0;

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
