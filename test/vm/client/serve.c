// SPDX-License-Identifier: GPL-2.0-only
/* Answers signals. What is verified is the caller's. */
#include "serve.h"

#include <signal.h>

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

int serve(const struct serve *serve)
{
	sigset_t signals;

	/* Threads inherit the mask. */
	(void)sigemptyset(&signals);
	(void)sigaddset(&signals, SIGUSR1);
	(void)sigaddset(&signals, SIGTERM);
	(void)sigprocmask(SIG_BLOCK, &signals, NULL);
	if (!serve->set_up(serve->arg) || !serve->begin(serve->arg))
		return 1;
	report_line(serve->report, "ready");
	return answer(serve, &signals) ? 0 : 1;
}
