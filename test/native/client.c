// SPDX-License-Identifier: GPL-2.0-only
/* The GPU side of a process: raw KFD ioctls, buffers at the same addresses in every run. */
#include "client.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/kfd_ioctl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "client_vmem.h"
#include "raw_aql.h"
#include "raw_gem.h"
#include "simulator.h"

#define KFDS_MAX 4

/* Not in the headers of older systems: KFD_IOCTL_SVM_FLAG_GPU_ALWAYS_MAPPED. */
#define SVM_ALWAYS_MAPPED 0x40

/* Nor is AMDKFD_IOC_CREATE_PROCESS of Linux 7.3. */
#define CREATE_PROCESS _IO('K', 0x27)

#define SHARED_MAX 4096

struct client {
	struct raw_process process;
	/* Indices of files in struct task. */
	int file;
	int gpu_files[RAW_GPUS];
	int more_kfds[2 * KFDS_MAX];
	uint32_t num_more_kfds;
	int dmabufs[SHARED_MAX];
	uint64_t event_page; /* handle of its buffer; 0: the kernel makes one */
	struct raw_bo shared[SHARED_MAX];
};

int client_complain(int ret, const char *what)
{
	(void)fprintf(stderr, "client: %s: %s\n", what, strerror(-ret));
	return ret;
}

static int call(int fd, unsigned long request, void *argument, const char *name)
{
	return ioctl(fd, request, argument) < 0 ? client_complain(-errno, name) : 0;
}

/* Lists the GPU with index @first first. */
static void rotate_gpus(struct raw_process *process, uint32_t first)
{
	struct raw_process old = *process;

	for (int i = 0; i < process->gpus; i++)
		process->gpu[i] = old.gpu[((uint32_t)i + first) % (uint32_t)process->gpus];
}

int client_open(const struct workload *workload, struct client **ret_client)
{
	struct client *client = calloc(1, sizeof(*client));
	int ret;

	if (!client)
		return -ENOMEM;
	ret = raw_open(&client->process);
	if (!ret && workload->apart)
		rotate_gpus(&client->process, workload->task);
	if (!ret && (uint32_t)client->process.gpus > workload->opened)
		client->process.gpus = (int)workload->opened;
	if (!ret)
		ret = raw_acquire_all(&client->process);
	if (ret < 0) {
		client_close(client);
		return client_complain(ret, "cannot open the GPUs");
	}
	*ret_client = client;
	return 0;
}

void client_close(struct client *client)
{
	for (int i = 0; i < client->process.gpus; i++) {
		if (client->process.render[i] >= 0)
			(void)close(client->process.render[i]);
	}
	for (uint32_t i = 0; i < client->num_more_kfds; i++)
		(void)close(client->more_kfds[i]);
	for (uint32_t i = 0; i < SHARED_MAX; i++) {
		if (client->dmabufs[i])
			(void)close(client->dmabufs[i]);
	}
	if (client->process.kfd >= 0)
		(void)close(client->process.kfd);
	free(client);
}

static uint32_t flags_of(char kind)
{
	const uint32_t access = RAW_WRITABLE | KFD_IOC_ALLOC_MEM_FLAGS_EXECUTABLE;

	switch (kind) {
	case 'V':
	case 'N':
	case 'B':
	case 'I':
		return access | KFD_IOC_ALLOC_MEM_FLAGS_VRAM | KFD_IOC_ALLOC_MEM_FLAGS_PUBLIC;
	case 'C':
		return flags_of('V') | KFD_IOC_ALLOC_MEM_FLAGS_COHERENT;
	case 'H':
		return flags_of('G') | KFD_IOC_ALLOC_MEM_FLAGS_COHERENT;
	case 'G':
	case 'Q':
	case 'P':
	case 'W':
	case 'E':
		return access | KFD_IOC_ALLOC_MEM_FLAGS_GTT;
	case 'U':
		return access | KFD_IOC_ALLOC_MEM_FLAGS_USERPTR;
	case 'D':
		return access | KFD_IOC_ALLOC_MEM_FLAGS_DOORBELL;
	default:
		return access | KFD_IOC_ALLOC_MEM_FLAGS_MMIO_REMAP;
	}
}

static int allocate(struct client *client, const struct workload_bo *bo, uint64_t address,
		    struct raw_bo *ret_raw)
{
	uint32_t gpu_id = client->process.gpu[bo->gpu].gpu_id;
	int ret;

	*ret_raw = (struct raw_bo){ .address = (char *)(uintptr_t)address, .size = bo->size };
	ret = raw_alloc_at(&client->process, gpu_id, flags_of(bo->kind), ret_raw);
	if (ret < 0)
		return client_complain(ret, "ALLOC_MEMORY_OF_GPU");
	ret = raw_map(&client->process, ret_raw, gpu_id);
	return ret < 0 ? client_complain(ret, "MAP_MEMORY") : 0;
}

/* Maps a buffer for the CPU as a runtime does, at the buffer's GPU address. */
static int map_bo(struct client *client, const struct workload_bo *bo, const struct raw_bo *raw,
		  struct task *task)
{
	bool content = workload_has_content(bo);
	struct task_vma vma = {
		.addr = (uintptr_t)raw->address,
		.size = bo->size,
		.offset = raw->mmap_offset,
		.file = (uint32_t)(content ? client->gpu_files[bo->gpu] : client->file),
	};

	if (bo->kind == 'D')
		vma.offset = 3ull << 62 | (uint64_t)client->process.gpu[bo->gpu].gpu_id << 46;
	if (mmap(raw->address, vma.size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED_NOREPLACE,
		 content ? client->process.render[bo->gpu] : client->process.kfd,
		 (off_t)vma.offset) == MAP_FAILED)
		return client_complain(-errno, "mmap of a buffer");
	return task_add_vma(task, &vma);
}

/* Writes without a mapping: page faults on a memory file take longer than a write. */
static int fill(const struct workload *workload, size_t index, uint64_t handle)
{
	int (*poke)(uint64_t handle, uint64_t offset, const void *data, size_t size) =
		simulator_find("amdgpu_sim_poke");
	const struct workload_bo *bo = &workload->bos[index];
	uint64_t written = (bo->written + WORKLOAD_PAGE - 1) / WORKLOAD_PAGE * WORKLOAD_PAGE;
	void *memory = malloc(CLIENT_PART);
	int ret = memory ? 0 : -ENOMEM;

	for (uint64_t at = 0; !ret && at < written; at += CLIENT_PART) {
		uint64_t size = written - at < CLIENT_PART ? written - at : CLIENT_PART;

		workload_fill(workload, index, at, memory, size);
		ret = poke(handle, at, memory, size);
	}
	free(memory);
	return ret < 0 ? client_complain(ret, "cannot fill a buffer") : 0;
}

static int map_user_memory(const struct workload *workload, const struct workload_bo *bo,
			   uint64_t address)
{
	int fd = workload->memfd ? memfd_create("native", MFD_CLOEXEC) : -1;
	int flags = fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
	void *memory = MAP_FAILED;

	if (fd < 0 || ftruncate(fd, (off_t)bo->size) == 0)
		memory = mmap((void *)(uintptr_t)address, bo->size, PROT_READ | PROT_WRITE,
			      flags | MAP_FIXED_NOREPLACE, fd, 0);
	if (fd >= 0)
		(void)close(fd);
	return memory == MAP_FAILED ? client_complain(-errno, "mmap of user memory") : 0;
}

/* Registers the save area of waves as libhsakmt does (queues.c there). */
static int make_svm_range(struct client *client, const struct workload *workload,
			  const struct workload_bo *bo, uint64_t address)
{
	const struct kfd_ioctl_svm_attribute attributes[] = {
		{ KFD_IOCTL_SVM_ATTR_ACCESS, client->process.gpu[bo->gpu].gpu_id },
		{ KFD_IOCTL_SVM_ATTR_SET_FLAGS, SVM_ALWAYS_MAPPED },
	};
	struct kfd_ioctl_svm_args *args;
	int ret = map_user_memory(workload, bo, address);

	if (ret < 0)
		return ret;
	args = calloc(1, sizeof(*args) + sizeof(attributes));
	if (!args)
		return -ENOMEM;
	args->start_addr = address;
	args->size = bo->size;
	args->op = KFD_IOCTL_SVM_OP_SET_ATTR;
	args->nattr = sizeof(attributes) / sizeof(attributes[0]);
	memcpy(args->attrs, attributes, sizeof(attributes));
	ret = call(client->process.kfd, AMDKFD_IOC_SVM + (sizeof(attributes) << _IOC_SIZESHIFT),
		   args, "SVM");
	free(args);
	return ret;
}

static int make_bo(struct client *client, const struct workload *workload, size_t index,
		   uint64_t address, struct task *task)
{
	const struct workload_bo *bo = &workload->bos[index];
	struct raw_bo raw;
	int ret = 0;

	if ((int)bo->gpu >= client->process.gpus)
		return client_complain(-ENODEV, "the machine has fewer GPUs than the workload");
	if (!workload_is_buffer(bo))
		return make_svm_range(client, workload, bo, address);
	if (bo->kind == 'U')
		ret = map_user_memory(workload, bo, address);
	if (!ret && bo->kind == 'N')
		ret = client_vmem_make(&client->process, workload, index, address, &raw);
	else if (!ret)
		ret = allocate(client, bo, address, &raw);
	if (!ret && bo->kind == 'B')
		ret = client_vmem_map_again(&client->process, bo, &raw);
	if (!ret && bo->kind == 'I')
		ret = client_vmem_mark_own(&client->process, workload, index, &raw);
	if (!ret && index < SHARED_MAX)
		client->shared[index] = raw;
	if (!ret && bo->mapped && bo->kind != 'U')
		ret = map_bo(client, bo, &raw, task);
	if (!ret && bo->kind == 'E' && !client->event_page)
		client->event_page = raw.handle;
	if (ret < 0 || !workload->verify || !workload_has_content(bo))
		return ret;
	if (!bo->mapped)
		return fill(workload, index, raw.handle);
	workload_fill(workload, index, 0, (void *)(uintptr_t)address, bo->written);
	return 0;
}

static int make_event(struct client *client, uint32_t type)
{
	struct kfd_ioctl_create_event_args args = { .event_type = type,
						    .event_page_offset = client->event_page };
	int ret = call(client->process.kfd, AMDKFD_IOC_CREATE_EVENT, &args, "CREATE_EVENT");

	/* the first event brings it */
	if (!ret)
		client->event_page = 0;
	return ret;
}

/* The ring, the pointers and the events share one page of zeros: its write index says that there is
 * no packet. */
static int make_queue(struct client *client, const struct raw_gpu *gpu, uint64_t page,
		      uint64_t waves, uint64_t waves_size)
{
	struct kfd_ioctl_create_queue_args args = {
		.ring_base_address = page,
		.ring_size = WORKLOAD_PAGE,
		.read_pointer_address = page,
		.write_pointer_address = page + 8,
		.eop_buffer_address = page,
		.eop_buffer_size = WORKLOAD_PAGE,
		.ctx_save_restore_address = waves,
		.ctx_save_restore_size = (uint32_t)waves_size,
	};
	int ret = raw_aql_create_on(&client->process, gpu, &args);

	return ret < 0 ? client_complain(ret, "CREATE_QUEUE") : 0;
}

/* The same with a queue of a copy engine. */
static int make_copy_queue(struct client *client, const struct raw_gpu *gpu, uint64_t page)
{
	struct kfd_ioctl_create_queue_args args = {
		.ring_base_address = page,
		.ring_size = WORKLOAD_PAGE,
		.read_pointer_address = page,
		.write_pointer_address = page + 8,
		.gpu_id = gpu->gpu_id,
		.queue_type = KFD_IOC_QUEUE_TYPE_SDMA,
		.queue_percentage = 100,
	};

	return call(client->process.kfd, AMDKFD_IOC_CREATE_QUEUE, &args, "CREATE_QUEUE");
}

/* Makes one queue for each such page. The save area is the last buffer before the page. */
static int make_queues(struct client *client, const struct workload *workload)
{
	uint64_t address = workload_first_address(workload), waves = 0, waves_size = 0;
	int ret = 0;

	for (size_t i = 0; !ret && i < workload->num_bos; i++) {
		const struct workload_bo *bo = &workload->bos[i];

		if (bo->kind == 'W' || bo->kind == 'S') {
			waves = address;
			waves_size = bo->size;
		}
		if (bo->kind == 'Q')
			ret = make_queue(client, &client->process.gpu[bo->gpu], address, waves,
					 waves_size);
		if (bo->kind == 'P')
			ret = make_copy_queue(client, &client->process.gpu[bo->gpu], address);
		address = workload_next_address(address, bo);
	}
	return ret;
}

static int note_files(struct client *client, struct task *task)
{
	char path[TASK_PATH_MAX];

	client->file = task_add_file(task, client->process.kfd, "/dev/kfd");
	if (client->file < 0)
		return client->file;
	for (int i = 0; i < client->process.gpus; i++) {
		(void)snprintf(path, sizeof(path), "/dev/dri/renderD%d",
			       client->process.gpu[i].render_minor);
		client->gpu_files[i] = task_add_file(task, client->process.render[i], path);
		if (client->gpu_files[i] < 0)
			return client->gpu_files[i];
	}
	return 0;
}

/* Opens /dev/kfd several times. All files share the one KFD state of the process. */
static int open_more_kfds(struct client *client, uint32_t kfds, struct task *task)
{
	int ret = 0;

	for (uint32_t i = 1; ret >= 0 && i < kfds && i <= KFDS_MAX; i++) {
		int fd = open("/dev/kfd", O_RDWR | O_CLOEXEC);

		if (fd < 0)
			return client_complain(-errno, "/dev/kfd");
		client->more_kfds[client->num_more_kfds++] = fd;
		ret = task_add_file(task, fd, "/dev/kfd");
	}
	return ret < 0 ? ret : 0;
}

/* The driver takes no other mode once there is a queue. @mode: 1: on, -1: asks for the mode. */
static int set_xnack(const struct client *client, int32_t mode)
{
	struct kfd_ioctl_set_xnack_mode_args args = { .xnack_enabled = mode };
	int ret = call(client->process.kfd, AMDKFD_IOC_SET_XNACK_MODE, &args, "SET_XNACK_MODE");

	return ret < 0 ? ret : args.xnack_enabled;
}

/* Each file of CREATE_PROCESS has a KFD state of its own. */
static int open_contexts(struct client *client, uint32_t contexts, struct task *task)
{
	const uint32_t first = client->num_more_kfds;
	int ret = open_more_kfds(client, contexts + 1, task);

	for (uint32_t i = first; !ret && i < client->num_more_kfds; i++)
		ret = call(client->more_kfds[i], CREATE_PROCESS, NULL, "CREATE_PROCESS");
	return ret;
}

int client_export(struct client *client, size_t index, int *ret_fd)
{
	int ret = index < SHARED_MAX ? raw_export(&client->process, &client->shared[index], ret_fd)
				     : -EINVAL;

	return ret < 0 ? client_complain(ret, "EXPORT_DMABUF") : 0;
}

static int add_dmabuf(const struct workload *workload, size_t index, int fd, struct task *task)
{
	char path[TASK_PATH_MAX];

	(void)snprintf(path, sizeof(path), "dmabuf:%u:%zu", workload->task, index);
	return task_add_file(task, fd, path);
}

/* The first file of the list is that of the first buffer. */
static int open_dmabufs(struct client *client, const struct workload *workload, struct task *task)
{
	int ret = 0;

	for (size_t i = 0; ret >= 0 && i < workload->dmabufs; i++) {
		ret = client_export(client, i, &client->dmabufs[i]);
		if (ret < 0)
			break;
		if (i)
			ret = add_dmabuf(workload, i, client->dmabufs[i], task);
		else
			task->files[0].fd = client->dmabufs[i];
	}
	return ret < 0 ? ret : 0;
}

int client_make(struct client *client, const struct workload *workload, struct task *task)
{
	uint64_t address = workload_first_address(workload);
	int ret = workload->dmabufs ? add_dmabuf(workload, 0, -1, task) : 0;

	if (ret >= 0)
		ret = note_files(client, task);
	if (!ret)
		ret = open_more_kfds(client, workload->kfds, task);
	if (!ret)
		ret = open_contexts(client, workload->contexts, task);
	if (!ret && workload->xnack)
		ret = set_xnack(client, 1) == 1 ? 0 : -EPERM;
	for (size_t i = 0; !ret && i < workload->num_bos; i++) {
		if (workload_makes(workload, i))
			ret = make_bo(client, workload, i, address, task);
		address = workload_next_address(address, &workload->bos[i]);
	}
	if (!ret)
		ret = open_dmabufs(client, workload, task);
	if (!ret)
		ret = make_queues(client, workload);
	for (uint32_t i = 0; !ret && i < workload->events; i++)
		ret = make_event(client, KFD_IOC_EVENT_SIGNAL);
	for (uint32_t i = 0; !ret && i < workload->strange; i++)
		ret = make_event(client, KFD_IOC_EVENT_PROFILE_EVENT);
	return ret;
}

int client_give_dmabufs(struct client *client, const struct workload *workload, struct task *task)
{
	int ret = 0, fd;

	for (size_t i = 0; ret >= 0 && i < workload->shared; i++) {
		if (!workload_makes(workload, i))
			continue;
		ret = client_export(client, i, &fd);
		if (ret >= 0)
			ret = add_dmabuf(workload, i, fd, task);
	}
	return ret < 0 ? ret : 0;
}

int client_export_handle(struct client *client, size_t index, uint32_t *ret_handle)
{
	int ret = raw_ipc_export(&client->process, &client->shared[index], ret_handle);

	if (ret < 0)
		return client_complain(ret, "IPC_EXPORT_HANDLE");
	printf("share_handle %08x%08x%08x%08x\n", ret_handle[0], ret_handle[1], ret_handle[2],
	       ret_handle[3]);
	return 0;
}

/* The offset of AMD's import by a share handle, or of the same object in a render file. */
static int find_import_offset(int render, int fd, const struct raw_bo *bo, uint64_t *ret_offset)
{
	uint32_t handle;
	int ret;

	*ret_offset = bo->mmap_offset;
	if (bo->mmap_offset)
		return 0;
	ret = raw_gem_import(render, fd, &handle);
	if (ret < 0)
		return ret;
	ret = raw_gem_offset(render, handle, ret_offset);
	return ret ? ret : raw_gem_close(render, handle);
}

/* Maps an import for the CPU at its GPU address, as ROCr does by share handles. */
static int map_import(const struct client *client, uint32_t gpu, int fd, const struct raw_bo *bo,
		      struct task *task)
{
	struct task_vma vma = { .addr = (uintptr_t)bo->address,
				.size = bo->size,
				.file = (uint32_t)client->gpu_files[gpu] };
	const int render = client->process.render[gpu];
	int ret = find_import_offset(render, fd, bo, &vma.offset);

	if (!ret && mmap(bo->address, bo->size, PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_FIXED_NOREPLACE, render, (off_t)vma.offset) == MAP_FAILED)
		ret = -errno;
	return ret < 0 ? client_complain(ret, "mmap of an import") : task_add_vma(task, &vma);
}

/* The CPU maps it at the same address. */
static int import_host_memory(struct client *client, const struct workload_bo *bo, int fd,
			      void *address, struct task *task)
{
	struct raw_bo raw = { .address = address, .size = bo->size };
	int ret =
		client_vmem_import(&client->process, bo, fd, (uintptr_t)address, &raw.mmap_offset);

	return ret ? ret : map_bo(client, bo, &raw, task);
}

int client_import(struct client *client, const struct workload *owner, size_t index, int fd,
		  const uint32_t *handle, struct task *task)
{
	void *address = (void *)(uintptr_t)workload_import_address(owner, index);
	const uint32_t gpu = owner->bos[index].gpu, gpus = (uint32_t)client->process.gpus;
	const uint32_t peer = (gpu + owner->peer) % gpus;
	uint32_t gpu_id = client->process.gpu[peer].gpu_id;
	struct raw_bo filler = { .size = WORKLOAD_PAGE };
	struct raw_bo bo = { .address = address, .size = owner->bos[index].size };
	int ret;

	if (owner->host)
		return import_host_memory(client, &owner->bos[index], fd, address, task);
	ret = raw_alloc_at(&client->process, gpu_id, RAW_GTT, &filler);
	if (!ret)
		ret = handle ? raw_ipc_import(&client->process, gpu_id, handle, &bo)
			     : raw_import(&client->process, gpu_id, fd, address, &bo);
	if (!ret)
		ret = raw_map(&client->process, &bo, gpu_id);
	if (!ret && owner->both)
		ret = raw_map(&client->process, &bo, client->process.gpu[gpu].gpu_id);
	if (!ret)
		ret = raw_free(&client->process, &filler);
	if (ret < 0)
		return client_complain(ret, handle ? "IPC_IMPORT_HANDLE" : "IMPORT_DMABUF");
	if (owner->bos[index].kind == 'I')
		ret = client_vmem_mark(client->process.render[peer], owner, index, fd);
	return ret < 0 || !owner->cpu ? ret : map_import(client, peer, fd, &bo, task);
}

int client_release(struct client *client, const struct workload *workload, size_t index)
{
	uint32_t gpu_id = client->process.gpu[workload->bos[index].gpu].gpu_id;
	int ret = raw_unmap(&client->process, &client->shared[index], gpu_id);

	if (!ret)
		ret = raw_free(&client->process, &client->shared[index]);
	return ret < 0 ? client_complain(ret, "FREE_MEMORY_OF_GPU") : 0;
}

int client_map_user_memory(const struct workload *workload)
{
	uint64_t address = workload_first_address(workload);
	int ret = 0;

	for (size_t i = 0; !ret && !workload->lost && i < workload->num_bos; i++) {
		if (workload_makes(workload, i) &&
		    (workload->bos[i].kind == 'U' || workload->bos[i].kind == 'S'))
			ret = map_user_memory(workload, &workload->bos[i], address);
		address = workload_next_address(address, &workload->bos[i]);
	}
	return ret;
}
