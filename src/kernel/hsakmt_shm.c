// SPDX-License-Identifier: GPL-2.0-only
/* Saves the size, first word and permissions of the shared file of old libhsakmt, and creates the
 * file and its semaphore on a machine that lacks them. */
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
/* libhsakmt creates both with 0666, which the usual umask makes 0644. */
#define MODE_DEFAULT 0644
/* Excludes set-user-ID and the like. */
#define MODE_MASK 0777u
/* The file of libhsakmt has eight bytes. */
#define SIZE_LIMIT (1u << 20)

/* Any user can create files in /dev/shm, so the name may belong to anything. O_NONBLOCK keeps a
 * FIFO from blocking. -ENOENT: there is no file; -EINVAL: the file is not libhsakmt's. */
static int open_shared(const char *name, int *ret_fd, struct stat *ret_stat)
{
	_cleanup_close_ int fd = shm_open(name, O_RDONLY | O_NONBLOCK | O_CLOEXEC, 0);

	/* A symbolic link or a socket. */
	if (fd < 0 && (errno == ELOOP || errno == ENXIO))
		return -EINVAL;
	if (fd < 0 || fstat(fd, ret_stat) < 0)
		return -errno;
	if (!S_ISREG(ret_stat->st_mode) || ret_stat->st_size > SIZE_LIMIT)
		return -EINVAL;
	*ret_fd = take_fd(&fd);
	return 0;
}

/* Without a file of libhsakmt, *@ret_fd stays as it is. */
static int find_shared(const char *name, int *ret_fd, struct stat *ret_stat)
{
	int ret = open_shared(name, ret_fd, ret_stat);

	if (ret == -EINVAL)
		log_warn("%s: not saved, because libhsakmt did not create it", name);
	return ret == -EINVAL || ret == -ENOENT ? 0 : ret;
}

int hsakmt_shm_read(struct hsakmt_shm *ret_shared)
{
	_cleanup_close_ int fd = -1, semaphore_fd = -1;
	struct stat file = { 0 }, semaphore = { 0 };
	uint32_t magic;
	int ret;

	*ret_shared = (struct hsakmt_shm){ 0 };
	ret = find_shared(SHARED_MEM_NAME, &fd, &file);
	if (ret < 0 || fd < 0 || file.st_size < (off_t)sizeof(magic))
		return ret;
	ret = pread_full(fd, &magic, sizeof(magic), 0);
	if (!ret)
		ret = find_shared(SEMAPHORE_FILE, &semaphore_fd, &semaphore);
	if (ret < 0)
		return ret;
	*ret_shared = (struct hsakmt_shm){
		.size = (uint64_t)file.st_size,
		.magic = magic,
		.mode = file.st_mode & MODE_MASK,
		.semaphore_mode = semaphore_fd < 0 ? 0 : semaphore.st_mode & MODE_MASK,
	};
	return 0;
}

static int fill_file(int fd, const struct hsakmt_shm *shared)
{
	if (fchmod(fd, shared->mode ? shared->mode : MODE_DEFAULT) < 0 ||
	    ftruncate(fd, (off_t)shared->size) < 0)
		return -errno;
	return pwrite_full(fd, &shared->magic, sizeof(shared->magic), 0);
}

static int create_file(const struct hsakmt_shm *shared)
{
	_cleanup_close_ int fd =
		shm_open(SHARED_MEM_NAME, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	int ret;

	if (fd < 0)
		return errno == EEXIST ? 0 : -errno;
	ret = fill_file(fd, shared);
	/* The next restore takes a file that exists for a complete one. */
	if (ret < 0)
		(void)shm_unlink(SHARED_MEM_NAME);
	else
		log_info("%s: created", SHARED_MEM_NAME);
	return ret;
}

/* sem_open() opens any file of the name, so this function looks at the file first. */
static int create_semaphore(mode_t mode)
{
	_cleanup_close_ int fd = -1;
	struct stat stat = { 0 };
	sem_t *semaphore;
	mode_t old_umask;
	int ret = open_shared(SEMAPHORE_FILE, &fd, &stat);

	if (ret < 0 && ret != -ENOENT)
		return ret;
	old_umask = umask(0);
	semaphore = sem_open(SEMAPHORE_NAME, O_CREAT, mode ? mode : MODE_DEFAULT, 1);
	ret = semaphore == SEM_FAILED ? -errno : 0;
	(void)umask(old_umask);
	if (semaphore != SEM_FAILED)
		(void)sem_close(semaphore);
	return ret;
}

int hsakmt_shm_restore(const struct hsakmt_shm *shared)
{
	int ret;

	if (!shared->size)
		return 0;
	if (shared->size < sizeof(shared->magic) || shared->size > SIZE_LIMIT)
		return log_error(-EINVAL, "%s: the image has an invalid size, %" PRIu64 " bytes",
				 SHARED_MEM_NAME, shared->size);
	if ((shared->mode | shared->semaphore_mode) & ~MODE_MASK)
		return log_error(-EINVAL,
				 "%s: the image has an invalid mode, 0%o, or 0%o of the semaphore",
				 SHARED_MEM_NAME, (unsigned int)shared->mode,
				 (unsigned int)shared->semaphore_mode);
	ret = create_file(shared);
	if (ret < 0)
		return log_error(ret, "%s: cannot create", SHARED_MEM_NAME);
	ret = create_semaphore(shared->semaphore_mode);
	if (ret == -EINVAL)
		return log_error(ret, "%s: not a semaphore; remove it from /dev/shm",
				 SEMAPHORE_FILE);
	return ret < 0 ? log_error(ret, "%s: cannot create", SEMAPHORE_FILE) : 0;
}
