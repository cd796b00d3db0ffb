// SPDX-License-Identifier: GPL-2.0-only
/* Linux 7.2.12, and 7.3-rc7 in other tests: what KFD maps just after ACQUIRE_VM may get lost, and
 * then its queues meet page faults at addresses that are mapped. The copy engine clears the root
 * page directory when a process opens a render node (amdgpu_vm_pt_clear() in amdgpu_vm_init()).
 * amdgpu_vm_make_compute() waits for that before the CPU writes page tables, by
 * amdgpu_bo_sync_wait(). But amdgpu_sync_resv() looks at fences up to DMA_RESV_USAGE_READ only, and
 * amdgpu_vm_sdma_commit() has added that of the clear with DMA_RESV_USAGE_BOOKKEEP. So a late clear
 * undoes what the CPU has written. Linux 6.1 and 6.12 look at DMA_RESV_USAGE_BOOKKEEP, too, and
 * wait. With the module option vm_update_mode=3 the CPU also clears, so nothing is late.
 *
 * The program runs a queue in ROUNDS processes, and counts those that do not run. It needs one GPU
 * of gfx9. With ROUNDS 0, one process waits for a line on its standard input before it makes the
 * queue, so that a test can let the copy engines stand still until then. */
#include <fcntl.h>
#include <linux/kfd_ioctl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define RING_BYTES     4096
#define DOORBELL_BYTES 8192
#define MEMORY         ((char *)0x100000000)
#define STEPS          2000 /* of a millisecond: so long a queue may take for its packets */

/* Two buffers in host memory, for the GPU and for the CPU: the ring, and behind it the pointers. */
static int map_buffers(int kfd, int render, uint32_t gpu_id)
{
	for (char *at = MEMORY; at < MEMORY + 2 * RING_BYTES; at += RING_BYTES) {
		struct kfd_ioctl_alloc_memory_of_gpu_args bo = {
			.va_addr = (uintptr_t)at,
			.size = RING_BYTES,
			.gpu_id = gpu_id,
			.flags = KFD_IOC_ALLOC_MEM_FLAGS_GTT | 1u << 31, /* writable */
		};
		struct kfd_ioctl_map_memory_to_gpu_args map = {
			.device_ids_array_ptr = (uintptr_t)&gpu_id,
			.n_devices = 1,
		};

		if (ioctl(kfd, AMDKFD_IOC_ALLOC_MEMORY_OF_GPU, &bo) < 0)
			return -1;
		map.handle = bo.handle;
		if (ioctl(kfd, AMDKFD_IOC_MAP_MEMORY_TO_GPU, &map) < 0 ||
		    mmap(at, RING_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, render,
			 (off_t)bo.mmap_offset) == MAP_FAILED)
			return -1;
		memset(at, 0, RING_BYTES);
	}
	return 0;
}

/* Packets of zeros are NOPs of a copy engine. */
static int run_queue(int kfd, uint32_t gpu_id)
{
	volatile uint64_t *read = (uint64_t *)(MEMORY + RING_BYTES), *write = read + 8, *doorbell;
	struct kfd_ioctl_create_queue_args queue = {
		.ring_base_address = (uintptr_t)MEMORY,
		.ring_size = RING_BYTES,
		.read_pointer_address = (uintptr_t)read,
		.write_pointer_address = (uintptr_t)write,
		.gpu_id = gpu_id,
		.queue_type = KFD_IOC_QUEUE_TYPE_SDMA,
		.queue_percentage = 100,
	};
	char *page;

	if (ioctl(kfd, AMDKFD_IOC_CREATE_QUEUE, &queue) < 0)
		return -1;
	page = mmap(NULL, DOORBELL_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, kfd,
		    (off_t)(queue.doorbell_offset & ~(DOORBELL_BYTES - 1ull)));
	if (page == MAP_FAILED)
		return -1;
	doorbell = (uint64_t *)(page + queue.doorbell_offset % DOORBELL_BYTES);
	*write = 256;
	*doorbell = 256;
	for (int i = 0; i < STEPS && *read != 256; i++)
		usleep(1000);
	return *read != 256;
}

/* Returns 0 if the queue runs, 1 if it does not, and -1 if another thing fails. */
static int run_process(const char *path, int waits)
{
	struct kfd_process_device_apertures aperture;
	struct kfd_ioctl_get_process_apertures_new_args gpus = { (uintptr_t)&aperture, 1, 0 };
	int kfd = open("/dev/kfd", O_RDWR | O_CLOEXEC);
	int render = open(path, O_RDWR | O_CLOEXEC);
	struct kfd_ioctl_acquire_vm_args vm = { .drm_fd = (uint32_t)render };

	if (ioctl(kfd, AMDKFD_IOC_GET_PROCESS_APERTURES_NEW, &gpus) < 0)
		return -1;
	vm.gpu_id = aperture.gpu_id;
	if (ioctl(kfd, AMDKFD_IOC_ACQUIRE_VM, &vm) < 0 || map_buffers(kfd, render, vm.gpu_id) < 0)
		return -1;
	if (waits) {
		printf("mapped\n");
		fflush(stdout);
		(void)getchar();
	}
	return run_queue(kfd, vm.gpu_id);
}

int main(int argc, char **argv)
{
	const char *path = argc > 2 ? argv[2] : "/dev/dri/renderD128";
	int rounds = argc > 1 ? atoi(argv[1]) : 1000, lost = 0, status = 0;

	for (int i = 0; i < rounds || i == 0; i++) {
		if (fork() == 0)
			_exit(run_process(path, rounds == 0));
		if (wait(&status) < 0 || WEXITSTATUS(status) > 1) {
			fprintf(stderr, "no queue (the second argument is the render node)\n");
			return 1;
		}
		lost += WEXITSTATUS(status);
	}
	printf("%d of %d queues did not run\n", lost, rounds ? rounds : 1);
	return 0;
}
