// SPDX-License-Identifier: GPL-2.0-only
/* Functions of the C library that answer for the fake kernel. */
#include "fake_kernel.h"

/* Linux 7.2 accepts each gpu_id of the machine in mmap offsets, and wants more than a page for
 * doorbells. */
void *mmap(void *address, size_t size, int protection, int flags, int fd, off_t offset)
{
	if (fd >= 0 && (uint64_t)offset >> KFD_MMAP_TYPE_SHIFT == KFD_MMAP_DOORBELL) {
		errno = kernel.maps_known_ids ? ENODEV : EINVAL;
		return MAP_FAILED;
	}
	return (void *)syscall(SYS_mmap, address, size, protection, flags, fd, offset);
}

struct fake_process *add_process(pid_t pid)
{
	struct fake_process *process = kernel.processes;

	while (process->pid)
		process++;
	process->pid = pid;
	return process;
}

void forget_processes(void)
{
	for (size_t i = 0; i < PROCESSES; i++)
		free(kernel.processes[i].bos);
	memset(kernel.processes, 0, sizeof(kernel.processes));
}

void add_device(struct fake_process *process, uint32_t user_id, uint32_t actual_id)
{
	process->devices[process->num_devices++] =
		(struct kfd_device_bucket){ .user_gpu_id = user_id, .actual_gpu_id = actual_id };
}

struct kfd_bo_bucket *add_bo(struct fake_process *process, uint32_t gpu_id, uint32_t flags,
			     uint64_t addr, uint64_t size, uint64_t offset)
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

int fake_kernel_begin(void **state)
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
	/* No GPU has had memory errors. */
	unit_print("ras/umc_err_count", "ue: 0\nce: 0\n");
	return 0;
}

void change_gpus(const char *name, const char *node, const char *edit)
{
	static char machine[200];
	char command[1200];

	(void)snprintf(machine, sizeof(machine), "%s", unit_path("machine"));
	(void)snprintf(command, sizeof(command),
		       "rm -rf %s && cp -r " MACHINES
		       "/%s %s && sed -i '%s' %s/nodes/%s/properties",
		       machine, name, machine, edit, machine, node);
	assert_int_equal(system(command), 0);
	kernel.machine = machine;
}

void fake_kernel_share(void)
{
	struct fake_kernel now = kernel;

	assert_true(mmap(&kernel, sizeof(kernel), PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == &kernel);
	kernel = now;
}

int fake_kernel_end(void **state)
{
	forget_processes();
	if (kernel.wrong_calls) {
		printf("%u calls that a kernel would refuse\n", kernel.wrong_calls);
		(void)unit_end(state);
		return -1;
	}
	return unit_end(state);
}

int open_device(const char *name, int flags)
{
	return openat(AT_FDCWD, unit_path("%s", name), flags | O_CREAT | O_CLOEXEC, 0600);
}

int open_kfd_of(const struct fake_process *process)
{
	char name[64];

	(void)snprintf(name, sizeof(name), "kfd-%zu", process - kernel.processes);
	return open_device(name, O_RDWR);
}

int open_render(uint32_t number, int flags)
{
	char name[64];

	(void)snprintf(name, sizeof(name), "renderD-%u", number);
	if (flags & O_PATH) /* open() with O_PATH makes no file. */
		(void)close(open_device(name, O_RDWR));
	return open_device(name, flags);
}

/* Where the test has a folder of sysfs. */
static const char *find_sysfs(const char *path)
{
	static _Thread_local char machine[256];

	if (!strncmp(path, KFD_PROCESSES, strlen(KFD_PROCESSES)))
		return unit_path("process");
	if (!kernel.machine)
		return path;
	if (!strncmp(path, PCI_DEVICES, strlen(PCI_DEVICES)))
		return unit_path("ras");
	if (!strcmp(path, KFD_DEVICE))
		return unit_path("sysfs-dev");
	if (strcmp(path, TOPOLOGY_SYSFS) != 0)
		return path;
	(void)snprintf(machine, sizeof(machine), "%s%s",
		       kernel.machine[0] == '/' ? "" : MACHINES "/", kernel.machine);
	return machine;
}

int openat(int directory, const char *path, int flags, ...)
{
	va_list arguments;
	mode_t mode;

	va_start(arguments, flags);
	mode = flags & O_CREAT ? va_arg(arguments, mode_t) : 0;
	va_end(arguments);
	return (int)syscall(SYS_openat, directory, find_sysfs(path), flags, mode);
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
	if (sscanf(path, "/proc/%*d/fd/%u", &number) == 1 && number >= KFD_FDS)
		return dup((int)(number - KFD_FDS));
	if (sscanf(path, "/proc/%*d/fd/%u", &number) == 1 && number > RENDER_FDS)
		return open_render(number - RENDER_FDS, flags);
	if (sscanf(path, "/dev/dri/renderD%u", &number) == 1 && !kernel.hides_render_nodes) {
		(void)__atomic_add_fetch(&kernel.render_opens, 1, __ATOMIC_RELAXED);
		return open_render(number + kernel.misnames_render_nodes, flags);
	}
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
	/* A test may give this process another cgroup. */
	if (!strcmp(path, "/proc/self/cgroup") && unit_exists("self-cgroup"))
		path = unit_path("self-cgroup");
	if (!strcmp(path, "/proc/self/mountinfo") && unit_exists("self-mountinfo"))
		path = unit_path("self-mountinfo");
	if (strstr(path, "/smaps") && unit_exists("smaps"))
		path = unit_path("smaps");
	if (strstr(path, "/status") && sscanf(path, "/proc/%u/", &number) == 1 &&
	    number == (unsigned int)getpid() && unit_exists("self-status"))
		path = unit_path("self-status");
	fd = openat(AT_FDCWD, path, flags | O_CLOEXEC, 0600);
	return fd < 0 ? NULL : fdopen(fd, mode[0] == 'w' ? "w" : "r");
}

bool __wrap_proc_in_initial_pid_namespace(void);

/* Tests may run in any pid namespace. */
bool __wrap_proc_in_initial_pid_namespace(void)
{
	return !kernel.in_pid_namespace;
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

/* kernfs_name_hash() in fs/kernfs/dir.c. */
static uint32_t sysfs_hash(const char *name)
{
	uint64_t hash = 0;

	for (; *name; name++)
		hash = (hash + ((uint64_t)*name << 4) + ((uint64_t)*name >> 4)) * 11;
	return (uint32_t)(hash * 0x61c8864680b583eb >> 32) & 0x7fffffff;
}

static int compare_in_sysfs(const void *a, const void *b)
{
	uint32_t one = sysfs_hash(((const struct dirent *)a)->d_name);
	uint32_t other = sysfs_hash(((const struct dirent *)b)->d_name);

	return one < other ? -1 : one > other;
}

static const char *path_of_stream(DIR *stream, char path[static 512])
{
	char link[64];
	ssize_t length;

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", dirfd(stream));
	length = readlink(link, path, 511);
	path[length < 0 ? 0 : length] = '\0';
	return path;
}

static bool lists_nodes(DIR *stream)
{
	char path[512];

	(void)path_of_stream(stream, path);
	return strrchr(path, '/') && !strcmp(strrchr(path, '/'), "/nodes");
}

/* The process that computes and whose descriptors @stream lists, or 0. */
static pid_t lists_descriptors(DIR *stream)
{
	char path[512], want[64];

	(void)path_of_stream(stream, path);
	for (size_t i = 0; i < PROCESSES && kernel.processes[i].pid; i++) {
		(void)snprintf(want, sizeof(want), "/proc/%d/fd", kernel.processes[i].pid);
		if (kernel.processes[i].pid != getpid() && !strcmp(path, want))
			return kernel.processes[i].pid;
	}
	return 0;
}

static bool is_kfd_of(int fd, pid_t pid)
{
	const int error = errno, index = device_of(fd, "kfd-");

	errno = error; /* that of readdir() */
	return index >= 0 && index < PROCESSES && kernel.processes[index].pid == pid;
}

static bool is_shared_render(int fd)
{
	const int error = errno;
	bool shared = kernel.shares_render_files && device_of(fd, "renderD-") >= 0;

	errno = error;
	return shared;
}

/* The render nodes, and the /dev/kfd that the test has opened for the process, follow the
 * descriptors that the process really has. */
static _Thread_local unsigned int next_render, next_fd;

static struct dirent *next_device(DIR *stream)
{
	static _Thread_local struct dirent entry;
	const pid_t pid = lists_descriptors(stream);

	if (pid && next_render < kernel.num_open_renders) {
		(void)snprintf(entry.d_name, sizeof(entry.d_name), "%u",
			       RENDER_FDS + 128 + next_render++);
		return &entry;
	}
	while (pid && next_fd < FAKE_FDS) {
		const int fd = (int)next_fd++;

		if (!is_kfd_of(fd, pid) && !is_shared_render(fd))
			continue;
		(void)snprintf(entry.d_name, sizeof(entry.d_name), "%u", KFD_FDS + (unsigned)fd);
		return &entry;
	}
	return NULL;
}

/* Lists the nodes of a topology in the order of sysfs. The plugin reads that directory to its end.
 */
struct dirent *readdir(DIR *stream)
{
	static _Thread_local struct dirent *(*next)(DIR *);
	static _Thread_local struct dirent nodes[64];
	static _Thread_local size_t num_nodes, at;
	struct dirent *entry;

	if (!next)
		next = (struct dirent * (*)(DIR *)) dlsym(RTLD_NEXT, "readdir");
	if (!lists_nodes(stream)) {
		entry = next(stream);
		if (!entry)
			return next_device(stream);
		next_render = next_fd = 0;
		return entry;
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

/* Makes a context, or reports its flags (QUERY_STATE2). */
static int context_ioctl(uint32_t minor, uint32_t *argument)
{
	bool is_query = argument[0] == 4;
	bool has_flags = !kernel.context_minor || kernel.context_minor == minor;

	if (argument[0] != 1 && !is_query)
		return EINVAL;
	if (kernel.context_errno)
		return kernel.context_errno;
	memset(argument, 0, 16);
	argument[0] = !is_query ? 7 : has_flags ? kernel.context_flags : 0;
	return 0;
}

static int render_ioctl(int minor, unsigned long request, void *argument)
{
	if (request == DRM_IOCTL_VERSION) {
		struct drm_version *version = argument;

		if (version->name_len)
			(void)strncpy(version->name, kernel.driver, version->name_len);
		version->name_len = strlen(kernel.driver);
		return 0;
	}
	if (_IOC_NR(request) == DRM_COMMAND_BASE + CONTEXT)
		return context_ioctl((uint32_t)minor, argument);
	if (_IOC_NR(request) == DRM_COMMAND_BASE + GEM_MMAP)
		return EPERM;
	/* Kernels before 6.18 do not know it. */
	if (_IOC_NR(request) == DRM_COMMAND_BASE + LIST_HANDLES)
		return EINVAL;
	if (_IOC_NR(request) == DRM_COMMAND_BASE + GEM_OP)
		return *(uint32_t *)argument <= kernel.gem_objects ? 0 : ENOENT;
	return kernel.other_render ? kernel.other_render(request, argument) : ENOTTY;
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
	/* The kernel refuses all calls of a descriptor with O_PATH. */
	if (fcntl(fd, F_GETFL) >= 0 && fcntl(fd, F_GETFL) & O_PATH && device_of(fd, "renderD-") < 0)
		error = EBADF;
	else if (kfd >= 0)
		error = kfd_ioctl(kfd, request, argument);
	else if (device_of(fd, "renderD-") >= 0)
		error = render_ioctl(device_of(fd, "renderD-"), request, argument);
	else
		return (int)syscall(SYS_ioctl, fd, request, argument);
	errno = error;
	return error ? -1 : 0;
}
