/* SPDX-License-Identifier: GPL-2.0-only */
/* KFD buffers: allocation, GPU mapping, CPU mapping and their refusals. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "contract.h"
#include "raw_kfd.h"

RULE(memory_alloc_refuses_what_the_contract_lists)
{
	struct raw_process process;
	struct raw_bo bo;
	char *user = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint32_t id;

	EXPECT(raw_open(&process), 0);
	id = process.gpu[0].gpu_id;
	EXPECT(raw_alloc(&process, id, RAW_GTT, 4096, NULL, &bo), -ENODEV);
	EXPECT(raw_open_render(&process.gpu[0], &process.render[0]), 0);
	EXPECT(raw_acquire(&process, id, process.render[0]), 0);
	EXPECT(raw_alloc(&process, id, RAW_GTT, 0, NULL, &bo), -EINVAL);
	EXPECT(raw_alloc(&process, 0, RAW_GTT, 4096, NULL, &bo), -EINVAL);
	EXPECT(raw_alloc(&process, id ^ 0x5555, RAW_GTT, 4096, NULL, &bo), -EINVAL);
	EXPECT(raw_alloc(&process, id, RAW_RWX, 4096, NULL, &bo), -EINVAL);
	EXPECT(raw_alloc(&process, id, RAW_USERPTR, 4096, NULL, &bo), -EINVAL);
	EXPECT(raw_alloc(&process, id, KFD_IOC_ALLOC_MEM_FLAGS_DOORBELL | RAW_RWX, 4096, NULL, &bo),
	       -EINVAL);
	EXPECT(raw_alloc(&process, id, KFD_IOC_ALLOC_MEM_FLAGS_MMIO_REMAP | RAW_RWX, 8192, NULL,
			 &bo),
	       -EINVAL);
	EXPECT(munmap(user + 4096, 4096), 0);
	EXPECT(raw_alloc(&process, id, RAW_USERPTR, 8192, user, &bo), -EFAULT);
	EXPECT(raw_alloc(&process, id, RAW_USERPTR, 4096, user, &bo), 0);
}

RULE(memory_handles_are_gpu_id_and_lowest_free_number)
{
	struct raw_process process;
	struct raw_bo bo[4];
	uint32_t id;

	EXPECT(raw_open_acquired(&process), 0);
	id = process.gpu[process.gpus - 1].gpu_id;
	for (uint32_t i = 0; i < 4; i++) {
		EXPECT(raw_alloc(&process, id, RAW_VRAM, 4096, NULL, &bo[i]), 0);
		EXPECT(bo[i].handle, (uint64_t)id << 32 | i);
	}
	EXPECT(raw_free(&process, &bo[1]), 0);
	EXPECT(raw_free(&process, &bo[1]), -EINVAL);
	EXPECT(raw_alloc(&process, id, RAW_GTT, 4096, NULL, &bo[1]), 0);
	EXPECT(bo[1].handle, (uint64_t)id << 32 | 1);
}

RULE(memory_map_and_unmap_keep_their_errors)
{
	struct kfd_ioctl_map_memory_to_gpu_args args = { 0 };
	struct raw_process process;
	struct raw_bo bo, unknown;
	uint32_t id;

	EXPECT(raw_open_acquired(&process), 0);
	id = process.gpu[0].gpu_id;
	EXPECT(raw_alloc(&process, id, RAW_VRAM, 8192, NULL, &bo), 0);
	unknown = bo;
	unknown.handle += 17;
	if (!KERNEL(unchecked_handles))
		EXPECT(raw_map(&process, &unknown, id), -ENOMEM);
	EXPECT(raw_map(&process, &bo, id ^ 0x5555), -EINVAL);
	EXPECT(raw_unmap(&process, &bo, id), -EINVAL);
	args.handle = bo.handle;
	args.device_ids_array_ptr = (uintptr_t)&id;
	EXPECT(raw_ioctl(process.kfd, AMDKFD_IOC_MAP_MEMORY_TO_GPU, &args), -EINVAL);
	args.n_devices = 1;
	args.n_success = 2;
	EXPECT(raw_ioctl(process.kfd, AMDKFD_IOC_MAP_MEMORY_TO_GPU, &args), -EINVAL);
	args.n_success = 0;
	args.device_ids_array_ptr = 8;
	EXPECT(raw_ioctl(process.kfd, AMDKFD_IOC_MAP_MEMORY_TO_GPU, &args), -EFAULT);
	EXPECT(raw_map(&process, &bo, id), 0);
	EXPECT(raw_map(&process, &bo, id), 0);
	EXPECT(raw_free(&process, &bo), -EBUSY);
	EXPECT(raw_unmap(&process, &bo, id), 0);
	EXPECT(raw_unmap(&process, &bo, id), -EINVAL);
	EXPECT(raw_free(&process, &bo), 0);
}

RULE(memory_maps_to_several_gpus_and_counts)
{
	struct kfd_ioctl_map_memory_to_gpu_args args = { 0 };
	struct raw_process process;
	uint32_t ids[RAW_GPUS];
	struct raw_bo bo;

	EXPECT(raw_open_acquired(&process), 0);
	for (int i = 0; i < process.gpus; i++)
		ids[i] = process.gpu[i].gpu_id;
	EXPECT(raw_alloc(&process, ids[0], RAW_GTT, 4096, NULL, &bo), 0);
	args.handle = bo.handle;
	args.device_ids_array_ptr = (uintptr_t)ids;
	args.n_devices = (uint32_t)process.gpus;
	EXPECT(raw_ioctl(process.kfd, AMDKFD_IOC_MAP_MEMORY_TO_GPU, &args), 0);
	EXPECT(args.n_success, process.gpus);
	/* A failure in the middle says how far it came. */
	ids[process.gpus] = ids[0] ^ 0x5555;
	args.n_devices++;
	args.n_success = 0;
	EXPECT(raw_ioctl(process.kfd, AMDKFD_IOC_MAP_MEMORY_TO_GPU, &args), -EINVAL);
	EXPECT(args.n_success, process.gpus);
}

RULE(memory_is_mapped_by_the_file_that_knows_it_from_its_start)
{
	struct raw_process process;
	struct raw_bo bo, wrong;
	void *at;
	int fresh, copy;

	EXPECT(raw_open_acquired(&process), 0);
	EXPECT(raw_alloc_mapped(&process, 0, RAW_VRAM, 16384, &bo), 0);
	memset(bo.address, 0x5a, 16384);
	EXPECT(raw_open_render(&process.gpu[0], &fresh), 0);
	EXPECT(raw_mmap(fresh, &bo), -EACCES);
	copy = dup(process.render[0]);
	EXPECT(raw_mmap(copy, &bo), 0);
	EXPECT(bo.address[16383], 0x5a);
	wrong = bo;
	wrong.mmap_offset += 4096;
	wrong.size = 4096;
	EXPECT(raw_mmap(process.render[0], &wrong), -EINVAL);
	wrong = bo;
	wrong.address = mmap(NULL, 32768, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	wrong.size = 20480;
	EXPECT(raw_mmap(process.render[0], &wrong), -EINVAL);
	at = mmap(NULL, 16384, PROT_READ | PROT_WRITE, MAP_PRIVATE, process.render[0],
		  (off_t)bo.mmap_offset);
	EXPECT_TRUE(at == MAP_FAILED && errno == EINVAL);
	at = mmap(NULL, 16384, PROT_NONE, MAP_PRIVATE, process.render[0], (off_t)bo.mmap_offset);
	EXPECT_TRUE(at != MAP_FAILED);
}

/* A checkpoint must recognise these mappings and not read them. */
RULE(memory_and_doorbell_mappings_have_device_flags)
{
	struct raw_process process;
	struct raw_queue queue;
	struct raw_bo bo;
	char line[512], begin[32], queue_begin[32];
	int found = 0;
	FILE *smaps;

	EXPECT(raw_open_acquired(&process), 0);
	EXPECT(raw_alloc_mapped(&process, 0, RAW_VRAM, 16384, &bo), 0);
	EXPECT(raw_create_queue(&process, 0, &queue), 0);
	snprintf(begin, sizeof(begin), "%lx-", (unsigned long)bo.address);
	snprintf(queue_begin, sizeof(queue_begin), "%lx-", (unsigned long)queue.slice);
	smaps = fopen("/proc/self/smaps", "re");
	EXPECT_TRUE(smaps != NULL);
	for (int ours = 0; fgets(line, sizeof(line), smaps);) {
		if (strncmp(line, begin, strlen(begin)) == 0)
			ours = 1;
		else if (strncmp(line, queue_begin, strlen(queue_begin)) == 0)
			ours = 2;
		if (!ours || strncmp(line, "VmFlags:", 8) != 0)
			continue;
		EXPECT_TRUE(strstr(line, " io") && strstr(line, " de") && strstr(line, " dd") &&
			    strstr(line, " pf"));
		if (ours == 2)
			EXPECT_TRUE(strstr(line, " dc") != NULL);
		ours = 0;
		found++;
	}
	fclose(smaps);
	EXPECT(found, 2);
}

RULE(memory_svm_ranges_exclude_buffers)
{
	struct kfd_ioctl_svm_attribute attrs[2] = { 0 };
	struct raw_process process;
	struct raw_bo bo;
	char *memory =
		mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint32_t id;

	EXPECT(raw_open_acquired(&process), 0);
	id = process.gpu[0].gpu_id;
	if (!KERNEL(svm)) {
		EXPECT(raw_svm(&process, memory, 65536, KFD_IOCTL_SVM_OP_SET_ATTR, attrs, 0),
		       -EPERM);
		return;
	}
	attrs[0].type = KFD_IOCTL_SVM_ATTR_ACCESS;
	attrs[0].value = id;
	attrs[1].type = KFD_IOCTL_SVM_ATTR_GRANULARITY;
	attrs[1].value = 7;
	EXPECT(raw_svm(&process, memory + 8, 4096, KFD_IOCTL_SVM_OP_SET_ATTR, attrs, 2), -EINVAL);
	EXPECT(raw_svm(&process, memory, 0, KFD_IOCTL_SVM_OP_SET_ATTR, attrs, 2), -EINVAL);
	EXPECT(raw_svm(&process, memory, 65536, KFD_IOCTL_SVM_OP_SET_ATTR, attrs, 2), 0);
	/* User memory and SVM exclude each other. */
	EXPECT(raw_alloc(&process, id, RAW_USERPTR, 65536, memory, &bo), -EADDRINUSE);
}
