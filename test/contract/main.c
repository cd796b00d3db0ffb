/* SPDX-License-Identifier: GPL-2.0-only */
/* contract: tells rule by rule whether a driver keeps the kernel contract. This file runs the
 * rules, one process each, and prints the result of each. */
#include "contract.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "column.h"
#include "differences.h"
#include "front.h"

#define LIMIT_S 120

static struct rule *rules;

/* In the order of the source: the linker does not keep the order of constructors. */
void rule_add(struct rule *rule)
{
	struct rule **link = &rules;
	int order;

	for (; *link; link = &(*link)->next) {
		order = strcmp((*link)->file, rule->file);
		if (order > 0 || (order == 0 && (*link)->line > rule->line))
			break;
	}
	rule->next = *link;
	*link = rule;
}

/* Shared by all processes of a rule; the first complaint counts. */
struct complaint {
	int taken;
	bool skip;
	/* A bit for the offset of each field of its kernel that the rule has used. */
	uint64_t asked;
	long violations;
	char text[400];
};

static struct complaint *complaint;
static const struct kernel *kernel;
/* What the kernel does, as far as it differs from its row. */
static struct column column;
/* The row is that of the kernel: what differs is a mistake. */
static bool kernel_is_known;
/* The GPU is a real one. What the emulated one cannot do may work. */
static bool gpu_is_real;
static enum world world;

const struct kernel *rule_kernel(size_t offset)
{
	(void)__atomic_fetch_or(&complaint->asked, 1ull << offset, __ATOMIC_SEQ_CST);
	return kernel;
}

static void complain(const char *file, int line, const char *format, va_list args)
{
	int len;

	if (__atomic_exchange_n(&complaint->taken, 1, __ATOMIC_ACQ_REL))
		return;
	len = snprintf(complaint->text, sizeof(complaint->text), "%s:%d: ", file, line);
	vsnprintf(complaint->text + len, sizeof(complaint->text) - (size_t)len, format, args);
}

static void __attribute__((format(printf, 1, 2))) note_failure(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	complain("rule", 0, format, args);
	va_end(args);
}

void rule_fail(const char *file, int line, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	complain(file, line, format, args);
	va_end(args);
	_exit(1);
}

void rule_skip(const char *why)
{
	complaint->skip = true;
	snprintf(complaint->text, sizeof(complaint->text), "%s", why);
	_exit(0);
}

/* Ends a process of a rule in which no expectation failed. */
static void __attribute__((noreturn)) end_process(void)
{
	(void)__atomic_add_fetch(&complaint->violations, front_violations(), __ATOMIC_SEQ_CST);
	_exit(0);
}

void peer_start(void (*main)(struct peer *peer), struct peer *ret_peer)
{
	struct peer peer;
	int ends[2];

	EXPECT(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	peer.pid = fork();
	EXPECT_TRUE(peer.pid >= 0);
	peer.socket = ends[peer.pid == 0];
	close(ends[peer.pid != 0]);
	if (peer.pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		main(&peer);
		end_process();
	}
	*ret_peer = peer;
}

void peer_run(void (*main)(struct peer *peer))
{
	struct peer peer;

	peer_start(main, &peer);
	EXPECT(peer_join(&peer), 0);
}

void peer_send(struct peer *peer, long number)
{
	EXPECT(send(peer->socket, &number, sizeof(number), MSG_NOSIGNAL), sizeof(number));
}

int peer_receive(struct peer *peer, long *ret_number)
{
	ssize_t n;

	do
		n = recv(peer->socket, ret_number, sizeof(*ret_number), 0);
	while (n < 0 && errno == EINTR);
	return n == sizeof(*ret_number) ? 0 : -EPIPE;
}

int peer_join(struct peer *peer)
{
	int status;

	close(peer->socket);
	while (waitpid(peer->pid, &status, 0) < 0) {
		if (errno != EINTR)
			return -errno;
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void wait_for(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (WIFSIGNALED(status))
		note_failure("killed by signal %d", WTERMSIG(status));
	else if (WEXITSTATUS(status) != 0)
		note_failure("failed without a reason");
}

static bool rule_holds(const struct rule *rule, const struct kernel *expected)
{
	pid_t pid;

	memset(complaint, 0, sizeof(*complaint));
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		/* The processes of a rule end with this program. */
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		kernel = expected;
		setpgid(0, 0);
		alarm(LIMIT_S);
		rule->run();
		end_process();
	}
	wait_for(pid);
	/* A rule that failed may have left a peer behind, which must not complain in the next. */
	(void)kill(-pid, SIGKILL);

	if (complaint->violations > 0 && !rule->violates)
		note_failure("%ld violations, expected none", complaint->violations);
	if (complaint->violations == 0 && rule->violates && !complaint->skip && world != WORLD_TRUE)
		note_failure("the simulator did not notice the violation");
	return !complaint->taken;
}

/* Names are beginnings of those of rules. */
static bool is_chosen(const struct rule *rule, char **names)
{
	if (rule->is_for_simulator && world == WORLD_TRUE)
		return false;
	for (char **name = names; *name; name++) {
		if (strncmp(rule->name, *name, strlen(*name)) == 0)
			return true;
	}
	return !*names;
}

struct counts {
	unsigned int passed, failed;
};

/* A kernel that no row is for may differ in what the table has. */
static void tell_difference(const struct rule *rule, struct counts *counts)
{
	char text[sizeof(complaint->text)], values[COLUMN_TEXT];
	const uint64_t asked = complaint->asked;
	bool explained;

	memcpy(text, complaint->text, sizeof(text));
	explained = column_explain(&column, rule, asked, rule_holds, values);
	if (explained && !kernel_is_known) {
		printf("differs %s: holds with %s (%s)\n", rule->name, values, text);
		return;
	}
	printf("not ok %s: %s%s%s\n", rule->name, text, explained ? "; holds with " : "", values);
	counts->failed++;
}

/* A rule that is in the table of differences has to fail, unless it must not even be tried. */
static void check_rule(const struct rule *rule, const struct difference *row, struct counts *counts)
{
	bool holds;

	if (row && !row->tried) {
		printf("not tried %s: %s\n", rule->name, row->reason);
		return;
	}
	holds = rule_holds(rule, kernel);
	if (row && !holds) {
		printf("differs %s: %s\n", rule->name, row->reason);
	} else if (row && !gpu_is_real) {
		printf("not ok %s: holds, but is in the table of differences\n", rule->name);
		counts->failed++;
	} else if (!holds) {
		tell_difference(rule, counts);
	} else if (complaint->skip) {
		printf("skip %s: %s\n", rule->name, complaint->text);
	} else {
		printf("ok %s\n", rule->name);
		counts->passed++;
	}
}

/* contract [-H] [-k KERNEL] [-a ROW] [NAME...]: KERNEL is a name in the simulator's table of
 * kernels. -H: the GPU is a real one. -a: the kernel is taken for an unknown one, for which this
 * row is the nearest. */
int main(int argc, char **argv)
{
	const char *name = NULL, *nearest = NULL;
	struct counts counts = { 0 };
	int option;

	while ((option = getopt(argc, argv, "Hk:a:")) != -1) {
		if (option == 'k')
			name = optarg;
		else if (option == 'a')
			nearest = optarg;
		else if (option == 'H')
			gpu_is_real = true;
		else
			return 2;
	}
	complaint = mmap(NULL, sizeof(*complaint), PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (complaint == MAP_FAILED)
		return 2;
	world = front_open(name, &kernel, &kernel_is_known);
	if (nearest) {
		kernel = kernel_find(nearest);
		kernel_is_known = false;
	}
	if (!kernel)
		return 2;
	column_init(&column, kernel);

	for (const struct rule *rule = rules; rule; rule = rule->next) {
		if (is_chosen(rule, argv + optind))
			check_rule(rule, difference_find(rule->name, world, kernel), &counts);
	}
	if (!kernel_is_known)
		column_print(&column);
	printf("%u passed, %u failed\n", counts.passed, counts.failed);
	return counts.failed == 0 && counts.passed > 0 ? 0 : 1;
}
