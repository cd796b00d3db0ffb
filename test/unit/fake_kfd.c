// SPDX-License-Identifier: GPL-2.0-only
/* The calls of /dev/kfd that the fake kernel answers. */
#include "fake_kfd.h"

#include <sys/resource.h>

struct fake_kernel kernel;

int device_of(int fd, const char *kind)
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

uint64_t private_size(const struct fake_process *process)
{
	uint64_t size = 8 + 8 * process->num_devices + kernel.bo_record_size * process->num_bos;

	for (uint32_t i = 0; i < process->num_queues; i++)
		size += QUEUE_RECORD + CTL_STACK + process->queues[i].mqd_size;
	return size + EVENT_RECORD * (process->num_objects - process->num_queues);
}

/* The process itself and its tracer may call the operations. The kernel needs no descriptor to find
 * that out, so this works where the caller may open none. */
static bool is_for(const struct fake_process *process)
{
	struct rlimit old, raised;
	char path[64], line[256];
	bool traced = false;
	FILE *file;

	if (process->pid == getpid())
		return true;
	(void)snprintf(path, sizeof(path), "/proc/%d/status", process->pid);
	/* Tests replace setrlimit(). */
	assert_int_equal(prlimit(0, RLIMIT_NOFILE, NULL, &old), 0);
	raised = (struct rlimit){ .rlim_cur = old.rlim_max, .rlim_max = old.rlim_max };
	assert_int_equal(prlimit(0, RLIMIT_NOFILE, &raised, NULL), 0);
	file = fopen(path, "r");
	assert_int_equal(prlimit(0, RLIMIT_NOFILE, &old, NULL), 0);
	while (file && fgets(line, sizeof(line), file)) {
		if (!strncmp(line, "TracerPid:", 10))
			traced = strtol(line + 10, NULL, 10) == gettid();
	}
	if (file)
		(void)fclose(file);
	return traced;
}

/* Each MQD states its part of the control stacks (cp_hqd_cntl_stack_size in v9_structs.h), and says
 * by cp_hqd_cntl_stack_offset and cp_hqd_wg_state_offset whether they are in use. */
static void fill_mqds(const struct fake_queue *queue, uint8_t *at)
{
	uint32_t bytes = kernel.mqd_stack ? kernel.mqd_stack : CTL_STACK;

	bytes /= queue->mqd_size / 2048 ? queue->mqd_size / 2048 : 1;
	for (uint32_t mqd = 0; mqd + 2048 <= queue->mqd_size; mqd += 2048) {
		memcpy(at + mqd + 700, &bytes, sizeof(bytes));
		if (!kernel.at_rest)
			continue;
		memcpy(at + mqd + 696, &bytes, sizeof(bytes));
		memcpy(at + mqd + 704, &bytes, sizeof(bytes));
	}
}

/* Private data is process, devices, BOs, queues, events. Its own GPU maps each BO. Bytes that only
 * the driver reads are 0x5a. */
static void fill_private(const struct fake_process *process, uint8_t *at)
{
	memset(at, 0x5a, private_size(process));
	memcpy(at, (uint32_t[]){ 1, 0 }, 8);
	at += 8 + 8 * process->num_devices;
	for (uint32_t i = 0; i < process->num_bos; i++, at += kernel.bo_record_size) {
		memcpy(at + 8, (uint32_t[]){ i, process->bos[i].gpu_id, 0 }, 12);
		/* AMD's driver: no share handle */
		if (kernel.bo_record_size == 296 || kernel.bo_record_size == 104)
			memset(at + kernel.bo_record_size - 28, 0, 28);
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

static bool counts_agree(const struct fake_process *process, const struct kfd_criu_args *args)
{
	return args->devices && args->bos && args->priv_data &&
	       args->num_devices == process->num_devices && args->num_bos == process->num_bos &&
	       args->num_objects == process->num_objects &&
	       args->priv_data_size == private_size(process);
}

/* The memory of a BO is a file, named after the GPU address. The descriptor is low and inherited,
 * like the kernel's. */
static int make_dmabuf(const struct kfd_bo_bucket *bo)
{
	int fd = openat(AT_FDCWD, unit_path("bo-%llx", (unsigned long long)bo->addr),
			O_RDWR | O_CREAT, 0600);

	if (fd >= 0 && ftruncate(fd, (off_t)bo->size) < 0)
		abort();
	return fd;
}

static int process_info(struct fake_process *process, struct kfd_criu_args *args)
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

static int checkpoint(struct fake_process *process, const struct kfd_criu_args *args)
{
	struct kfd_bo_bucket *bos = (void *)(uintptr_t)args->bos;

	if (!process->paused || !counts_agree(process, args))
		return EINVAL;
	memcpy((void *)(uintptr_t)args->devices, process->devices,
	       process->num_devices * sizeof(*process->devices));
	fill_private(process, (void *)(uintptr_t)args->priv_data);
	/* The driver opens files last. */
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
	return 0;
}

static bool has_room(const struct kfd_bo_bucket *bos, uint32_t count)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < count; i++)
		bytes += bos[i].alloc_flags & KFD_BO_VRAM ? bos[i].size : 0;
	return bytes <= kernel.free_vram;
}

static int restore(struct fake_process *process, const struct kfd_criu_args *args)
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

static bool has_process(pid_t pid)
{
	for (size_t i = 0; i < PROCESSES; i++) {
		if (kernel.processes[i].pid == pid)
			return true;
	}
	return false;
}

/* The plugin tries in a child whether the kernel can rebuild a queue. */
static int try_restore(const struct kfd_criu_args *args)
{
	kernel.trials++;
	kernel.trial = *args;
	if (!args->devices || !args->priv_data)
		return EINVAL;
	if (!args->num_bos)
		return kernel.no_bo_errno ? kernel.no_bo_errno : EFAULT;
	return args->num_objects ? kernel.trial_errno : kernel.empty_trial_errno;
}

static int criu_op(struct fake_process *process, struct kfd_criu_args *args)
{
	int error = 0;

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

int kfd_ioctl(int index, unsigned long request, void *argument)
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
