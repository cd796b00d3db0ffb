/* SPDX-License-Identifier: GPL-2.0-only */
/* Stands in for CRIU in programs that load the plugin or are linked with it. It has the functions
 * that all versions of CRIU have. A program with an inventory of plugins defines those two
 * functions itself, because not all versions have them. */
#ifndef TEST_LIB_CRIU_STUB_H
#define TEST_LIB_CRIU_STUB_H

#include "criu_symbols.h"

struct criu_stub {
	int image_dir;
	/* What find_unused_fd_pid() returns. */
	int unused_fd;
	/* Descriptors of CRIU itself get this number or a higher one. */
	int lowest_fd;
	/* Lines of a higher level are not printed: 1 errors, 2 warnings, 3 information, 4
	 * debugging; 0: nothing is printed. */
	unsigned int log_level;
	/* Takes each line that is printed; NULL: standard error takes it. */
	void (*print)(unsigned int level, const char *line);
	/* Opens an image of a streamer; NULL: there is no streamer. */
	int (*open_streamed)(const char *name, int flags);
	/* --lazy-pages. */
	bool is_lazy;
	/* The descriptor store, which the processes share that are forked after its first use.
	 * -1: it has not been used. */
	int store;
	struct criu_stub_ids *ids;
};

extern struct criu_stub criu_stub;

/* Moves @fd to the descriptors of CRIU itself. -1 stays -1, and means that it failed. */
int criu_stub_keep_fd(int fd);
/* The number of descriptors in the store. */
int criu_stub_count_stored(void);
/* Makes the descriptor store. CRIU makes it before it forks the tasks. */
int criu_stub_open_store(void);
/* Empties the descriptor store. */
void criu_stub_close_stored(void);

#endif
