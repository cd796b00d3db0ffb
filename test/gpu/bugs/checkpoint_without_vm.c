// SPDX-License-Identifier: GPL-2.0-only
/* Linux 6.12 to 7.3.4: AMDKFD_IOC_CRIU_OP with CHECKPOINT oopses for a process that has mapped
 * memory on one GPU and has not acquired the VM of another one. criu_checkpoint_bos() asks
 * amdgpu_amdkfd_bo_mapped_to_dev(p->pdds[i]->drm_priv, ...) for each GPU, and drm_priv is NULL
 * there. Needs CAP_CHECKPOINT_RESTORE and two GPUs. */
#include <fcntl.h>
#include <linux/kfd_ioctl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>

#define ADDRESS 0x100000000ull

int main(int argc, char **argv)
{
	struct kfd_process_device_apertures apertures[2];
	struct kfd_ioctl_get_process_apertures_new_args gpus = { (uintptr_t)apertures, 2, 0 };
	struct kfd_ioctl_criu_args args = { .op = KFD_CRIU_OP_PROCESS_INFO };
	struct kfd_ioctl_alloc_memory_of_gpu_args bo = {
		.va_addr = ADDRESS,
		.size = 4096,
		.flags = KFD_IOC_ALLOC_MEM_FLAGS_GTT | KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE,
	};
	struct kfd_ioctl_map_memory_to_gpu_args map = { .n_devices = 1 };
	int kfd = open("/dev/kfd", O_RDWR | O_CLOEXEC);
	int render = open(argc > 1 ? argv[1] : "/dev/dri/renderD128", O_RDWR | O_CLOEXEC);
	struct kfd_ioctl_acquire_vm_args vm = { .drm_fd = (uint32_t)render };

	if (ioctl(kfd, AMDKFD_IOC_GET_PROCESS_APERTURES_NEW, &gpus) < 0 || gpus.num_of_nodes < 2) {
		fprintf(stderr, "needs two GPUs\n");
		return 1;
	}
	vm.gpu_id = bo.gpu_id = apertures[0].gpu_id;
	if (ioctl(kfd, AMDKFD_IOC_ACQUIRE_VM, &vm) < 0 ||
	    ioctl(kfd, AMDKFD_IOC_ALLOC_MEMORY_OF_GPU, &bo) < 0) {
		perror("one BO (the argument is the render node of the first GPU)");
		return 1;
	}
	map.handle = bo.handle;
	map.device_ids_array_ptr = (uintptr_t)&bo.gpu_id;
	if (ioctl(kfd, AMDKFD_IOC_MAP_MEMORY_TO_GPU, &map) < 0 ||
	    ioctl(kfd, AMDKFD_IOC_CRIU_OP, &args) < 0) {
		perror("a mapping, and PROCESS_INFO");
		return 1;
	}
	args.op = KFD_CRIU_OP_CHECKPOINT;
	args.devices = (uintptr_t)calloc(args.num_devices, sizeof(struct kfd_criu_device_bucket));
	args.bos = (uintptr_t)calloc(args.num_bos, sizeof(struct kfd_criu_bo_bucket));
	args.priv_data = (uintptr_t)malloc(args.priv_data_size);
	if (ioctl(kfd, AMDKFD_IOC_CRIU_OP, &args) < 0)
		perror("CHECKPOINT");
	else
		printf("CHECKPOINT works\n");
	return 0;
}
