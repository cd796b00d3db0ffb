// SPDX-License-Identifier: GPL-2.0-only
/* Descriptors that the library keeps for itself. The real driver keeps none in the program's table.
 * So these lie above the program's numbers, and the program's limit does not count them. */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "native.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int lowest_kept = 262144; /* or less, where the user may not have so many */

/* Raises the limit as far as the kernel allows this user. */
static void raise_limit(struct rlimit *ret_old)
{
	struct rlimit limit = { 1048576, 1048576 };

	(void)pthread_mutex_lock(&lock);
	(void)getrlimit(RLIMIT_NOFILE, ret_old);
	if (ret_old->rlim_cur >= limit.rlim_cur)
		return;
	if (setrlimit(RLIMIT_NOFILE, &limit) == 0)
		return;
	limit.rlim_cur = limit.rlim_max = ret_old->rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &limit);
}

static void lower_limit(const struct rlimit *old)
{
	(void)setrlimit(RLIMIT_NOFILE, old);
	(void)pthread_mutex_unlock(&lock);
}

static int dup_high(int fd)
{
	struct rlimit limit;
	int high;

	(void)getrlimit(RLIMIT_NOFILE, &limit);
	if (limit.rlim_cur / 2 < (rlim_t)lowest_kept)
		lowest_kept = (int)(limit.rlim_cur / 2);
	high = fcntl(fd, F_DUPFD_CLOEXEC, lowest_kept);
	return high < 0 ? -errno : high;
}

/* @fd may be negative; then errno has the cause. */
static int move_high(int fd)
{
	int high = fd < 0 ? -errno : dup_high(fd);

	if (fd >= 0)
		(void)NATIVE_REAL(close)(fd);
	return high;
}

int native_fd_lowest_kept(void)
{
	return lowest_kept;
}

int native_fd_keep(int fd)
{
	struct rlimit old;
	int high;

	raise_limit(&old);
	high = dup_high(fd);
	lower_limit(&old);
	return high;
}

int native_fd_reopen(int fd, int flags)
{
	struct rlimit old;
	char path[64];
	int high;

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	raise_limit(&old);
	high = move_high(NATIVE_REAL(open)(path, flags | O_CLOEXEC));
	lower_limit(&old);
	return high;
}

int native_fd_memory(const char *name, u64 size)
{
	struct rlimit old;
	int high;

	raise_limit(&old);
	high = move_high(memfd_create(name, MFD_CLOEXEC));
	lower_limit(&old);
	if (high >= 0 && ftruncate(high, (off_t)size) < 0) {
		(void)NATIVE_REAL(close)(high);
		return -ENOMEM;
	}
	return high;
}

int native_fd_pair(bool cloexec, int *ret_peer)
{
	int ends[2], peer;

	if (socketpair(AF_UNIX, SOCK_STREAM | (cloexec ? SOCK_CLOEXEC : 0), 0, ends) < 0)
		return -errno;
	peer = native_fd_keep(ends[1]);
	(void)NATIVE_REAL(close)(ends[1]);
	if (peer < 0) {
		(void)NATIVE_REAL(close)(ends[0]);
		return peer;
	}
	*ret_peer = peer;
	return ends[0];
}

int native_fd_identify(int fd, struct native_id *ret_id)
{
	struct stat stat;

	if (NATIVE_REAL(fstat)(fd, &stat) < 0)
		return -errno;
	*ret_id = (struct native_id){ stat.st_dev, stat.st_ino };
	return 0;
}
