// SPDX-License-Identifier: GPL-2.0-only
/* Replaces one pointer in CRIU's table of messages, and nothing else of CRIU. The header says why.
 */
#include "criu/after_tasks.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "amdgpu_plugin_util.h"
#include "criu/log.h"

#define STATISTICS "stats-dump"

/* protobuf-c declares one such function for each type of message. */
typedef size_t packed_size(const void *message);

/* CRIU has one table, and ends one dump. */
static struct {
	int (*end)(void);
	/* A child that CRIU forks for a script may call exit(), too. */
	pid_t criu;
	/* CRIU's dlclose() does not unload the plugin while this is open, and then does not call
	 * what atexit() has noted. */
	void *plugin;
	packed_size **place;
	packed_size *original;
} after;

/* struct cr_pb_message_desc has several pointers, and its size may change from version to version,
 * so the pointer is searched for. */
static packed_size **find_place(void)
{
	const ElfW(Sym) *symbol = NULL;
	packed_size *wanted, **place;
	Dl_info info;

	place = dlsym(RTLD_DEFAULT, "cr_pb_descs");
	wanted = (packed_size *)(uintptr_t)dlsym(RTLD_DEFAULT, "stats_entry__get_packed_size");
	if (!place || !wanted || !dladdr1(place, &info, (void **)&symbol, RTLD_DL_SYMENT) ||
	    !symbol)
		return NULL;
	for (size_t i = 0; i < symbol->st_size / sizeof(*place); i++) {
		if (place[i] == wanted)
			return &place[i];
	}
	return NULL;
}

bool after_tasks_is_possible(void)
{
	return find_place() != NULL;
}

static int run_once(void)
{
	int (*end)(void) = after.end;

	after.end = NULL;
	return end ? end() : 0;
}

static size_t write_statistics(const void *message)
{
	*after.place = after.original;
	if (run_once() < 0)
		exit(EXIT_FAILURE);
	return after.original(message);
}

static void leave(void)
{
	if (after.end && after.criu == getpid() && run_once() < 0)
		_exit(EXIT_FAILURE);
}

static void stay_loaded(void)
{
	Dl_info info;

	if (dladdr(&after, &info))
		after.plugin = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
}

/* CRIU opens this file as soon as it has let the tasks go (write_stats() in stats.c). */
static int try_statistics(void)
{
	bool is_new = faccessat(AT_FDCWD, STATISTICS, F_OK, AT_SYMLINK_NOFOLLOW) < 0;
	_cleanup_close_ int fd = fd_open(STATISTICS, O_WRONLY | O_CREAT | O_NONBLOCK);

	/* The file is a FIFO that no process reads. CRIU waits there until one does. */
	if (fd == -ENXIO)
		return 0;
	if (fd < 0)
		return fd;
	if (is_new)
		(void)unlink(STATISTICS);
	return 0;
}

bool after_tasks_run(int (*end)(void))
{
	int ret = try_statistics();

	if (ret < 0) {
		log_warn(
			"option dump-memory: the job stands still until its contents are written, because CRIU cannot write its file " STATISTICS
			": %s",
			strerror(-ret));
		return false;
	}
	stay_loaded();
	after.end = end;
	after.criu = getpid();
	after.place = find_place();
	if (after.place) {
		after.original = *after.place;
		*after.place = write_statistics;
	}
	(void)atexit(leave);
	return true;
}
