// SPDX-License-Identifier: GPL-2.0-only
/* Linux 6.1.192: AMDKFD_IOC_CRIU_OP with UNPAUSE oopses for a process that has /dev/kfd open and
 * has acquired no VM. restore_process_queues_cpsch() passes pdd->drm_priv, which is NULL, to
 * amdgpu_amdkfd_gpuvm_get_process_page_dir(). Linux 6.12.118 answers 0. Needs
 * CAP_CHECKPOINT_RESTORE and one GPU. */
#include <fcntl.h>
#include <linux/kfd_ioctl.h>
#include <stdio.h>
#include <sys/ioctl.h>

int main(void)
{
	struct kfd_ioctl_criu_args pause = { .op = KFD_CRIU_OP_PROCESS_INFO };
	struct kfd_ioctl_criu_args unpause = { .op = KFD_CRIU_OP_UNPAUSE };
	int kfd = open("/dev/kfd", O_RDWR | O_CLOEXEC);

	if (kfd < 0 || ioctl(kfd, AMDKFD_IOC_CRIU_OP, &pause) < 0) {
		perror("PROCESS_INFO");
		return 1;
	}
	if (ioctl(kfd, AMDKFD_IOC_CRIU_OP, &unpause) < 0)
		perror("UNPAUSE");
	else
		printf("UNPAUSE works\n");
	return 0;
}
