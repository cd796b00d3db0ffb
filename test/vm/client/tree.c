/* SPDX-License-Identifier: GPL-2.0-only */
/* The parent of a process tree of clients: it forwards signals to them and adds up their answers.
 */
#include "tree.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client.h"
#include "shared.h"

struct tree {
	struct report *report;
	unsigned int count;
	pid_t children[TREE_MAX];
	struct client_answers *answers; /* shared with the children */
	uint32_t asked;                 /* times that SIGUSR1 was handed on */
	bool said_ready;
	uint32_t said_verified;
};

static int tree_fork(struct tree *tree, const struct options *options, unsigned int i)
{
	pid_t parent = getpid(), pid = fork();

	if (pid < 0)
		return report_fail(tree->report, -errno, "cannot fork");
	if (pid > 0) {
		tree->children[i] = pid;
		return 0;
	}
	/* A killed parent must not leave GPU processes behind. */
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	_exit(client_run(tree->report, options, i + 1, &tree->answers[i]));
}

static void tree_signal(struct tree *tree, int signal)
{
	for (unsigned int i = 0; i < tree->count; i++)
		(void)kill(tree->children[i], signal);
}

/* Says once what all children have answered by now. */
static void tree_sum_up(struct tree *tree)
{
	unsigned int ready = 0, answered = 0, failed = 0;

	for (unsigned int i = 0; i < tree->count; i++) {
		struct client_answers *answers = &tree->answers[i];
		uint32_t wrong = __atomic_load_n(&answers->failed, __ATOMIC_ACQUIRE);

		ready += __atomic_load_n(&answers->ready, __ATOMIC_ACQUIRE);
		answered += wrong + __atomic_load_n(&answers->verified, __ATOMIC_ACQUIRE) >=
			    tree->asked;
		failed += wrong > 0;
	}
	if (ready == tree->count && !tree->said_ready) {
		report_line(tree->report, "tree ready, %u clients", tree->count);
		tree->said_ready = true;
	}
	if (answered < tree->count || tree->said_verified == tree->asked)
		return;
	tree->said_verified = tree->asked;
	if (failed)
		report_line(tree->report, "FAILED: %u of %u clients", failed, tree->count);
	else
		report_line(tree->report, "tree verified, %u clients", tree->count);
}

/* Returns the exit status of the tree once all children are gone. */
static int tree_collect(struct tree *tree)
{
	unsigned int failed = 0;

	for (unsigned int i = 0; i < tree->count; i++) {
		int status;
		pid_t pid;

		do
			pid = waitpid(tree->children[i], &status, 0);
		while (pid < 0 && errno == EINTR);
		failed += pid < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 0;
	}
	if (failed) {
		report_line(tree->report, "FAILED: %u of %u clients", failed, tree->count);
		return 1;
	}
	report_line(tree->report, "tree finished ok, %u clients", tree->count);
	return 0;
}

static int tree_serve(struct tree *tree)
{
	sigset_t set;
	int signal;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGUSR2);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGRTMIN);
	for (;;) {
		if (sigwait(&set, &signal))
			continue;
		if (signal == SIGRTMIN) {
			tree_sum_up(tree);
			continue;
		}
		if (signal == SIGUSR1)
			tree->asked++;
		if (signal == SIGCHLD) {
			report_line(tree->report, "FAILED: a client is gone");
			signal = SIGTERM;
		}
		tree_signal(tree, signal);
		if (signal == SIGTERM)
			return tree_collect(tree);
	}
}

int tree_run(struct report *report, const struct options *options)
{
	struct tree tree = { .report = report, .count = options->tree };
	struct options own = *options;
	int status;

	tree.answers = mmap(NULL, TREE_MAX * sizeof(*tree.answers), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (tree.answers == MAP_FAILED) {
		report_fail(report, -errno, "no memory shared with the clients");
		return 1;
	}
	if (own.shared && shared_make(report, own.job.gpus, &own.shared_fd) < 0)
		return 1;
	for (unsigned int i = 0; i < tree.count; i++) {
		if (tree_fork(&tree, &own, i) < 0)
			return 1;
	}
	if (own.shared)
		close(own.shared_fd);
	status = tree_serve(&tree);
	munmap(tree.answers, TREE_MAX * sizeof(*tree.answers));
	return status;
}
