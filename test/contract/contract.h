/* SPDX-License-Identifier: GPL-2.0-only */
/* The frame of the contract's rules. Each rule runs in a process of its own, because a process has
 * one KFD state for its whole life. A rule ends its process when an expectation fails. */
#ifndef CONTRACT_CONTRACT_H
#define CONTRACT_CONTRACT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "kernels.h"

struct rule {
	const char *name, *file;
	int line;
	void (*run)(void);
	/* The rule does what the simulator counts as a violation. */
	bool violates;
	/* Hardware would stop, or do something else, and report no error. */
	bool is_for_simulator;
	struct rule *next;
};

/* Adds a rule to the list. Constructors call it, so before main(). */
void rule_add(struct rule *rule);

#define RULE_WITH(function, ...)                                              \
	static void function(void);                                           \
	static __attribute__((constructor)) void rule_add_##function(void)    \
	{                                                                     \
		static struct rule rule = { #function, __FILE__,    __LINE__, \
					    function,  __VA_ARGS__, NULL };   \
		rule_add(&rule);                                              \
	}                                                                     \
	static void function(void)

#define RULE(function)           RULE_WITH(function, false, false)
#define VIOLATION(function)      RULE_WITH(function, true, false)
#define SIMULATOR_RULE(function) RULE_WITH(function, true, true)

/* Notes why the rule fails, from whatever process of the rule, and ends the process. */
void rule_fail(const char *file, int line, const char *format, ...)
	__attribute__((noreturn, format(printf, 3, 4)));

/* This machine cannot try the rule. Ends the process. */
void rule_skip(const char *why) __attribute__((noreturn));

/* What this kernel is expected to do: a field of its row in kernels.c. */
#define KERNEL(field) (rule_kernel(offsetof(struct kernel, field))->field)

/* Notes that the rule has asked for the field at this offset. */
const struct kernel *rule_kernel(size_t offset);

/* The call must give exactly this number (0 or more, or -errno). */
#define EXPECT(call, wanted)                                                                \
	do {                                                                                \
		long long got_ = (long long)(call), wanted_ = (long long)(wanted);          \
		if (got_ != wanted_)                                                        \
			rule_fail(__FILE__, __LINE__, "%s: expected %lld, got %lld", #call, \
				  wanted_, got_);                                           \
	} while (0)

#define EXPECT_TRUE(condition)                                                         \
	do {                                                                           \
		if (!(condition))                                                      \
			rule_fail(__FILE__, __LINE__, "%s does not hold", #condition); \
	} while (0)

/* A second process of a rule, and a line to it. */
struct peer {
	pid_t pid;
	int socket;
};

/* Forks; the child runs @main with its end of the line. */
void peer_start(void (*main)(struct peer *peer), struct peer *ret_peer);
/* The same, and waits until it has ended. It must end by itself. */
void peer_run(void (*main)(struct peer *peer));
/* Hands the other side a number. */
void peer_send(struct peer *peer, long number);
/* Waits for a number of the other side; -EPIPE when it has ended. */
int peer_receive(struct peer *peer, long *ret_number);
/* Waits for the child; 0 when it ended by itself, else its status, or 128 and its signal. */
int peer_join(struct peer *peer);

#endif
