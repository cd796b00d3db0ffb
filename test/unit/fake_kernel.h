/* SPDX-License-Identifier: GPL-2.0-only */
/* The calls by which the plugin reaches /dev/kfd, render nodes and their topology, answered from a
 * script: enough to see in which order it asks what, and what it does when a call fails. No GPU:
 * fake_gpu.h copies contents, and queues and what runs in them are for the simulated device in the
 * virtual machine.
 *
 * To be included by a test program once: it takes the place of libc's open(),
 * fopen(), fstat(), ioctl(), kill(), readdir(). */
#ifndef TEST_UNIT_FAKE_KERNEL_H
#define TEST_UNIT_FAKE_KERNEL_H

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <drm.h>

#include "amdgpu_plugin_topology.h"
#include "host.h"
#include "kernel/kfd.h"

#define KFD_MAJOR    234
#define PROCESSES    4
#define GEM_OP       0x10
#define LIST_HANDLES 0x19
#define CONTEXT      0x02
#define GEM_MMAP     0x01
/* Of the driver, as files named parameter-NAME in the test's directory. */
#define PARAMETERS    "/sys/module/amdgpu/parameters/"
#define KFD_DEVICE    "/sys/class/kfd/kfd/dev"
#define KFD_PROCESSES "/sys/class/kfd/kfd/proc/"
/* Descriptors of a fake process: this number and the minor of a render node. */
#define RENDER_FDS 10000
/* Of private data in images that nobody looks into. */
#define PRIVATE_SIZE 24
#define QUEUE_RECORD 120
#define EVENT_RECORD 64
#define CTL_STACK    64
#define KERNEL_PAGE  4096

/* A process that has /dev/kfd open; in a restore, the one that is being rebuilt. */
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
	/* As the driver counts; and how often each operation has worked. */
	unsigned int paused;
	unsigned int calls[KFD_RESUME + 1];
};

static struct __attribute__((aligned(KERNEL_PAGE))) fake_kernel {
	/* A directory of test/data/machines, or the path of another; NULL: the
	 * driver is not loaded. */
	const char *machine;
	uint32_t kfd_minor;
	struct fake_process processes[PROCESSES];
	/* Of all events of all processes. */
	uint32_t event_type;
	/* GEM objects that every render node has, and the name of its driver. */
	unsigned int gem_objects;
	const char *driver;
	/* The mmap offset that GEM_MMAP gives; 0: none. */
	uint64_t other_bo;
	/* Of all contexts; and what making or asking one gives. */
	uint32_t context_flags;
	int context_errno;
	/* Bytes of a BO's record in private data. */
	uint32_t bo_record_size;
	/* Each process has this many render nodes open, from the first on. */
	unsigned int num_open_renders;
	/* As in a container whose /dev has none. */
	bool hides_render_nodes;
	/* Names in /dev are of other devices: a render node's of the next, KFD's of none. */
	bool misnames_render_nodes;
	bool misnames_kfd;
	/* mmap() of /dev/kfd takes the ids that the process knows, as Linux 7.3 does. */
	bool maps_known_ids;
	/* Called when a process opens /dev/kfd. */
	void (*kfd_opens)(void);
	/* The next @fail_count calls of @fail_op give @fail_errno. */
	enum kfd_criu_op fail_op;
	unsigned int fail_count;
	int fail_errno;
	/* What every operation gives, as none is looked at; 0: they are. */
	int refusal;
	/* What RESTORE answers in a process of its own, which is none of the processes above: with
	 * objects, and without. How often it was called so; fake_kernel_share() makes that visible.
	 */
	int trial_errno;
	int empty_trial_errno;
	unsigned int trials;
	struct kfd_criu_args trial;
	/* VRAM that is free on each GPU: AVAILABLE_MEMORY says so, unless the kernel is too old for
	 * that, and RESTORE answers ENOMEM if its BOs need more. */
	uint64_t free_vram;
	bool hides_free_vram;
	/* What RESTORE was given, and who has been killed. */
	struct kfd_criu_args restored;
	struct kfd_device_bucket restored_devices[8];
	pid_t killed;
	/* Calls that a kernel would not have expected. */
	unsigned int wrong_calls;
	/* CHECKPOINTs that failed: each is a line in a real kernel's log. */
	unsigned int failed_checkpoints;
} kernel;

/* Linux 7.2 knows each GPU of this machine in mmap offsets, and wants more than a page for
 * doorbells. */
void *mmap(void *address, size_t size, int protection, int flags, int fd, off_t offset)
{
	if (fd >= 0 && (uint64_t)offset >> KFD_MMAP_TYPE_SHIFT == KFD_MMAP_DOORBELL) {
		errno = kernel.maps_known_ids ? ENODEV : EINVAL;
		return MAP_FAILED;
	}
	/* NOLINTNEXTLINE(performance-no-int-to-ptr) */
	return (void *)syscall(SYS_mmap, address, size, protection, flags, fd, offset);
}

static inline struct fake_process *add_process(pid_t pid)
{
	struct fake_process *process = kernel.processes;

	while (process->pid)
		process++;
	process->pid = pid;
	return process;
}

static inline void add_device(struct fake_process *process, uint32_t user_id, uint32_t actual_id)
{
	process->devices[process->num_devices++] =
		(struct kfd_device_bucket){ .user_gpu_id = user_id, .actual_gpu_id = actual_id };
}

static inline struct kfd_bo_bucket *add_bo(struct fake_process *process, uint32_t gpu_id,
					   uint32_t flags, uint64_t addr, uint64_t size,
					   uint64_t offset)
{
	process->bos = realloc(process->bos, (process->num_bos + 1) * sizeof(*process->bos));
	assert_non_null(process->bos);
	process->bos[process->num_bos] = (struct kfd_bo_bucket){
		.addr = addr,
		.size = size,
		.offset = offset,
		.gpu_id = gpu_id,
		.alloc_flags = flags,
		.dmabuf_fd = KFD_INVALID_FD,
	};
	return &process->bos[process->num_bos++];
}

static inline int fake_kernel_begin(void **state)
{
	kernel = (struct fake_kernel){
		.machine = "eight",
		.kfd_minor = 18,
		.driver = "amdgpu",
		.bo_record_size = 272,
		.num_open_renders = 16,
		.free_vram = 1ULL << 40,
	};
	if (unit_begin(state) < 0)
		return -1;
	unit_print("sysfs-dev", "%u:0\n", KFD_MAJOR);
	return 0;
}

/* From here on this process and those that it forks have one kernel, and not each a
 * copy of its own. */
static inline void fake_kernel_share(void)
{
	struct fake_kernel now = kernel;

	assert_true(mmap(&kernel, sizeof(kernel), PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == &kernel);
	kernel = now;
}

static inline int fake_kernel_end(void **state)
{
	for (size_t i = 0; i < PROCESSES; i++)
		free(kernel.processes[i].bos);
	if (kernel.wrong_calls) {
		printf("%u calls that a kernel would refuse\n", kernel.wrong_calls);
		(void)unit_end(state);
		return -1;
	}
	return unit_end(state);
}

/* Devices are files of the test's directory, whose names tell what they stand for:
 * kfd-INDEX of a process, renderD-MINOR, dmabuf-NUMBER of an AMD GPU. They can be opened
 * several times, like devices. */
static inline int open_device(const char *name, int flags)
{
	return openat(AT_FDCWD, unit_path("%s", name), flags | O_CREAT | O_CLOEXEC, 0600);
}

static inline int open_kfd_of(const struct fake_process *process)
{
	char name[64];

	(void)snprintf(name, sizeof(name), "kfd-%zu", process - kernel.processes);
	return open_device(name, O_RDWR);
}

static inline int open_render(uint32_t number, int flags)
{
	char name[64];

	(void)snprintf(name, sizeof(name), "renderD-%u", number);
	if (flags & O_PATH) /* Which makes no files. */
		(void)close(open_device(name, O_RDWR));
	return open_device(name, flags);
}

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

int open(const char *path, int flags, ...)
{
	unsigned int number;
	va_list arguments;
	mode_t mode;

	va_start(arguments, flags);
	mode = flags & O_CREAT ? va_arg(arguments, mode_t) : 0;
	va_end(arguments);
	if (!strcmp(path, "/dev/kfd")) {
		if (kernel.kfd_opens)
			kernel.kfd_opens();
		if (kernel.machine)
			return open_device(kernel.misnames_kfd ? "another" : "kfd-0", flags);
		errno = ENOENT;
		return -1;
	}
	if (sscanf(path, "/proc/%*d/fd/%u", &number) == 1 && number > RENDER_FDS)
		return open_render(number - RENDER_FDS, flags);
	if (sscanf(path, "/dev/dri/renderD%u", &number) == 1 && !kernel.hides_render_nodes)
		return open_render(number + kernel.misnames_render_nodes, flags);
	if (!strcmp(path, TOPOLOGY_SYSFS) && kernel.machine) {
		char machine[256];

		(void)snprintf(machine, sizeof(machine), "%s%s",
			       kernel.machine[0] == '/' ? "" : "test/data/machines/",
			       kernel.machine);
		return openat(AT_FDCWD, machine, flags);
	}
	if (!strncmp(path, KFD_PROCESSES, strlen(KFD_PROCESSES)))
		path = unit_path("process");
	if (!strcmp(path, KFD_DEVICE) && kernel.machine)
		path = unit_path("sysfs-dev");
	return openat(AT_FDCWD, path, flags, mode);
}

FILE *fopen(const char *path, const char *mode)
{
	int flags = mode[0] == 'w' ? O_WRONLY | O_CREAT | O_TRUNC : O_RDONLY;
	unsigned int number;
	int fd;

	if (!strncmp(path, PARAMETERS, strlen(PARAMETERS)))
		path = unit_path("parameter-%s", path + strlen(PARAMETERS));
	else if (!strncmp(path, KFD_PROCESSES, strlen(KFD_PROCESSES)))
		path = unit_path("process%s", strchr(path + strlen(KFD_PROCESSES), '/'));
	else if (strstr(path, "/environ"))
		path = unit_path("environ");
	else if (sscanf(path, "/proc/%*d/fdinfo/%u", &number) == 1 && number > RENDER_FDS)
		path = unit_path("fdinfo-%u", number - RENDER_FDS);
	/* The cgroup of a process, where a test has one. */
	if (!strcmp(path, "/proc/self/cgroup") && unit_exists("self-cgroup"))
		path = unit_path("self-cgroup");
	if (!strcmp(path, "/proc/self/mountinfo") && unit_exists("self-mountinfo"))
		path = unit_path("self-mountinfo");
	fd = openat(AT_FDCWD, path, flags | O_CLOEXEC, 0600);
	return fd < 0 ? NULL : fdopen(fd, mode[0] == 'w' ? "w" : "r");
}

int fstat(int fd, struct stat *stat)
{
	int number;

	if (fstatat(fd, "", stat, AT_EMPTY_PATH) < 0)
		return -1;
	if (device_of(fd, "kfd-") >= 0) {
		stat->st_mode = S_IFCHR | 0666;
		stat->st_rdev = makedev(KFD_MAJOR, 0);
	}
	/* An anonymous inode has no type. */
	if (device_of(fd, "dmabuf-") >= 0)
		stat->st_mode = 0600;
	number = device_of(fd, "renderD-");
	if (number >= 0) {
		stat->st_mode = S_IFCHR | 0666;
		stat->st_rdev = makedev(226, (unsigned int)number);
	}
	return 0;
}

/* As kernfs_name_hash() does. */
static inline uint32_t sysfs_hash(const char *name)
{
	uint64_t hash = 0;

	for (; *name; name++)
		hash = (hash + ((uint64_t)*name << 4) + ((uint64_t)*name >> 4)) * 11;
	return (uint32_t)(hash * 0x61c8864680b583eb >> 32) & 0x7fffffff;
}

static inline int compare_in_sysfs(const void *a, const void *b)
{
	uint32_t one = sysfs_hash(((const struct dirent *)a)->d_name);
	uint32_t other = sysfs_hash(((const struct dirent *)b)->d_name);

	return one < other ? -1 : one > other;
}

static inline const char *path_of_stream(DIR *stream, char path[static 512])
{
	char link[64];
	ssize_t length;

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", dirfd(stream));
	length = readlink(link, path, 511);
	path[length < 0 ? 0 : length] = '\0';
	return path;
}

static inline bool lists_nodes(DIR *stream)
{
	char path[512];

	(void)path_of_stream(stream, path);
	return strrchr(path, '/') && !strcmp(strrchr(path, '/'), "/nodes");
}

/* Whether @stream lists the descriptors of a process that computes. */
static inline bool lists_descriptors(DIR *stream)
{
	char path[512], want[64];
	bool found = false;

	(void)path_of_stream(stream, path);
	for (size_t i = 0; i < PROCESSES && kernel.processes[i].pid; i++) {
		(void)snprintf(want, sizeof(want), "/proc/%d/fd", kernel.processes[i].pid);
		found |= kernel.processes[i].pid != getpid() && !strcmp(path, want);
	}
	return found;
}

/* Behind the descriptors that a process other than this one really has. */
static inline struct dirent *next_render(DIR *stream)
{
	static unsigned int at;
	static struct dirent entry;

	if (!lists_descriptors(stream) || at >= kernel.num_open_renders) {
		at = 0;
		return NULL;
	}
	(void)snprintf(entry.d_name, sizeof(entry.d_name), "%u", RENDER_FDS + 128 + at++);
	return &entry;
}

/* The nodes of a topology come in the order of sysfs, whatever file system the test's machine is
 * on. The plugin reads that directory to its end. */
struct dirent *readdir(DIR *stream)
{
	static struct dirent *(*next)(DIR *);
	static struct dirent nodes[64];
	static size_t num_nodes, at;
	struct dirent *entry;

	if (!next)
		next = (struct dirent * (*)(DIR *)) dlsym(RTLD_NEXT, "readdir");
	if (!lists_nodes(stream)) {
		entry = next(stream);
		return entry ? entry : next_render(stream);
	}
	if (!num_nodes) {
		while ((entry = next(stream)) && num_nodes < 64)
			nodes[num_nodes++] = *entry;
		qsort(nodes, num_nodes, sizeof(*nodes), compare_in_sysfs);
		at = 0;
	}
	if (at < num_nodes)
		return &nodes[at++];
	num_nodes = 0;
	return NULL;
}

int kill(pid_t pid, int signal)
{
	if (signal == SIGKILL && pid == getpid()) {
		kernel.killed = pid;
		return 0;
	}
	return (int)syscall(SYS_kill, pid, signal);
}

static inline uint64_t private_size(const struct fake_process *process)
{
	uint64_t size = 8 + 8 * process->num_devices + kernel.bo_record_size * process->num_bos;

	for (uint32_t i = 0; i < process->num_queues; i++)
		size += QUEUE_RECORD + CTL_STACK + process->queues[i].mqd_size;
	return size + EVENT_RECORD * (process->num_objects - process->num_queues);
}

/* Its process itself, and who traces it. */
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

/* Process, devices, BOs, queues, events; what is of no interest to anybody but
 * the driver is 0x5a. */
static inline void fill_private(const struct fake_process *process, uint8_t *at)
{
	memset(at, 0x5a, private_size(process));
	memcpy(at, (uint32_t[]){ 1, 0 }, 8);
	at += 8 + 8 * process->num_devices + kernel.bo_record_size * process->num_bos;
	for (uint32_t i = 0; i < process->num_queues; i++) {
		const struct fake_queue *queue = &process->queues[i];

		memcpy(at, (uint32_t[]){ 0 }, 4);
		memcpy(at + 64, (uint32_t[]){ queue->gpu_id, queue->type, 0, queue->id }, 16);
		memcpy(at + 104, (uint32_t[]){ queue->cwsr_size, CTL_STACK, queue->mqd_size }, 12);
		at += QUEUE_RECORD + CTL_STACK + queue->mqd_size;
	}
	for (uint32_t i = process->num_queues; i < process->num_objects; i++, at += EVENT_RECORD) {
		memcpy(at, (uint32_t[]){ 1 }, 4);
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

/* The memory of a BO is a file, named by where the BO is on the GPU. The descriptor is low and
 * inherited, as the kernel's are. */
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
	/* A second one could never be undone. */
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

/* Of a child of the plugin. */
static inline int try_restore(const struct kfd_criu_args *args)
{
	kernel.trials++;
	kernel.trial = *args;
	/* No BO is refused by older kernels. */
	if (!args->devices || !args->bos || !args->num_bos || !args->priv_data)
		return EINVAL;
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
		error = process_info(process, args);
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
		/* Twice is a use after free; without RESTORE it spoils the process. */
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
	if (request == KFD_IOC_CRIU_OP)
		return criu_op(&kernel.processes[index], argument);
	kernel.wrong_calls++;
	return ENOTTY;
}

/* A context: made, or asked for its flags by QUERY_STATE2. */
static inline int context_ioctl(uint32_t *argument)
{
	bool is_query = argument[0] == 4;

	if (argument[0] != 1 && !is_query)
		return EINVAL;
	if (kernel.context_errno)
		return kernel.context_errno;
	memset(argument, 0, 16);
	argument[0] = is_query ? kernel.context_flags : 7;
	return 0;
}

static inline int render_ioctl(unsigned long request, void *argument)
{
	if (request == DRM_IOCTL_VERSION) {
		struct drm_version *version = argument;

		if (version->name_len)
			(void)strncpy(version->name, kernel.driver, version->name_len);
		version->name_len = strlen(kernel.driver);
		return 0;
	}
	if (_IOC_NR(request) == DRM_COMMAND_BASE + CONTEXT)
		return context_ioctl(argument);
	/* As of a BO that the CPU cannot map. */
	if (_IOC_NR(request) == DRM_COMMAND_BASE + GEM_MMAP && kernel.other_bo) {
		*(uint64_t *)argument = kernel.other_bo;
		return 0;
	}
	if (_IOC_NR(request) == DRM_COMMAND_BASE + GEM_MMAP)
		return EPERM;
	/* Unknown before 6.18. */
	if (_IOC_NR(request) == DRM_COMMAND_BASE + LIST_HANDLES)
		return EINVAL;
	if (_IOC_NR(request) == DRM_COMMAND_BASE + GEM_OP)
		return *(uint32_t *)argument <= kernel.gem_objects ? 0 : ENOENT;
	return ENOTTY;
}

int ioctl(int fd, unsigned long request, ...)
{
	int kfd = device_of(fd, "kfd-");
	int error = ENOTTY;
	va_list arguments;
	void *argument;

	va_start(arguments, request);
	argument = va_arg(arguments, void *);
	va_end(arguments);
	/* A descriptor by path alone refuses all calls, in the kernel and here. */
	if (fcntl(fd, F_GETFL) >= 0 && fcntl(fd, F_GETFL) & O_PATH && device_of(fd, "renderD-") < 0)
		error = EBADF;
	else if (kfd >= 0)
		error = kfd_ioctl(kfd, request, argument);
	else if (device_of(fd, "renderD-") >= 0)
		error = render_ioctl(request, argument);
	else
		return (int)syscall(SYS_ioctl, fd, request, argument);
	errno = error;
	return error ? -1 : 0;
}

#endif
