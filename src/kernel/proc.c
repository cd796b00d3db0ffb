// SPDX-License-Identifier: GPL-2.0-only
/* Reads the parents, tracers, vpids, rights and mappings of processes from /proc. */
#include "kernel/proc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "amdgpu_plugin_util.h"

/* PROC_PID_INIT_INO and PROC_USER_INIT_INO in the kernel's linux/proc_ns.h */
#define PID_NAMESPACE_INITIAL  0xeffffffc
#define USER_NAMESPACE_INITIAL 0xeffffffd

/* The kernel has 20 bits for minors. */
#define MINOR_DIGITS_MAX 7

int proc_open_file(pid_t pid, const char *name, FILE **ret_file)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	*ret_file = stream_open(path);
	if (*ret_file)
		return 0;
	return errno == ENOENT ? -ESRCH : -errno;
}

static void parse_status(const char *line, struct proc_status *status)
{
	/* NSpid lists the pids in all pid namespaces, the innermost last. */
	const char *innermost = strrchr(line, '\t');
	pid_t pid = innermost ? (pid_t)strtol(innermost, NULL, 10) : 0;
	uint64_t mask = innermost ? strtoull(innermost, NULL, 16) : 0;

	if (!strncmp(line, "PPid:", 5))
		status->parent = pid;
	else if (!strncmp(line, "TracerPid:", 10))
		status->tracer = pid;
	else if (!strncmp(line, "NSpid:", 6))
		status->vpid = pid;
	else if (!strncmp(line, "SigPnd:", 7) || !strncmp(line, "ShdPnd:", 7))
		status->pending |= mask;
	else if (!strncmp(line, "SigIgn:", 7))
		status->ignored = mask;
	else if (!strncmp(line, "SigCgt:", 7))
		status->caught = mask;
	else if (!strncmp(line, "CapBnd:", 7))
		status->bounding = mask;
	else if (!strncmp(line, "NoNewPrivs:", 11))
		status->no_new_privs = mask;
}

int proc_read_status(pid_t pid, struct proc_status *ret_status)
{
	struct proc_status status = { .tracer = -1, .vpid = -1 };
	_cleanup_fclose_ FILE *file = NULL;
	char line[256];
	int ret = proc_open_file(pid, "status", &file);

	if (ret < 0)
		return ret;
	while (fgets(line, sizeof(line), file))
		parse_status(line, &status);
	if (ferror(file))
		return errno == ESRCH ? -ESRCH : -EIO;
	if (status.tracer < 0 || status.vpid < 0)
		return -ESRCH;
	*ret_status = status;
	return 0;
}

int proc_vpid(pid_t pid, pid_t *ret_vpid)
{
	struct proc_status status = { 0 };
	int ret = proc_read_status(pid, &status);

	if (!ret)
		*ret_vpid = status.vpid;
	return ret;
}

int proc_own_capabilities(uint64_t *ret_capabilities)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { 0 };

	if (syscall(SYS_capget, &header, data) < 0)
		return -errno;
	*ret_capabilities = (uint64_t)data[1].effective << 32 | data[0].effective;
	return 0;
}

ino_t proc_pid_namespace(void)
{
	struct stat namespace;

	return stat("/proc/self/ns/pid", &namespace) < 0 ? 0 : namespace.st_ino;
}

bool proc_in_initial_pid_namespace(void)
{
	return proc_pid_namespace() == PID_NAMESPACE_INITIAL;
}

bool proc_in_user_namespace(void)
{
	struct stat namespace;

	return !stat("/proc/self/ns/user", &namespace) &&
	       namespace.st_ino != USER_NAMESPACE_INITIAL;
}

bool proc_is_missing(pid_t pid)
{
	return kill(pid, 0) < 0 && errno == ESRCH;
}

/* The process has ended, or /proc hides it. */
static bool is_hidden(int error)
{
	return error == -ESRCH || error == -EPERM || error == -EACCES;
}

/* The processes, or threads, with a number in @directory: those for which @matches returns 1, or
 * all of them with NULL. */
static int list_processes(const char *directory, int (*matches)(pid_t pid, const void *what),
			  const void *what, struct pid_list *ret_list)
{
	_cleanup_(pid_list_done) struct pid_list list = { 0 };
	_cleanup_closedir_ DIR *stream = opendir(directory);
	struct dirent *entry;
	int ret = 0;

	if (!stream)
		return -errno;
	while (ret >= 0 && (entry = next_entry(stream, &ret))) {
		pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);

		ret = pid > 0;
		if (ret > 0 && matches)
			ret = matches(pid, what);
		if (ret > 0)
			ret = pid_list_add(&list, pid);
		else if (is_hidden(ret))
			ret = 0;
	}
	if (ret < 0)
		return ret;
	*ret_list = take_struct(list);
	return 0;
}

static int is_traced_by(pid_t pid, const void *tracer)
{
	struct proc_status status = { 0 };
	int ret = proc_read_status(pid, &status);

	return ret < 0 ? ret : status.tracer == *(const pid_t *)tracer;
}

int proc_list_tracees(struct pid_list *ret_list)
{
	const pid_t tracer = (pid_t)gettid();

	return list_processes("/proc", is_traced_by, &tracer, ret_list);
}

int proc_find_root(pid_t pid, pid_t *ret_root)
{
	struct proc_status status = { 0 }, above = { 0 };
	int ret = proc_read_status(pid, &status);

	while (!ret && status.parent != getpid()) {
		ret = proc_read_status(status.parent, &above);
		if (ret == -ESRCH || (!ret && above.tracer != gettid())) {
			*ret_root = pid;
			return 0;
		}
		pid = status.parent;
		status = above;
	}
	if (!ret)
		*ret_root = status.parent;
	return ret;
}

static int is_below(pid_t pid, const void *top)
{
	struct proc_status status = { .parent = pid };
	int ret = 0;

	while (!ret && status.parent && status.parent != *(const pid_t *)top)
		ret = proc_read_status(status.parent, &status);
	return ret < 0 ? ret : status.parent != 0;
}

int proc_list_tree(pid_t top, struct pid_list *ret_list)
{
	return list_processes("/proc", is_below, &top, ret_list);
}

int proc_stat_mapped(pid_t pid, struct proc_range mapping, struct stat *ret_stat)
{
	char path[96];

	(void)snprintf(path, sizeof(path), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, pid,
		       mapping.start, mapping.end);
	return stat(path, ret_stat) < 0 ? -errno : 0;
}

/* A shared mapping and its file. Anonymous shared memory has a file, too. */
struct shared_mapping {
	struct proc_range range;
	struct stat file;
};

static int has_mapping(pid_t pid, const void *what)
{
	const struct shared_mapping *shared = what;
	struct stat file;
	int ret = proc_stat_mapped(pid, shared->range, &file);

	if (ret == -ENOENT)
		return 0;
	return ret < 0 ? ret
		       : file.st_dev == shared->file.st_dev && file.st_ino == shared->file.st_ino;
}

int proc_list_sharers(const void *memory, size_t size, struct pid_list *ret_list)
{
	const uintptr_t start = (uintptr_t)memory;
	struct shared_mapping shared = { .range = { start, start + size } };
	int ret = proc_stat_mapped(getpid(), shared.range, &shared.file);

	return ret < 0 ? ret : list_processes("/proc", has_mapping, &shared, ret_list);
}

int proc_find_tracee(pid_t vpid, pid_t *ret_pid)
{
	_cleanup_(pid_list_done) struct pid_list tracees = { 0 };
	int ret = proc_list_tracees(&tracees);

	if (ret < 0)
		return ret;
	for (size_t i = 0; i < tracees.count; i++) {
		struct proc_status status = { 0 };

		if (proc_read_status(tracees.pids[i], &status) || status.vpid != vpid)
			continue;
		*ret_pid = tracees.pids[i];
		return 0;
	}
	return -ESRCH;
}

bool proc_is_traced(pid_t pid)
{
	struct proc_status status = { 0 };

	return !proc_read_status(pid, &status) && status.tracer > 0;
}

#define SIGNAL_BIT(signal) (UINT64_C(1) << ((signal)-1))

/* The kernel queues ignored signals of a traced process, too. */
int proc_pending_signals(pid_t pid, uint64_t *ret_signals)
{
	const uint64_t without_effect = SIGNAL_BIT(SIGCHLD) | SIGNAL_BIT(SIGCONT) |
					SIGNAL_BIT(SIGURG) | SIGNAL_BIT(SIGWINCH);
	_cleanup_(pid_list_done) struct pid_list threads = { 0 };
	struct proc_status status = { 0 };
	uint64_t pending = 0;
	char path[64];
	int ret;

	(void)snprintf(path, sizeof(path), "/proc/%d/task", pid);
	ret = list_processes(path, NULL, NULL, &threads);
	for (size_t i = 0; !ret && i < threads.count; i++) {
		ret = proc_read_status(threads.pids[i], &status);
		pending |= status.pending;
	}
	if (!ret)
		*ret_signals = pending & ~status.ignored & ~(without_effect & ~status.caught);
	return ret;
}

int proc_open_fds(pid_t pid, DIR **ret_stream)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	*ret_stream = opendir(path);
	if (*ret_stream)
		return 0;
	return errno == ENOENT ? -ESRCH : -errno;
}

bool proc_next_fd(DIR *stream, int *ret_number, int *ret_error)
{
	struct dirent *entry;

	do
		entry = next_entry(stream, ret_error);
	while (entry && entry->d_name[0] == '.');
	*ret_number = entry ? atoi(entry->d_name) : -1;
	return entry;
}

int proc_stat_fd(pid_t pid, int number, struct stat *ret_stat)
{
	_cleanup_close_ int fd = -1;
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/fd/%d", pid, number);
	fd = fd_open(path, O_PATH);
	if (fd >= 0)
		return fstat(fd, ret_stat) < 0 ? 0 : 1;
	return fd == -EMFILE || fd == -ENFILE || fd == -ENOMEM ? fd : 0;
}

int proc_get_fd(pid_t pid, int number, int *ret_fd)
{
	_cleanup_close_ int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	int fd;

	if (pidfd < 0)
		return -errno;
	fd = (int)syscall(SYS_pidfd_getfd, pidfd, number, 0);
	if (fd < 0)
		return -errno;
	*ret_fd = fd;
	return 0;
}

int proc_device_of_path(const char *path)
{
	static const char prefix[] = "renderD";
	const char *name = strrchr(path, '/');
	const char *number;
	size_t digits;

	name = name ? name + 1 : path;
	if (!strcmp(name, "kfd"))
		return 0;
	if (strncmp(name, prefix, strlen(prefix)))
		return -ENOENT;
	number = name + strlen(prefix);
	digits = strspn(number, "0123456789");
	if (!digits || digits > MINOR_DIGITS_MAX || number[digits] || !strtol(number, NULL, 10))
		return -ENOENT;
	return (int)strtol(number, NULL, 10);
}

/* The file that the path of a line of maps names for the process, if it still is the one with
 * @inode. */
static int stat_by_path(pid_t pid, const char *line, unsigned long long inode,
			struct stat *ret_stat)
{
	const char *name = strchr(line, '/');
	char path[PATH_MAX];

	if (!name)
		return -ENOENT;
	(void)snprintf(path, sizeof(path), "/proc/%d/root%.*s", pid, (int)strcspn(name, "\n"),
		       name);
	return stat(path, ret_stat) < 0 || ret_stat->st_ino != inode ? -ENOENT : 0;
}

/* Parses a line of maps: "start-end perms offset dev inode path". The path may be hidden or name
 * another file by now, so the link in map_files identifies the device. -ENOENT: the mapping is not
 * one of a character device. */
static int parse_mapping(pid_t pid, const char *line, struct proc_mapping *ret_mapping)
{
	struct proc_mapping mapping = { 0 };
	unsigned long long inode;
	struct stat stat_of;
	int ret;

	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64 " %*s %llu", &mapping.start,
		   &mapping.end, &mapping.offset, &inode) != 4 ||
	    !inode)
		return -ENOENT;
	ret = proc_stat_mapped(pid, (struct proc_range){ mapping.start, mapping.end }, &stat_of);
	if (ret == -EPERM)
		ret = stat_by_path(pid, line, inode, &stat_of);
	if (ret < 0)
		return ret;
	if (!S_ISCHR(stat_of.st_mode))
		return -ENOENT;
	mapping.device = stat_of.st_rdev;
	*ret_mapping = mapping;
	return 0;
}

int proc_list_mappings(pid_t pid, struct proc_mapping **ret_mappings, size_t *ret_count)
{
	_cleanup_free_ struct proc_mapping *mappings = NULL;
	_cleanup_fclose_ FILE *file = NULL;
	_cleanup_free_ char *line = NULL;
	size_t count = 0, room = 0;
	int ret = proc_open_file(pid, "maps", &file);

	if (ret < 0)
		return ret;
	while (getline(&line, &room, file) >= 0) {
		struct proc_mapping mapping;

		ret = parse_mapping(pid, line, &mapping);
		if (ret == -ENOENT)
			continue;
		if (!ret)
			ret = array_append(&mappings, &count, sizeof(mapping), &mapping);
		if (ret < 0)
			return ret;
	}
	ret = stream_error(file);
	if (ret < 0)
		return ret;
	*ret_mappings = take_ptr(&mappings);
	*ret_count = count;
	return 0;
}

int proc_has_lazy_memory(pid_t pid)
{
	_cleanup_fclose_ FILE *file = NULL;
	_cleanup_free_ char *line = NULL;
	size_t room = 0;
	int ret = proc_open_file(pid, "smaps", &file);

	if (ret < 0)
		return ret;
	while (getline(&line, &room, file) >= 0) {
		/* VM_UFFD_MISSING (show_smap_vma_flags() in the kernel's fs/proc/task_mmu.c) */
		if (!strncmp(line, "VmFlags:", 8) && strstr(line, " um"))
			return 1;
	}
	return stream_error(file);
}

/* Reads the next mappings up to a gap between them. 0: @file has no more; 1; or -errno. */
static int read_mapped(FILE *file, struct proc_range *next, struct proc_range *ret_range)
{
	_cleanup_free_ char *line = NULL;
	size_t room = 0;
	int ret;

	*ret_range = *next;
	*next = (struct proc_range){ 0 };
	while (getline(&line, &room, file) >= 0) {
		struct proc_range range;

		if (sscanf(line, "%" SCNx64 "-%" SCNx64, &range.start, &range.end) != 2)
			return -EIO;
		if (ret_range->end && range.start != ret_range->end) {
			*next = range;
			return 1;
		}
		if (!ret_range->end)
			ret_range->start = range.start;
		ret_range->end = range.end;
	}
	ret = stream_error(file);
	return ret < 0 ? ret : ret_range->end ? 1 : 0;
}

/* The first part of @range that is not mapped. @mapped is the first mapping that ends behind its
 * start, and @next the one behind it. Either is empty if there is no such mapping. */
static struct proc_range find_hole(const struct proc_range *range, const struct proc_range *mapped,
				   const struct proc_range *next)
{
	const bool begins_mapped = mapped->end && mapped->start <= range->start;
	const uint64_t end = begins_mapped ? next->start : mapped->start;

	return (struct proc_range){
		.start = begins_mapped ? mapped->end : range->start,
		.end = end && end < range->end ? end : range->end,
	};
}

int proc_find_unmapped(pid_t pid, struct proc_range *ranges, size_t count,
		       struct proc_range *ret_range)
{
	struct proc_range mapped = { 0 }, next = { 0 };
	_cleanup_fclose_ FILE *file = NULL;
	int ret = proc_open_file(pid, "maps", &file);

	if (ret < 0)
		return ret;
	ret = 1;
	qsort(ranges, count, sizeof(*ranges), compare_u64);
	for (size_t i = 0; i < count; i++) {
		while (ret > 0 && mapped.end <= ranges[i].start)
			ret = read_mapped(file, &next, &mapped);
		if (ret < 0)
			return ret;
		if (!ret || mapped.start > ranges[i].start || mapped.end < ranges[i].end) {
			*ret_range = find_hole(&ranges[i], &mapped, &next);
			return 1;
		}
	}
	return 0;
}
