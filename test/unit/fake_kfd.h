/* SPDX-License-Identifier: GPL-2.0-only */
/* The ioctls of /dev/kfd for fake_kernel.h, which includes this file. */
#ifndef TEST_UNIT_FAKE_KFD_H
#define TEST_UNIT_FAKE_KFD_H

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host.h"
#include "kernel/kfd.h"

#define KFD_MAJOR    234
#define PROCESSES    4
#define GEM_OP       0x10
#define LIST_HANDLES 0x19
#define CONTEXT      0x02
#define GEM_MMAP     0x01
/* Parameters of the driver are files parameter-NAME in the test's directory. */
#define PARAMETERS    "/sys/module/amdgpu/parameters/"
#define KFD_DEVICE    "/sys/class/kfd/kfd/dev"
#define PCI_DEVICES   "/sys/bus/pci/devices/"
#define KFD_PROCESSES "/sys/class/kfd/kfd/proc/"
/* The descriptor of a render node in a fake process is this number plus the minor. */
#define RENDER_FDS 10000
/* The size of private data in images that no test looks into. */
#define PRIVATE_SIZE 24
#define QUEUE_RECORD 120
#define EVENT_RECORD 64
#define CTL_STACK    64
#define KERNEL_PAGE  4096

/* A process that has /dev/kfd open; in a restore, the restored process. */
struct fake_process {
	pid_t pid;
	struct kfd_device_bucket devices[8];
	uint32_t num_devices;
	struct kfd_bo_bucket *bos;
	uint32_t num_bos;
	/* Queues first, events after them. */
	uint32_t num_objects;
	struct fake_queue {
		uint32_t gpu_id, type, id, cwsr_size, mqd_size;
	} queues[4];
	uint32_t num_queues;
	/* The driver's count of pauses, and the number of successful calls of each operation. */
	unsigned int paused;
	unsigned int calls[KFD_RESUME + 1];
};

static struct __attribute__((aligned(KERNEL_PAGE))) fake_kernel {
	/* A directory of test/data/machines, or a path; NULL: the driver is not loaded. */
	const char *machine;
	uint32_t kfd_minor;
	struct fake_process processes[PROCESSES];
	/* What the MQDs of a queue state as control stacks; 0: what the record has. */
	uint32_t mqd_stack;
	/* The kernel was built without SVM. */
	bool lacks_svm;
	/* The type of all events. */
	uint32_t event_type;
	/* The number of GEM objects of each render node, and the name of its driver. */
	unsigned int gem_objects;
	const char *driver;
	/* The flags of contexts of this render node (0: of all contexts), and the errno of calls
	 * that make or query one. */
	uint32_t context_flags, context_minor;
	int context_errno;
	/* Bytes of a BO's record in private data. */
	uint32_t bo_record_size;
	/* Each process has this many render nodes open, from the first on. */
	unsigned int num_open_renders;
	/* /dev has no render nodes, as in some containers. */
	bool hides_render_nodes;
	/* A name in /dev opens another device: that of the next render node, or a plain file. */
	bool misnames_render_nodes;
	bool misnames_kfd;
	/* mmap() of /dev/kfd takes the ids that the process knows, as Linux 7.3 does. */
	bool maps_known_ids;
	/* Called when a process opens /dev/kfd. */
	void (*kfd_opens)(void);
	/* Answers other calls of /dev/kfd, or of a render node, with an errno. NULL: there are
	 * none. */
	int (*other_kfd)(unsigned long request, void *argument);
	int (*other_render)(unsigned long request, void *argument);
	/* The next @fail_count calls of @fail_op give @fail_errno. */
	enum kfd_criu_op fail_op;
	unsigned int fail_count;
	int fail_errno;
	/* The PROCESS_INFO, by number from 1, that stops the queues and gives ETIME. The driver
	 * does not count this as a pause. */
	unsigned int slow_pause, pauses;
	/* Every operation gives this errno; 0: operations work. */
	int refusal;
	/* RESTORE in a process that is none of the above gives these, with objects and without.
	 * The number of such calls; it needs fake_kernel_share(). */
	int trial_errno;
	int empty_trial_errno;
	unsigned int trials;
	struct kfd_criu_args trial;
	/* What RESTORE there answers without BOs, before it reads private data; 0: it reads. */
	int no_bo_errno;
	/* The free VRAM of each GPU. AVAILABLE_MEMORY reports it, unless the kernel is too old.
	 * RESTORE gives ENOMEM if its BOs need more. */
	uint64_t free_vram;
	bool hides_free_vram;
	/* The arguments of the last RESTORE, and the process that was killed. */
	struct kfd_criu_args restored;
	struct kfd_device_bucket restored_devices[8];
	pid_t killed;
	/* Calls that harm a real kernel or process. */
	unsigned int wrong_calls;
	/* Each failed CHECKPOINT is a line in a real kernel's log. */
	unsigned int failed_checkpoints;
} kernel;

/* The number in the name of the device that @fd is open on, -1 for other files. */
static inline int device_of(int fd, const char *kind)
{
	char link[64], path[512];
	ssize_t length;
	int number = -1;

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	length = readlink(link, path, sizeof(path) - 1);
	if (length < 0)
		return -1;
	path[length] = '\0';
	if (strncmp(path, unit_path("%s", ""), strlen(unit_path("%s", ""))))
		return -1;
	if (strncmp(strrchr(path, '/') + 1, kind, strlen(kind)))
		return -1;
	(void)sscanf(strrchr(path, '-') + 1, "%d", &number);
	return number;
}

static inline uint64_t private_size(const struct fake_process *process)
{
	uint64_t size = 8 + 8 * process->num_devices + kernel.bo_record_size * process->num_bos;

	for (uint32_t i = 0; i < process->num_queues; i++)
		size += QUEUE_RECORD + CTL_STACK + process->queues[i].mqd_size;
	return size + EVENT_RECORD * (process->num_objects - process->num_queues);
}

/* The process itself and its tracer may call the operations. */
static inline bool is_for(const struct fake_process *process)
{
	char path[64], line[256];
	bool traced = false;
	FILE *file;

	if (process->pid == getpid())
		return true;
	(void)snprintf(path, sizeof(path), "/proc/%d/status", process->pid);
	file = fopen(path, "r");
	while (file && fgets(line, sizeof(line), file)) {
		if (!strncmp(line, "TracerPid:", 10))
			traced = strtol(line + 10, NULL, 10) == gettid();
	}
	if (file)
		(void)fclose(file);
	return traced;
}

/* Each MQD states its part of the control stacks (cp_hqd_cntl_stack_size in v9_structs.h). */
static inline void fill_mqds(const struct fake_queue *queue, uint8_t *at)
{
	uint32_t bytes = kernel.mqd_stack ? kernel.mqd_stack : CTL_STACK;

	bytes /= queue->mqd_size / 2048 ? queue->mqd_size / 2048 : 1;
	for (uint32_t mqd = 0; mqd + 2048 <= queue->mqd_size; mqd += 2048)
		memcpy(at + mqd + 700, &bytes, sizeof(bytes));
}

/* Private data is process, devices, BOs, queues, events. Its own GPU maps each BO. Bytes that only
 * the driver reads are 0x5a. */
static inline void fill_private(const struct fake_process *process, uint8_t *at)
{
	memset(at, 0x5a, private_size(process));
	memcpy(at, (uint32_t[]){ 1, 0 }, 8);
	at += 8 + 8 * process->num_devices;
	for (uint32_t i = 0; i < process->num_bos; i++, at += kernel.bo_record_size) {
		memcpy(at + 8, (uint32_t[]){ i, process->bos[i].gpu_id, 0 }, 12);
		/* AMD's driver: no share handle */
		if (kernel.bo_record_size == 296)
			memset(at + 268, 0, 28);
	}
	for (uint32_t i = 0; i < process->num_queues; i++) {
		const struct fake_queue *queue = &process->queues[i];

		memcpy(at, (uint32_t[]){ 0 }, 4);
		memcpy(at + 64, (uint32_t[]){ queue->gpu_id, queue->type, 0, queue->id }, 16);
		memcpy(at + 104, (uint32_t[]){ queue->cwsr_size, CTL_STACK, queue->mqd_size }, 12);
		fill_mqds(queue, at + QUEUE_RECORD);
		at += QUEUE_RECORD + CTL_STACK + queue->mqd_size;
	}
	for (uint32_t i = process->num_queues; i < process->num_objects; i++, at += EVENT_RECORD) {
		memcpy(at, (uint32_t[]){ 1 }, 4);
		memset(at + 8, 0, 8); /* the kernel has made the page for events */
		memcpy(at + 16, (uint32_t[]){ i, 0, kernel.event_type }, 12);
	}
}

static inline bool counts_agree(const struct fake_process *process,
				const struct kfd_criu_args *args)
{
	return args->devices && args->bos && args->priv_data &&
	       args->num_devices == process->num_devices && args->num_bos == process->num_bos &&
	       args->num_objects == process->num_objects &&
	       args->priv_data_size == private_size(process);
}

/* The memory of a BO is a file, named after the GPU address. The descriptor is low and inherited,
 * like the kernel's. */
static inline int make_dmabuf(const struct kfd_bo_bucket *bo)
{
	int fd = openat(AT_FDCWD, unit_path("bo-%llx", (unsigned long long)bo->addr),
			O_RDWR | O_CREAT, 0600);

	if (fd >= 0 && ftruncate(fd, (off_t)bo->size) < 0)
		abort();
	return fd;
}

static inline int process_info(struct fake_process *process, struct kfd_criu_args *args)
{
	if (!process->num_devices)
		return ENODEV;
	process->paused++;
	/* The driver undoes only one pause. */
	kernel.wrong_calls += process->paused > 1;
	args->pid = (uint32_t)process->pid;
	args->num_devices = process->num_devices;
	args->num_bos = process->num_bos;
	args->num_objects = process->num_objects;
	args->priv_data_size = private_size(process);
	return 0;
}

static inline int checkpoint(struct fake_process *process, const struct kfd_criu_args *args)
{
	struct kfd_bo_bucket *bos = (void *)(uintptr_t)args->bos;

	if (!process->paused || !counts_agree(process, args))
		return EINVAL;
	memcpy((void *)(uintptr_t)args->devices, process->devices,
	       process->num_devices * sizeof(*process->devices));
	for (uint32_t i = 0; i < process->num_bos; i++) {
		int fd = -1;

		if (process->bos[i].alloc_flags & KFD_BO_WITH_CONTENTS) {
			fd = make_dmabuf(&process->bos[i]);
			if (fd < 0)
				return EMFILE;
		}
		bos[i] = process->bos[i];
		bos[i].dmabuf_fd = (uint32_t)fd;
	}
	fill_private(process, (void *)(uintptr_t)args->priv_data);
	return 0;
}

static inline bool has_room(const struct kfd_bo_bucket *bos, uint32_t count)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < count; i++)
		bytes += bos[i].alloc_flags & KFD_BO_VRAM ? bos[i].size : 0;
	return bytes <= kernel.free_vram;
}

static inline int restore(struct fake_process *process, const struct kfd_criu_args *args)
{
	struct kfd_bo_bucket *bos = (void *)(uintptr_t)args->bos;

	kernel.wrong_calls += process->calls[KFD_RESTORE] > 0;
	if (!args->devices || !args->priv_data || !args->priv_data_size || !args->num_devices)
		return EINVAL;
	if (!has_room(bos, args->num_bos))
		return ENOMEM;
	kernel.restored = *args;
	memcpy(kernel.restored_devices, (void *)(uintptr_t)args->devices,
	       args->num_devices * sizeof(kernel.restored_devices[0]));
	for (uint32_t i = 0; i < args->num_bos; i++) {
		if (bos[i].alloc_flags & KFD_BO_WITH_CONTENTS)
			bos[i].dmabuf_fd = (uint32_t)make_dmabuf(&bos[i]);
		if (!(bos[i].alloc_flags & KFD_BO_USERPTR))
			bos[i].restored_offset = bos[i].offset + (1ULL << 40);
	}
	return 0;
}

static inline bool has_process(pid_t pid)
{
	for (size_t i = 0; i < PROCESSES; i++) {
		if (kernel.processes[i].pid == pid)
			return true;
	}
	return false;
}

/* The plugin tries in a child whether the kernel can rebuild a queue. */
static inline int try_restore(const struct kfd_criu_args *args)
{
	kernel.trials++;
	kernel.trial = *args;
	if (!args->devices || !args->priv_data)
		return EINVAL;
	if (!args->num_bos)
		return kernel.no_bo_errno ? kernel.no_bo_errno : EFAULT;
	return args->num_objects ? kernel.trial_errno : kernel.empty_trial_errno;
}

static inline int criu_op(struct fake_process *process, struct kfd_criu_args *args)
{
	int error = 0;

	if (kernel.refusal)
		return kernel.refusal;
	if (args->op == KFD_RESTORE && !is_for(process) && !has_process(getpid()))
		return try_restore(args);
	if (args->op == kernel.fail_op && kernel.fail_count) {
		kernel.fail_count--;
		return kernel.fail_errno;
	}
	if (args->op != KFD_RESUME && !is_for(process))
		return EBADF;
	switch (args->op) {
	case KFD_PROCESS_INFO:
		error = ++kernel.pauses == kernel.slow_pause ? ETIME : process_info(process, args);
		break;
	case KFD_CHECKPOINT:
		error = checkpoint(process, args);
		kernel.failed_checkpoints += error != 0;
		break;
	case KFD_UNPAUSE:
		if (!process->paused)
			return EINVAL;
		process->paused--;
		break;
	case KFD_RESTORE:
		error = restore(process, args);
		break;
	case KFD_RESUME:
		/* A second RESUME uses freed memory, one without RESTORE breaks the process. */
		kernel.wrong_calls +=
			process->calls[KFD_RESUME] > 0 || !process->calls[KFD_RESTORE];
		error = (pid_t)args->pid == process->pid ? 0 : ESRCH;
		break;
	}
	if (!error)
		process->calls[args->op]++;
	return error;
}

static inline int kfd_ioctl(int index, unsigned long request, void *argument)
{
	if (request == KFD_IOC_GET_VERSION) {
		*(struct kfd_version_args *)argument =
			(struct kfd_version_args){ .major = 1, .minor = kernel.kfd_minor };
		return 0;
	}
	if (request == KFD_IOC_GET_DMABUF_INFO)
		return device_of((int)((struct kfd_dmabuf_info_args *)argument)->dmabuf_fd,
				 "dmabuf-") < 0
			       ? EINVAL
			       : 0;
	if (request == KFD_IOC_AVAILABLE) {
		if (kernel.hides_free_vram)
			return ENOTTY;
		((struct kfd_available_args *)argument)->bytes = kernel.free_vram;
		return 0;
	}
	if (request == KFD_IOC_SVM)
		return kernel.lacks_svm ? EPERM : EINVAL;
	if (request == KFD_IOC_CRIU_OP)
		return criu_op(&kernel.processes[index], argument);
	if (kernel.other_kfd)
		return kernel.other_kfd(request, argument);
	kernel.wrong_calls++;
	return ENOTTY;
}

#endif
