// SPDX-License-Identifier: GPL-2.0-only
/* Leaves behind the semaphore that programs on libhsakmt before ROCm 6 share. The first of them
 * makes it under a name that it then removes, which no CRIU dumps without being told to; on a
 * machine in use that was long ago. */
#include <fcntl.h>
#include <semaphore.h>
#include <stdio.h>
#include <sys/stat.h>

int main(void)
{
	umask(0);
	if (sem_open("/hsakmt_semaphore", O_CREAT, 0666, 1) == SEM_FAILED) {
		perror("rocm-before");
		return 1;
	}
	return 0;
}
