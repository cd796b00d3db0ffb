// SPDX-License-Identifier: GPL-2.0-only
/* Helpers that need only the C library. include/amdgpu_plugin_util.h describes each one. */
#include "amdgpu_plugin_util.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/kcmp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* The name of a child in ps(1), and the time that a killed child has to end. */
#define CHILD_NAME     "amdgpu_child"
#define CHILD_DEATH_MS 1000

void fd_close(int *fd)
{
	int saved = errno;

	if (*fd >= 0)
		(void)close(*fd);
	*fd = -1;
	errno = saved;
}

void cleanup_free(void *memory)
{
	free(*(void **)memory);
}

void cleanup_fclose(FILE **file)
{
	if (*file)
		(void)fclose(*file);
}

void cleanup_closedir(DIR **stream)
{
	if (*stream)
		(void)closedir(*stream);
}

pthread_mutex_t *lock_take(pthread_mutex_t *lock)
{
	(void)pthread_mutex_lock(lock);
	return lock;
}

void lock_give(pthread_mutex_t **lock)
{
	(void)pthread_mutex_unlock(*lock);
}

DIR *dir_open_at(int directory, const char *path, int *ret_error)
{
	_cleanup_close_ int fd = fd_open_at(directory, path, O_RDONLY | O_DIRECTORY);
	DIR *stream = fd < 0 ? NULL : fdopendir(fd);

	*ret_error = fd < 0 ? fd : stream ? 0 : -errno;
	if (stream)
		(void)take_fd(&fd);
	return stream;
}

struct dirent *next_entry(DIR *stream, int *ret_error)
{
	struct dirent *entry;

	errno = 0;
	entry = readdir(stream);
	*ret_error = entry ? 0 : -errno;
	return entry;
}

int stream_error(FILE *file)
{
	return feof(file) ? 0 : ferror(file) ? -EIO : -ENOMEM;
}

int take_fd(int *fd)
{
	int taken = *fd;

	*fd = -1;
	return taken;
}

void *take_ptr(void *memory)
{
	void *taken = *(void **)memory;

	*(void **)memory = NULL;
	return taken;
}

int array_grow(void *array, size_t count, size_t size)
{
	size_t bytes;
	void *grown;

	if (__builtin_mul_overflow(count, size, &bytes))
		return -ENOMEM;
	grown = realloc(*(void **)array, bytes);
	if (!grown)
		return -ENOMEM;
	*(void **)array = grown;
	return 0;
}

int array_append(void *array, size_t *count, size_t size, const void *element)
{
	size_t used = *count;
	int ret = 0;

	/* The array has room for the next power of two. */
	if (!(used & (used - 1)))
		ret = array_grow(array, used ? 2 * used : 1, size);
	if (ret < 0)
		return ret;
	memcpy(*(char **)array + *count * size, element, size);
	(*count)++;
	return 0;
}

int compare_u32(const void *left, const void *right)
{
	const uint32_t *a = left, *b = right;

	return ORDER(*a, *b);
}

int compare_u64(const void *left, const void *right)
{
	const uint64_t *a = left, *b = right;

	return ORDER(*a, *b);
}

size_t lower_bound(const void *key, const void *array, size_t count, size_t size,
		   int (*compare)(const void *element, const void *key))
{
	size_t first = 0, end = count;

	while (first < end) {
		size_t middle = first + (end - first) / 2;

		if (compare((const char *)array + middle * size, key) < 0)
			first = middle + 1;
		else
			end = middle;
	}
	return first;
}

int pid_list_add(struct pid_list *list, pid_t pid)
{
	return array_append(&list->pids, &list->count, sizeof(pid), &pid);
}

bool pid_list_has(const struct pid_list *list, pid_t pid)
{
	for (size_t i = 0; i < list->count; i++) {
		if (list->pids[i] == pid)
			return true;
	}
	return false;
}

void pid_list_done(struct pid_list *list)
{
	free(list->pids);
	*list = (struct pid_list){ 0 };
}

int fd_open(const char *path, int flags)
{
	int fd;

	do {
		fd = open(path, flags | O_CLOEXEC, 0600);
	} while (fd < 0 && errno == EINTR);
	return fd < 0 ? -errno : fd;
}

int fd_open_at(int directory, const char *path, int flags)
{
	int fd;

	do {
		fd = openat(directory, path, flags | O_CLOEXEC, 0600);
	} while (fd < 0 && errno == EINTR);
	return fd < 0 ? -errno : fd;
}

FILE *stream_open(const char *path)
{
	FILE *file;

	do {
		file = fopen(path, "re");
	} while (!file && errno == EINTR);
	return file;
}

int xioctl(int fd, unsigned long request, void *argument)
{
	int ret;

	do {
		ret = ioctl(fd, request, argument);
	} while (ret < 0 && (errno == EINTR || errno == EAGAIN));
	return ret < 0 ? -errno : 0;
}

/* One call of read(), write() or the like, which may move fewer bytes than @size. */
typedef ssize_t (*step_function)(int fd, void *bytes, size_t size, uint64_t offset);

/* Moves at least @size bytes, and up to @room. */
static int move(step_function step, int fd, void *bytes, size_t size, size_t room, uint64_t offset)
{
	size_t done = 0;

	while (done < size) {
		ssize_t moved = step(fd, (char *)bytes + done, room - done, offset + done);

		if (moved < 0 && errno == EINTR)
			continue;
		if (moved < 0)
			return -errno;
		if (moved == 0)
			return -EIO;
		done += (size_t)moved;
	}
	return 0;
}

static ssize_t pread_step(int fd, void *bytes, size_t size, uint64_t offset)
{
	return pread(fd, bytes, size, (off_t)offset);
}

static ssize_t pwrite_step(int fd, void *bytes, size_t size, uint64_t offset)
{
	return pwrite(fd, bytes, size, (off_t)offset);
}

static ssize_t read_step(int fd, void *bytes, size_t size, uint64_t offset)
{
	(void)offset;
	return read(fd, bytes, size);
}

static ssize_t write_step(int fd, void *bytes, size_t size, uint64_t offset)
{
	(void)offset;
	return write(fd, bytes, size);
}

int pread_up_to(int fd, void *buffer, size_t size, size_t room, uint64_t offset)
{
	return move(pread_step, fd, buffer, size, room, offset);
}

int pread_full(int fd, void *buffer, size_t size, uint64_t offset)
{
	return move(pread_step, fd, buffer, size, size, offset);
}

int pwrite_full(int fd, const void *buffer, size_t size, uint64_t offset)
{
	return move(pwrite_step, fd, (void *)buffer, size, size, offset);
}

int read_full(int fd, void *buffer, size_t size)
{
	return move(read_step, fd, buffer, size, size, 0);
}

int write_full(int fd, const void *buffer, size_t size)
{
	return move(write_step, fd, (void *)buffer, size, size, 0);
}

int read_short(int fd, char *text, size_t room, size_t *ret_length)
{
	size_t length = 0;
	ssize_t got;

	do {
		got = read(fd, text + length, room - 1 - length);
		if (got < 0)
			return -errno;
		length += (size_t)got;
	} while (got > 0 && length < room - 1);
	if (got > 0)
		return -E2BIG;
	text[length] = '\0';
	*ret_length = length;
	return 0;
}

int read_number_at(int directory, const char *name, uint64_t *ret_number)
{
	_cleanup_close_ int fd = fd_open_at(directory, name, O_RDONLY);
	char text[32], *end;
	size_t length;
	int ret = fd < 0 ? fd : read_short(fd, text, sizeof(text), &length);
	uint64_t number;

	if (ret < 0)
		return ret;
	number = strtoull(text, &end, 10);
	if (end == text)
		return -EIO;
	*ret_number = number;
	return 0;
}

int fd_dup_above(int fd, int lowest)
{
	int new_fd = fcntl(fd, F_DUPFD_CLOEXEC, lowest);

	return new_fd < 0 ? -errno : new_fd;
}

int fd_is_same(int one, int other)
{
	const pid_t self = getpid();
	long order = syscall(SYS_kcmp, self, self, KCMP_FILE, one, other);

	return order < 0 ? -errno : order == 0;
}

bool fd_is_same_inode(int one, int other)
{
	struct stat a, b;

	return !fstat(one, &a) && !fstat(other, &b) && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

int fd_sync(int fd)
{
	return fdatasync(fd) < 0 && errno != EINVAL && errno != EROFS ? -errno : 0;
}

int fd_move_up(int *fd, int lowest)
{
	int new_fd = fd_dup_above(*fd, lowest);

	if (new_fd < 0)
		return new_fd;
	(void)close(*fd);
	*fd = new_fd;
	return 0;
}

int nofile_raise(uint64_t highest, struct rlimit *old)
{
	struct rlimit limit, now;

	if (getrlimit(RLIMIT_NOFILE, &now) < 0)
		return -errno;
	if (!old->rlim_max)
		*old = now;
	if (now.rlim_cur > highest)
		return 0;

	limit.rlim_cur = highest + 1;
	limit.rlim_max = now.rlim_max > highest ? now.rlim_max : highest + 1;
	if (setrlimit(RLIMIT_NOFILE, &limit) == 0)
		return 0;
	limit.rlim_cur = limit.rlim_max = now.rlim_max;
	return setrlimit(RLIMIT_NOFILE, &limit) < 0 ? -errno : 0;
}

void nofile_restore(const struct rlimit *old)
{
	if (old->rlim_max)
		(void)setrlimit(RLIMIT_NOFILE, old);
}

int parse_switch(const char *text, bool *ret_on)
{
	if (!strcmp(text, "1") || !strcasecmp(text, "YES"))
		*ret_on = true;
	else if (!strcmp(text, "0") || !strcasecmp(text, "NO"))
		*ret_on = false;
	else
		return -EINVAL;
	return 0;
}

static int unit_shift(const char *unit)
{
	static const char units[] = "kmg";
	const char *found;

	if (!unit[0])
		return 0;
	found = strchr(units, tolower((unsigned char)unit[0]));
	if (!found ||
	    (unit[1] && strcasecmp(unit + 1, "B") != 0 && strcasecmp(unit + 1, "iB") != 0))
		return -EINVAL;
	return 10 * (int)(found - units + 1);
}

int parse_size(const char *text, uint64_t *ret_bytes)
{
	bool is_hex = !strncasecmp(text, "0x", 2) && isxdigit((unsigned char)text[2]);
	unsigned long long value;
	char *end;
	int shift;

	/* strtoull() accepts blanks and signs. */
	if (text[0] < '0' || text[0] > '9')
		return -EINVAL;
	errno = 0;
	value = strtoull(text, &end, is_hex ? 16 : 10);
	if (errno)
		return -errno;
	shift = unit_shift(end);
	if (shift < 0)
		return shift;
	if (value > (UINT64_MAX >> shift))
		return -ERANGE;
	*ret_bytes = (uint64_t)value << shift;
	return 0;
}

const char *pci_slot_print(struct pci_slot slot, char text[PCI_SLOT_TEXT])
{
	(void)snprintf(text, PCI_SLOT_TEXT, "%04x:%02x:%02x.%x", slot.domain,
		       slot.location >> 8 & 0xff, slot.location >> 3 & 0x1f, slot.location & 7);
	return text;
}

int pci_slot_parse(const char *text, struct pci_slot *ret_slot)
{
	unsigned int domain = 0, bus, device, function;
	int end = -1;

	if (sscanf(text, "%8x:%2x:%2x.%1x%n", &domain, &bus, &device, &function, &end) != 4) {
		domain = 0;
		if (sscanf(text, "%2x:%2x.%1x%n", &bus, &device, &function, &end) != 3)
			return -EINVAL;
	}
	if (end < 0 || text[end] || device > 0x1f || function > 7)
		return -EINVAL;
	*ret_slot = (struct pci_slot){ domain, bus << 8 | device << 3 | function };
	return 0;
}

uint64_t clamp(uint64_t value, uint64_t least, uint64_t most)
{
	if (value < least)
		return least;
	return value > most ? most : value;
}

double clock_seconds(clockid_t clock)
{
	struct timespec now = { 0 };

	(void)clock_gettime(clock, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

double now_seconds(void)
{
	return clock_seconds(CLOCK_MONOTONIC);
}

void futex_wait_while(uint32_t *word, uint32_t value, time_t seconds)
{
	const struct timespec limit = { .tv_sec = seconds };

	(void)syscall(SYS_futex, word, FUTEX_WAIT, value, &limit, NULL, 0);
}

void futex_wake_all(uint32_t *word)
{
	(void)syscall(SYS_futex, word, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

size_t usable_processors(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof(set), &set) < 0 ? 0 : (size_t)CPU_COUNT(&set);
}

int thread_start(pthread_t *thread, void *(*function)(void *), void *argument)
{
	sigset_t all, old;
	int ret;

	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &old);
	ret = -pthread_create(thread, NULL, function, argument);
	(void)pthread_sigmask(SIG_SETMASK, &old, NULL);
	return ret;
}

int thread_unshare_fs(void)
{
	return unshare(CLONE_FS) < 0 ? -errno : 0;
}

/* The parent may have died before that. */
static void die_with(pid_t parent)
{
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(ESRCH);
}

/* A job may sleep in the kernel for good, and then even SIGKILL does not end it. CRIU waits for all
 * its children, so the job runs in a child of this one, which SIGKILL always ends. Only if CRIU is
 * the init process or a subreaper, such a job becomes its child then. */
static void __attribute__((noreturn))
run_child(int (*job)(void *argument), void *argument, pid_t parent)
{
	const pid_t self = (pid_t)syscall(SYS_getpid);
	int status = 0;
	pid_t pid;

	(void)prctl(PR_SET_NAME, CHILD_NAME);
	die_with(parent);
	(void)close_range(0, ~0u, 0);
	pid = (pid_t)syscall(SYS_clone, 0UL, NULL, NULL, NULL, 0UL);
	if (!pid) {
		die_with(self);
		_exit(-job(argument) & 0xff);
	}
	if (pid < 0)
		_exit(errno);
	if (waitpid(pid, &status, __WALL) != pid || !WIFEXITED(status))
		(void)kill(self, SIGKILL);
	_exit(WEXITSTATUS(status));
}

static int await_child(int pidfd, unsigned int timeout_s, int *ret_result)
{
	struct pollfd end = { .fd = pidfd, .events = POLLIN };
	siginfo_t ended = { 0 };
	bool in_time = poll(&end, 1, (int)timeout_s * 1000) > 0;

	if (!in_time) {
		(void)syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
		(void)poll(&end, 1, CHILD_DEATH_MS);
	}
	if (waitid(P_PIDFD, (id_t)pidfd, &ended, WEXITED | WNOHANG | __WALL) < 0)
		return -errno;
	if (!in_time)
		return -ETIME;
	if (ended.si_code != CLD_EXITED)
		return -ECHILD;
	*ret_result = -ended.si_status;
	return 0;
}

int child_run(int (*job)(void *argument), void *argument, unsigned int timeout_s, int *ret_result)
{
	const pid_t parent = (pid_t)syscall(SYS_getpid);
	int fd = -1, ret;
	sigset_t all, old;
	long pid;

	/* The child must not run CRIU's handlers, and poll() must not end early. */
	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, &old);
	pid = syscall(SYS_clone, (unsigned long)CLONE_PIDFD, NULL, &fd, NULL, 0UL);
	if (!pid)
		run_child(job, argument, parent);
	ret = pid < 0 ? -errno : await_child(fd, timeout_s, ret_result);
	(void)sigprocmask(SIG_SETMASK, &old, NULL);
	fd_close(&fd);
	return ret;
}
