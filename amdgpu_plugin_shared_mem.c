// SPDX-License-Identifier: GPL-2.0-only
/* Keeps the shared-memory file of old libhsakmt: its size and magic are saved with each process, and
 * what a restoring machine lacks is made again. */
#include "amdgpu_plugin_shared_mem.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <semaphore.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "amdgpu_plugin_host.h"
#include "amdgpu_plugin_util.h"

#define SHARED_MEM_NAME "/hsakmt_shared_mem"
#define SEMAPHORE_NAME	"/hsakmt_semaphore"
/* All users of a machine share both. */
#define SHARED_MODE	0666
/* libhsakmt's is eight bytes; a size far from that is no such file. */
#define SIZE_MAX_SANE	(1u << 20)

void shared_mem_read(uint64_t *ret_size, uint32_t *ret_magic)
{
	_cleanup_close_ int fd = shm_open(SHARED_MEM_NAME, O_RDONLY | O_CLOEXEC, 0);
	struct stat stat;
	uint32_t magic;

	*ret_size = 0;
	*ret_magic = 0;
	if (fd < 0 || fstat(fd, &stat) < 0 || pread_full(fd, &magic, sizeof(magic), 0) < 0)
		return;
	*ret_size = (uint64_t)stat.st_size;
	*ret_magic = magic;
}

static int make_file(uint64_t size, uint32_t magic)
{
	_cleanup_close_ int fd = shm_open(SHARED_MEM_NAME, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC,
					  SHARED_MODE);

	if (fd < 0)
		return errno == EEXIST ? 0 : -errno;
	if (fchmod(fd, SHARED_MODE) < 0 || ftruncate(fd, (off_t)size) < 0)
		return -errno;
	log_info("%s: made again", SHARED_MEM_NAME);
	return pwrite_full(fd, &magic, sizeof(magic), 0);
}

static int make_semaphore(void)
{
	sem_t *semaphore = sem_open(SEMAPHORE_NAME, O_CREAT, SHARED_MODE, 1);

	if (semaphore == SEM_FAILED)
		return -errno;
	(void)sem_close(semaphore);
	return 0;
}

int shared_mem_restore(uint64_t size, uint32_t magic)
{
	int ret;

	if (!size)
		return 0;
	if (size < sizeof(magic) || size > SIZE_MAX_SANE)
		return log_error(-EINVAL, "%s: the image says it has %" PRIu64 " bytes",
				 SHARED_MEM_NAME, size);
	ret = make_file(size, magic);
	if (!ret)
		ret = make_semaphore();
	return ret < 0 ? log_error(ret, "%s: cannot make it", SHARED_MEM_NAME) : 0;
}
