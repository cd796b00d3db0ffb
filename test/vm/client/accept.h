/* SPDX-License-Identifier: GPL-2.0-only */
/* The frame of the acceptance tests: each runs in a process of its own, as a process has one KFD
 * state for its whole life. A test is a function that returns 0, or -1 after saying why not. */
#ifndef CLIENT_ACCEPT_H
#define CLIENT_ACCEPT_H

#include <stdbool.h>
#include <sys/types.h>

struct accept_test {
	const char *name;
	int (*run)(void);
	/* The test does on purpose what the device counts as a violation. */
	bool violates;
};

struct accept_group {
	const char *name;
	const struct accept_test *tests; /* ends with an empty one */
};

extern const struct accept_group accept_kfd_group;
extern const struct accept_group accept_memory_group;
extern const struct accept_group accept_share_group;
extern const struct accept_group accept_event_group;
extern const struct accept_group accept_queue_group;
extern const struct accept_group accept_criu_group;
extern const struct accept_group accept_ptrace_group;
extern const struct accept_group accept_restore_group;
extern const struct accept_group accept_ids_group;
extern const struct accept_group accept_drm_group;
extern const struct accept_group accept_cs_group;
extern const struct accept_group accept_procfs_group;

/* Remembers why the test fails, from whatever process of the test; returns -1. */
int accept_fail(const char *file, int line, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* The test cannot be done on this machine; returns what the test is to return. */
int accept_skip(const char *why);

/* The call must give exactly this number (0 or more, or -errno). */
#define EXPECT(call, wanted)                                                                  \
	do {                                                                                  \
		long long got_ = (call), wanted_ = (wanted);                                  \
		if (got_ != wanted_)                                                          \
			return accept_fail(__FILE__, __LINE__, "%s: expected %lld, got %lld", \
					   #call, wanted_, got_);                             \
	} while (0)

#define EXPECT_TRUE(condition)                                                                  \
	do {                                                                                    \
		if (!(condition))                                                               \
			return accept_fail(__FILE__, __LINE__, "%s does not hold", #condition); \
	} while (0)

/* A second process of a test, and a line to it. */
struct peer {
	pid_t pid;
	int socket;
};

/* Forks; the child runs @main with its end of the line and exits with what that returns. */
int peer_start(int (*main)(struct peer *peer), struct peer *ret_peer);
/* Hands the other side a number, waits for one. */
int peer_send(struct peer *peer, long number);
int peer_receive(struct peer *peer, long *ret_number);
/* Waits for the child; 0 when it returned 0. */
int peer_join(struct peer *peer);

/* Files of the simulator under debugfs; -errno. */
int sim_write(const char *file, const char *text);
int sim_read_number(const char *file, long *ret_number);

#endif
