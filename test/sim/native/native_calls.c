// SPDX-License-Identifier: GPL-2.0-only
/* Overrides the C library's functions through which programs reach devices. Each function checks
 * whether the object is simulated, and passes other calls on to the real function. */
#include <dirent.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "native.h"

#define EXPORTED __attribute__((visibility("default")))

/* The headers lack these. The compiler calls them instead of open() to check the arguments. */
int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);
int __openat_2(int directory, const char *path, int flags);
int __openat64_2(int directory, const char *path, int flags);

/* Sanitizers call some of these functions before their own setup, when only the real functions
 * work. For the same reason, this file is built without instrumentation. */
static bool ready;

static void __attribute__((constructor)) get_ready(void)
{
	ready = true;
}

static struct native_file *file_of(int fd)
{
	return ready ? native_file_get(fd) : NULL;
}

static const char *path_of(const char *path, char *buffer)
{
	return ready ? native_path(path, buffer) : path;
}

static struct native *machine(void)
{
	return ready ? native_peek() : NULL;
}

static int failed(int ret)
{
	if (ret >= 0)
		return ret;
	errno = -ret;
	return -1;
}

/* Files of hidden GPUs: the kernel refuses to read them. */
static bool is_hidden(struct native *native, const char *path)
{
	const char *nodes = strstr(path, "/topology/nodes/");
	u32 node, i;

	if (!nodes || sscanf(nodes, "/topology/nodes/%u/", &node) != 1)
		return false;
	for (i = 0; i < native->sim.num_gpus; i++)
		if (native->sim.gpus[i].node == node)
			return native->sim.gpus[i].hidden;
	return false;
}

static bool any_hidden(struct native *native)
{
	u32 i;

	for (i = 0; native && i < native->sim.num_gpus; i++)
		if (native->sim.gpus[i].hidden)
			return true;
	return false;
}

/* Resolves a path relative to a directory that was opened below the machine's tree. */
static bool is_hidden_at(int directory, const char *path)
{
	char link[64], full[PATH_MAX * 2];
	ssize_t length = 0;

	if (!any_hidden(machine()))
		return false;
	if (path[0] != '/' && directory >= 0) {
		(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", directory);
		length = NATIVE_REAL(readlink)(link, full, PATH_MAX);
		length = length < 0 ? 0 : length;
	}
	(void)snprintf(full + length, sizeof(full) - (size_t)length, "/%s", path);
	return is_hidden(native_peek(), full);
}

/* Opens @path if it is a device or a file of /proc; false: it is neither. */
static bool open_special(const char *path, int flags, int *ret_fd)
{
	int length = 0, fd;
	u32 minor;

	if (!ready || !path || path[0] != '/')
		return false;
	fd = native_proc_open(path);
	if (fd != -2) {
		*ret_fd = fd;
		return true;
	}
	if (flags & (O_PATH | O_DIRECTORY))
		return false;
	if (strncmp(path, "/dev/", strlen("/dev/")) == 0)
		native_check_clone();
	if (strcmp(path, "/dev/kfd") == 0 && native_get()) {
		*ret_fd = failed(native_open_kfd(native_get(), flags));
		return true;
	}
	if (sscanf(path, "/dev/dri/renderD%u%n", &minor, &length) == 1 && !path[length] &&
	    native_get()) {
		char buffer[PATH_MAX];

		*ret_fd = -1;
		if (NATIVE_REAL(access)(path_of(path, buffer), F_OK) == 0)
			*ret_fd = failed(native_open_render(native_get(), minor, flags));
		return true;
	}
	return false;
}

static int open_any(int directory, const char *path, int flags, mode_t mode)
{
	char buffer[PATH_MAX], whole[PATH_MAX];
	int fd;

	if (ready && path)
		path = native_proc_name(directory, path, whole);
	if (open_special(path, flags, &fd))
		return fd;
	if (ready && path && flags & O_PATH) {
		fd = native_dmabuf_open_link(path);
		if (fd >= 0)
			return fd;
	}
	if (path && is_hidden_at(directory, path))
		return failed(-EPERM);
	fd = NATIVE_REAL(openat)(directory, path_of(path, buffer), flags, mode);
	/* a link to a file that is open elsewhere */
	if (ready && fd >= 0 && path && strncmp(path, "/proc/", strlen("/proc/")) == 0)
		native_holders_note(fd);
	return fd;
}

static mode_t mode_of(int flags, va_list arguments)
{
	return flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(arguments, mode_t) : 0;
}

#define DEFINE_OPEN(name)                                     \
	EXPORTED int name(const char *path, int flags, ...)   \
	{                                                     \
		va_list arguments;                            \
		mode_t mode;                                  \
                                                              \
		va_start(arguments, flags);                   \
		mode = mode_of(flags, arguments);             \
		va_end(arguments);                            \
		return open_any(AT_FDCWD, path, flags, mode); \
	}

#define DEFINE_OPENAT(name)                                                \
	EXPORTED int name(int directory, const char *path, int flags, ...) \
	{                                                                  \
		va_list arguments;                                         \
		mode_t mode;                                               \
                                                                           \
		va_start(arguments, flags);                                \
		mode = mode_of(flags, arguments);                          \
		va_end(arguments);                                         \
		return open_any(directory, path, flags, mode);             \
	}

DEFINE_OPEN(open)
DEFINE_OPEN(open64)
DEFINE_OPENAT(openat)
DEFINE_OPENAT(openat64)

EXPORTED int __open_2(const char *path, int flags)
{
	return open_any(AT_FDCWD, path, flags, 0);
}

EXPORTED int __open64_2(const char *path, int flags)
{
	return open_any(AT_FDCWD, path, flags, 0);
}

EXPORTED int __openat_2(int directory, const char *path, int flags)
{
	return open_any(directory, path, flags, 0);
}

EXPORTED int __openat64_2(int directory, const char *path, int flags)
{
	return open_any(directory, path, flags, 0);
}

static FILE *fopen_special(const char *path, const char *mode, bool *ret_special)
{
	FILE *file;
	int fd;

	*ret_special = open_special(path, O_RDONLY | O_CLOEXEC, &fd);
	if (!*ret_special && path && is_hidden_at(AT_FDCWD, path)) {
		*ret_special = true;
		fd = failed(-EPERM);
	}
	if (!*ret_special || fd < 0)
		return NULL;
	file = fdopen(fd, mode);
	if (!file)
		(void)close(fd);
	return file;
}

EXPORTED FILE *fopen(const char *path, const char *mode)
{
	char buffer[PATH_MAX];
	bool special;
	FILE *file = fopen_special(path, mode, &special);

	return special ? file : NATIVE_REAL(fopen)(path_of(path, buffer), mode);
}

EXPORTED FILE *fopen64(const char *path, const char *mode)
{
	return fopen(path, mode);
}

/* The open directory of this process's descriptors, as that of CRIU or of a task. */
static _Thread_local DIR *files_of_criu, *files_of_task;

static bool is_of_task(const char *path)
{
	int pid, length = 0;

	return sscanf(path, "/proc/%d/fd%n", &pid, &length) == 1 && length && !path[length] &&
	       pid == native_real_pid();
}

EXPORTED DIR *opendir(const char *path)
{
	char buffer[PATH_MAX];
	DIR *stream = NATIVE_REAL(opendir)(path_of(path, buffer));

	if (stream && strcmp(path, "/proc/self/fd") == 0)
		files_of_criu = stream;
	else if (stream && is_of_task(path))
		files_of_task = stream;
	return stream;
}

/* A process that plays both CRIU and its tasks has the files of the tasks below a number. The
 * simulator's own are above those of CRIU. */
static bool is_shown(DIR *stream, const struct dirent *entry)
{
	struct native *native = native_peek();
	const int lowest = native ? native->own_files : 0;
	const int number = atoi(entry->d_name);

	if (!lowest || entry->d_name[0] == '.')
		return true;
	if (stream == files_of_criu)
		return number >= lowest && number < native_fd_lowest_kept();
	return stream != files_of_task || number < lowest;
}

EXPORTED struct dirent *readdir(DIR *stream)
{
	struct dirent *entry;

	do
		entry = NATIVE_REAL(readdir)(stream);
	while (entry && !is_shown(stream, entry));
	return entry;
}

EXPORTED int closedir(DIR *stream)
{
	files_of_criu = files_of_criu == stream ? NULL : files_of_criu;
	files_of_task = files_of_task == stream ? NULL : files_of_task;
	return NATIVE_REAL(closedir)(stream);
}

EXPORTED int access(const char *path, int mode)
{
	char buffer[PATH_MAX];

	return NATIVE_REAL(access)(path_of(path, buffer), mode);
}

EXPORTED int faccessat(int directory, const char *path, int mode, int flags)
{
	char buffer[PATH_MAX];

	return NATIVE_REAL(faccessat)(directory, path_of(path, buffer), mode, flags);
}

EXPORTED ssize_t readlink(const char *path, char *target, size_t size)
{
	ssize_t length = ready ? native_proc_readlink(path, target, size) : -1;
	char buffer[PATH_MAX];

	return length >= 0 ? length : NATIVE_REAL(readlink)(path_of(path, buffer), target, size);
}

#define DEFINE_STAT(name)                                                   \
	EXPORTED int name(const char *path, struct stat *result)            \
	{                                                                   \
		char buffer[PATH_MAX];                                      \
		int ret = NATIVE_REAL(name)(path_of(path, buffer), result); \
                                                                            \
		if (ret == 0 && ready)                                      \
			native_stat_of_path(path, result);                  \
		return ret;                                                 \
	}

DEFINE_STAT(stat)
DEFINE_STAT(lstat)

EXPORTED int fstat(int fd, struct stat *result)
{
	int ret = NATIVE_REAL(fstat)(fd, result);

	if (ret == 0 && ready)
		native_stat_of_fd(fd, result);
	return ret;
}

EXPORTED int fstatat(int directory, const char *path, struct stat *result, int flags)
{
	char buffer[PATH_MAX];
	int ret = NATIVE_REAL(fstatat)(directory, path_of(path, buffer), result, flags);

	if (ret == 0 && ready && path[0])
		native_stat_of_path(path, result);
	else if (ret == 0 && ready && flags & AT_EMPTY_PATH)
		native_stat_of_fd(directory, result);
	return ret;
}

/* On 64-bit machines, both names are the same struct. */
_Static_assert(sizeof(struct stat) == sizeof(struct stat64), "stat");

EXPORTED int stat64(const char *path, struct stat64 *result)
{
	return stat(path, (struct stat *)result);
}

EXPORTED int lstat64(const char *path, struct stat64 *result)
{
	return lstat(path, (struct stat *)result);
}

EXPORTED int fstat64(int fd, struct stat64 *result)
{
	return fstat(fd, (struct stat *)result);
}

EXPORTED int fstatat64(int directory, const char *path, struct stat64 *result, int flags)
{
	return fstatat(directory, path, (struct stat *)result, flags);
}

/* Weak, since unit tests that are linked with this have an lseek() of their own. */
EXPORTED __attribute__((weak)) off_t lseek(int fd, off_t offset, int whence)
{
	off_t at;

	if (!ready || !native_dmabuf_seek(fd, offset, whence, &at))
		return NATIVE_REAL(lseek)(fd, offset, whence);
	return at < 0 ? failed((int)at) : at;
}

EXPORTED off64_t lseek64(int fd, off64_t offset, int whence)
{
	return lseek(fd, offset, whence);
}

EXPORTED int ioctl(int fd, unsigned long request, ...)
{
	struct native_file *file = file_of(fd);
	va_list arguments;
	void *argument;
	int ret;

	va_start(arguments, request);
	argument = va_arg(arguments, void *);
	va_end(arguments);
	if (!file && ready && native_file_is_inherited(fd))
		return failed(-EBADF);
	if (!file)
		return NATIVE_REAL(ioctl)(fd, request, argument);
	if (file->kind == NATIVE_KFD)
		ret = (int)native_kfd_ioctl(file, (u32)request, argument);
	else
		ret = native_drm_ioctl(file, request, argument);
	native_file_put(file);
	return failed(ret);
}

EXPORTED void *mmap(void *addr, size_t size, int prot, int flags, int fd, off_t offset)
{
	struct native_file *file = flags & MAP_ANONYMOUS || fd < 0 ? NULL : file_of(fd);
	void *mapping;
	int error;

	if (!file)
		return NATIVE_REAL(mmap)(addr, size, prot, flags, fd, offset);
	if (file->kind == NATIVE_KFD)
		mapping = native_kfd_mmap(file, addr, size, prot, flags, (u64)offset, &error);
	else
		mapping = native_drm_mmap(file, addr, size, prot, flags, (u64)offset, &error);
	native_file_put(file);
	if (mapping == MAP_FAILED)
		errno = -error;
	return mapping;
}

EXPORTED void *mmap64(void *addr, size_t size, int prot, int flags, int fd, off64_t offset)
{
	return mmap(addr, size, prot, flags, fd, offset);
}

/* Reports the change to the driver, as an MMU notifier does. */
static void note_unmap(struct native *native, void *addr, size_t size)
{
	u64 start = (u64)(uintptr_t)addr;
	struct sim_process *process;

	process = native->processes[native->task] ? sim_os_process_find((u32)native->pid) : NULL;
	if (!process)
		return;
	sim_svm_unmapped(process, start, start + size);
	sim_os_process_put(process);
}

EXPORTED int munmap(void *addr, size_t size)
{
	struct native *native = machine();

	if (native)
		note_unmap(native, addr, size);
	return NATIVE_REAL(munmap)(addr, size);
}

/* After the last descriptor is closed, the file goes away immediately: its objects are free and its
 * work is finished. */
static int after_close(bool ours, int ret)
{
	int saved = errno;

	if (ours)
		native_files_reap(machine());
	errno = saved;
	return ret;
}

static bool is_ours(int fd)
{
	struct native_file *file = file_of(fd);

	if (file)
		native_file_put(file);
	return file;
}

EXPORTED int close(int fd)
{
	bool ours = is_ours(fd);

	return after_close(ours, NATIVE_REAL(close)(fd));
}

/* A dma-buf has one more descriptor, if @fd is one. */
static int noted(int fd)
{
	if (ready && fd >= 0)
		native_holders_note(fd);
	return fd;
}

EXPORTED int dup2(int fd, int to)
{
	bool ours = is_ours(to);

	return noted(after_close(ours, NATIVE_REAL(dup2)(fd, to)));
}

EXPORTED int dup3(int fd, int to, int flags)
{
	bool ours = is_ours(to);

	return noted(after_close(ours, NATIVE_REAL(dup3)(fd, to, flags)));
}

EXPORTED int dup(int fd)
{
	return noted(NATIVE_REAL(dup)(fd));
}

static int duplicated(int command, int ret)
{
	return command == F_DUPFD || command == F_DUPFD_CLOEXEC ? noted(ret) : ret;
}

#define DEFINE_FCNTL(name)                                                            \
	EXPORTED int name(int fd, int command, ...)                                   \
	{                                                                             \
		va_list arguments;                                                    \
		void *argument;                                                       \
                                                                                      \
		va_start(arguments, command);                                         \
		argument = va_arg(arguments, void *);                                 \
		va_end(arguments);                                                    \
		return duplicated(command, NATIVE_REAL(name)(fd, command, argument)); \
	}

DEFINE_FCNTL(fcntl)
DEFINE_FCNTL(fcntl64)

EXPORTED ssize_t recvmsg(int socket, struct msghdr *message, int flags)
{
	ssize_t size = NATIVE_REAL(recvmsg)(socket, message, flags);

	if (ready && size >= 0 && message->msg_controllen)
		native_holders_forget();
	return size;
}

/* A process of a pid name space of its own does not know the others there, so all of them exist. */
EXPORTED int kill(pid_t pid, int number)
{
	struct native *native = machine();

	return native && native->own_pid && !number ? 0 : NATIVE_REAL(kill)(pid, number);
}

EXPORTED pid_t getpid(void)
{
	struct native *native = machine();

	return native && native->own_pid ? native->own_pid : native_real_pid();
}

/* A process with a simulated pid still compares its own descriptors. */
EXPORTED long syscall(long number, ...)
{
	struct native *native = machine();
	long arguments[6], ret;
	va_list list;
	int i;

	va_start(list, number);
	for (i = 0; i < 6; i++)
		arguments[i] = va_arg(list, long);
	va_end(list);
	for (i = 0; number == SYS_kcmp && i < 2; i++)
		if (native && native->own_pid && arguments[i] == native->own_pid)
			arguments[i] = native->pid;
	ret = NATIVE_REAL(syscall)(number, arguments[0], arguments[1], arguments[2], arguments[3],
				   arguments[4], arguments[5]);
	return number == SYS_pidfd_getfd ? noted((int)ret) : ret;
}
