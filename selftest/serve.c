// SPDX-License-Identifier: GPL-2.0-only
/* Answers signals. What is verified is the caller's. */
#include "serve.h"

#include <string.h>

/* Says so when the next dump would interrupt as much as the last one. */
static bool verify(const struct serve *serve)
{
	if (!serve->verify(serve->arg) || report_failed(serve->report) || !serve->begin(serve->arg))
		return false;
	report_line(serve->report, "verified");
	return true;
}

static bool finish(const struct serve *serve)
{
	if (!serve->verify(serve->arg) || !serve->tear_down(serve->arg) ||
	    report_failed(serve->report))
		return false;
	report_line(serve->report, "finished ok");
	return true;
}

static bool answer(const struct serve *serve, const sigset_t *signals)
{
	int number;

	while (sigwait(signals, &number) == 0 && number == SIGUSR1) {
		if (report_failed(serve->report))
			report_failed_again(serve->report);
		else if (!verify(serve))
			return false;
	}
	return finish(serve);
}

sigset_t serve_block(void)
{
	sigset_t signals;

	(void)sigemptyset(&signals);
	(void)sigaddset(&signals, SIGUSR1);
	(void)sigaddset(&signals, SIGTERM);
	(void)sigprocmask(SIG_BLOCK, &signals, NULL);
	return signals;
}

int serve_running(struct report *report, void *arg, int (*start)(void *arg),
		  int (*run)(void *arg, const sigset_t *signals))
{
	const sigset_t signals = serve_block();
	int ret = start(arg);

	if (ret < 0) {
		report_fail(report, ret, "cannot start: %s", strerror(-ret));
		return 1;
	}
	report_line(report, "ready");
	if (run(arg, &signals) < 0)
		return 1;
	report_line(report, "finished ok");
	return 0;
}

int serve(const struct serve *serve)
{
	const sigset_t signals = serve_block();

	if (!serve->set_up(serve->arg) || !serve->begin(serve->arg))
		return 1;
	report_line(serve->report, "ready");
	return answer(serve, &signals) ? 0 : 1;
}
