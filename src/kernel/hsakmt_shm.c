// SPDX-License-Identifier: GPL-2.0-only
/* Keeps the shared-memory file of old libhsakmt: its size and magic are saved with each process,
 * and what a restoring machine lacks is made again. */
#include "kernel/hsakmt_shm.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <semaphore.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "amdgpu_plugin_util.h"
#include "criu/log.h"

#define SHARED_MEM_NAME "/hsakmt_shared_mem"
#define SEMAPHORE_NAME  "/hsakmt_semaphore"
/* The name of the semaphore's file (sem_overview(7)). */
#define SEMAPHORE_FILE "/sem.hsakmt_semaphore"
/* What libhsakmt's 0666 comes to with the usual umask; for images that do not tell. */
#define MODE_DEFAULT 0644
/* Permissions, and nothing that would lend somebody's identity. */
#define MODE_MASK 0777u
/* libhsakmt's is eight bytes; a size far from that is no such file. */
#define SIZE_MAX_SANE (1u << 20)

/* Everybody may make files there, so what has the name may be anything; O_NONBLOCK: a pipe must not
 * be waited for. -ENOENT: there is no such file; -EINVAL: there is something else. */
static int open_shared(const char *name, int *ret_fd, struct stat *ret_stat)
{
	_cleanup_close_ int fd = shm_open(name, O_RDONLY | O_NONBLOCK | O_CLOEXEC, 0);

	/* Links and sockets are not opened at all. */
	if (fd < 0 && (errno == ELOOP || errno == ENXIO))
		return -EINVAL;
	if (fd < 0 || fstat(fd, ret_stat) < 0)
		return -errno;
	if (!S_ISREG(ret_stat->st_mode) || ret_stat->st_size > SIZE_MAX_SANE)
		return -EINVAL;
	*ret_fd = take_fd(&fd);
	return 0;
}

/* For a dump: what is not libhsakmt's is none of the process's. */
static int find_shared(const char *name, int *ret_fd, struct stat *ret_stat)
{
	int ret = open_shared(name, ret_fd, ret_stat);

	if (ret != -EINVAL)
		return ret;
	log_warn("%s: is no file of libhsakmt's, and is not saved", name);
	return -ENOENT;
}

static int read_mode(const char *name, mode_t *ret_mode)
{
	_cleanup_close_ int fd = -1;
	struct stat stat = { 0 };
	int ret = find_shared(name, &fd, &stat);

	if (!ret)
		*ret_mode = stat.st_mode & MODE_MASK;
	return ret == -ENOENT ? 0 : ret;
}

int hsakmt_shm_read(struct hsakmt_shm *ret_shared)
{
	struct hsakmt_shm shared = { 0 };
	_cleanup_close_ int fd = -1;
	struct stat stat = { 0 };
	int ret;

	*ret_shared = shared;
	ret = find_shared(SHARED_MEM_NAME, &fd, &stat);
	if (ret == -ENOENT)
		return 0;
	if (ret < 0)
		return ret;
	if (stat.st_size < (off_t)sizeof(shared.magic))
		return 0;
	ret = pread_full(fd, &shared.magic, sizeof(shared.magic), 0);
	if (!ret)
		ret = read_mode(SEMAPHORE_FILE, &shared.semaphore_mode);
	if (ret < 0)
		return ret;
	shared.size = (uint64_t)stat.st_size;
	shared.mode = stat.st_mode & MODE_MASK;
	*ret_shared = shared;
	return 0;
}

static int fill_file(int fd, const struct hsakmt_shm *shared)
{
	if (fchmod(fd, shared->mode ? shared->mode : MODE_DEFAULT) < 0 ||
	    ftruncate(fd, (off_t)shared->size) < 0)
		return -errno;
	return pwrite_full(fd, &shared->magic, sizeof(shared->magic), 0);
}

/* One that is there is taken for whole, so half a one must not stay. */
static int make_file(const struct hsakmt_shm *shared)
{
	_cleanup_close_ int fd =
		shm_open(SHARED_MEM_NAME, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	int ret;

	if (fd < 0)
		return errno == EEXIST ? 0 : -errno;
	ret = fill_file(fd, shared);
	if (ret < 0)
		(void)shm_unlink(SHARED_MEM_NAME);
	else
		log_info("%s: made again", SHARED_MEM_NAME);
	return ret;
}

/* sem_open() takes whatever is there. */
static int check_semaphore(void)
{
	_cleanup_close_ int fd = -1;
	struct stat stat = { 0 };
	int ret = open_shared(SEMAPHORE_FILE, &fd, &stat);

	return ret == -ENOENT ? 0 : ret;
}

static int open_semaphore(mode_t mode)
{
	mode_t old = umask(0);
	sem_t *semaphore = sem_open(SEMAPHORE_NAME, O_CREAT, mode ? mode : MODE_DEFAULT, 1);
	int error = errno;

	(void)umask(old);
	if (semaphore == SEM_FAILED)
		return -error;
	(void)sem_close(semaphore);
	return 0;
}

static int make_semaphore(mode_t mode)
{
	int ret = check_semaphore();

	if (ret < 0)
		return log_error(ret, "%s: is no semaphore that can be used", SEMAPHORE_FILE);
	ret = open_semaphore(mode);
	return ret < 0 ? log_error(ret, "%s: cannot make it", SEMAPHORE_FILE) : 0;
}

int hsakmt_shm_restore(const struct hsakmt_shm *shared)
{
	int ret;

	if (!shared->size)
		return 0;
	if (shared->size < sizeof(shared->magic) || shared->size > SIZE_MAX_SANE)
		return log_error(-EINVAL, "%s: the image says it has %" PRIu64 " bytes",
				 SHARED_MEM_NAME, shared->size);
	if ((shared->mode | shared->semaphore_mode) & ~MODE_MASK)
		return log_error(-EINVAL,
				 "%s: the image says it has mode 0%o, and its semaphore 0%o",
				 SHARED_MEM_NAME, (unsigned int)shared->mode,
				 (unsigned int)shared->semaphore_mode);
	ret = make_file(shared);
	if (ret < 0)
		return log_error(ret, "%s: cannot make it", SHARED_MEM_NAME);
	return make_semaphore(shared->semaphore_mode);
}
