// SPDX-License-Identifier: GPL-2.0-only
/* /sys/class/kfd/kfd/proc: the KFD processes that this process sees, which are itself, the
 * processes that it plays, and its children. A look-up of a path there writes the directory anew,
 * or that of the process in the path, so the files say what was so at that moment (kfd_process.c,
 * Linux 6.12 and 7.3: kfd_create_process_sysfs(), kfd_procfs_show(), kfd_procfs_queue_show()).
 * Directories have the pids of the initial pid namespace. */
#include <dirent.h>
#include <ftw.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "native.h"

#define PREFIX     "/sys/class/kfd/kfd/proc"
#define SOCKETS    "/proc/net/unix"
#define NAME_SIZE  64
#define LEVELS     16
#define NO_PROCESS (-1)
/* How far pids of the initial pid namespace are above those of another one. */
#define PIDS_ABOVE 100000

/* Of the process @owner, which makes it when it first needs it. */
static char directory[PATH_MAX / 2];
static pid_t owner;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int remove_entry(const char *path, const struct stat *stat, int type, struct FTW *at)
{
	(void)stat, (void)type, (void)at;
	return remove(path);
}

static void remove_tree(const char *path)
{
	(void)nftw(path, remove_entry, LEVELS, FTW_DEPTH | FTW_PHYS);
}

static const char *parent_directory(void)
{
	const char *parent = getenv("TMPDIR");

	return parent && *parent ? parent : "/tmp";
}

/* A killed process leaves its directory behind. */
static void remove_abandoned(void)
{
	DIR *stream = NATIVE_REAL(opendir)(parent_directory());
	const struct dirent *entry;

	while (stream && (entry = readdir(stream))) {
		char path[PATH_MAX];
		int pid;

		if (sscanf(entry->d_name, "amdgpu_sim.%d.", &pid) != 1 ||
		    syscall(SYS_kill, pid, 0) == 0 || errno != ESRCH)
			continue;
		if (snprintf(path, sizeof(path), "%s/%s", parent_directory(), entry->d_name) <
		    (int)sizeof(path))
			remove_tree(path);
	}
	if (stream)
		(void)closedir(stream);
}

/* A thread that makes the directory at this moment leaves it behind, as a killed process does. */
static void __attribute__((destructor)) leave(void)
{
	if (pthread_mutex_trylock(&lock))
		return;
	if (directory[0] && owner == native_real_pid())
		remove_tree(directory);
	(void)pthread_mutex_unlock(&lock);
}

/* The child of a fork has none yet. */
static bool make_own(void)
{
	if (directory[0] && owner == native_real_pid())
		return true;
	remove_abandoned();
	owner = native_real_pid();
	if (snprintf(directory, sizeof(directory), "%s/amdgpu_sim.%d.XXXXXX", parent_directory(),
		     owner) < (int)sizeof(directory) &&
	    mkdtemp(directory))
		return true;
	(void)fprintf(stderr, "amdgpu_sim: cannot make a directory in %s for " PREFIX ": %s\n",
		      parent_directory(), strerror(errno));
	directory[0] = '\0';
	return false;
}

const char *native_procfs_directory(void)
{
	bool made;

	(void)pthread_mutex_lock(&lock);
	made = make_own();
	(void)pthread_mutex_unlock(&lock);
	return made ? directory : NULL;
}

/* Adds a directory to @path. A later write of a file shows whether that failed. */
static void enter(char *path, const char *format, ...)
{
	size_t length = strlen(path);
	va_list arguments;

	va_start(arguments, format);
	path[length] = '/';
	(void)vsnprintf(path + length + 1, PATH_MAX - length - 1, format, arguments);
	va_end(arguments);
	(void)mkdir(path, 0755);
}

static void leave_to(char *path, size_t length)
{
	path[length] = '\0';
}

static void write_file(const char *path, const char *name, const char *end, u64 value)
{
	char file[PATH_MAX + NAME_SIZE];
	FILE *stream;

	(void)snprintf(file, sizeof(file), "%s/%s", path, name);
	stream = NATIVE_REAL(fopen)(file, "we");
	if (!stream || fprintf(stream, "%llu%s", (unsigned long long)value, end) < 0)
		(void)fprintf(stderr, "amdgpu_sim: cannot write %s: %s\n", file, strerror(errno));
	if (stream)
		(void)fclose(stream);
}

static void write_queues(char *path, struct sim_process *process)
{
	const size_t length = strlen(path);
	struct sim_queue_facts queue = { 0 };
	size_t queues;
	u32 id = 0;

	enter(path, "queues");
	queues = strlen(path);
	for (; sim_process_next_queue(process, id, &queue); id = queue.id + 1) {
		enter(path, "%u", queue.id);
		write_file(path, "size", "", queue.size_bytes);
		write_file(path, "type", "", queue.type);
		write_file(path, "gpuid", "", queue.gpu_id);
		leave_to(path, queues);
	}
	leave_to(path, length);
}

static void write_process(char *path, struct native_process *process)
{
	char name[NAME_SIZE];
	u32 i;

	write_file(path, "pasid", "\n", process->process.pasid);
	write_queues(path, &process->process);
	for (i = 0; i < process->process.num_pdds; i++) {
		struct sim_pdd *pdd = process->process.pdds[i];

		(void)snprintf(name, sizeof(name), "vram_%u", pdd->gpu->gpu_id);
		write_file(path, name, "\n", sim_pdd_vram_bytes(pdd));
	}
}

static pid_t initial_pid(const struct native *native, pid_t pid)
{
	return native->in_pid_namespace ? pid + PIDS_ABOVE : pid;
}

/* In the initial pid namespace. */
static pid_t pid_of_task(const struct native *native, u32 task)
{
	return initial_pid(native, task ? native->others[task - 1].pid : native->pid);
}

/* The process of @task with its contexts. */
static void write_task(struct native *native, char *path, u32 task)
{
	const size_t length = strlen(path);
	struct native_process *process = native_process_get(native, task), *context;
	size_t inside;
	u32 number;

	if (!process)
		return;
	enter(path, "%d", pid_of_task(native, task));
	inside = strlen(path);
	write_process(path, process);
	native_process_put(process);
	for (number = 0; (context = native_context_next(native, task, &number)); number++) {
		enter(path, "context_%u", number);
		write_process(path, context);
		leave_to(path, inside);
		native_process_put(context);
	}
	leave_to(path, length);
}

/* A child has a machine of its own. Its socket says that it is a KFD process (native_resume.c). */
static pid_t child_of_line(const struct native *native, const char *line)
{
	const char *name = strstr(line, "@amdgpu_sim.");
	char path[NAME_SIZE], stat[512];
	pid_t pid, parent = NO_PROCESS;
	FILE *file;

	if (!name || sscanf(name, "@amdgpu_sim.%d", &pid) != 1)
		return NO_PROCESS;
	(void)snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	file = NATIVE_REAL(fopen)(path, "re");
	if (file && fgets(stat, sizeof(stat), file) && strrchr(stat, ')'))
		(void)sscanf(strrchr(stat, ')'), ") %*c %d", &parent);
	if (file)
		(void)fclose(file);
	return parent == native->pid ? pid : NO_PROCESS;
}

/* Only that there is such a process: what it has is in its own machine. */
static void write_children(const struct native *native, char *path)
{
	FILE *sockets = NATIVE_REAL(fopen)(SOCKETS, "re");
	const size_t length = strlen(path);
	char line[512];

	while (sockets && fgets(line, sizeof(line), sockets)) {
		pid_t pid = child_of_line(native, line);

		if (pid == NO_PROCESS)
			continue;
		enter(path, "%d", initial_pid(native, pid));
		leave_to(path, length);
	}
	if (sockets)
		(void)fclose(sockets);
}

static bool refresh_all(struct native *native, char *path)
{
	u32 task;

	remove_tree(path);
	if (mkdir(path, 0755) < 0)
		return false;
	for (task = 0; task < NATIVE_TASKS; task++)
		write_task(native, path, task);
	write_children(native, path);
	return true;
}

/* A dump looks at each process some times, and with 64 processes most of its time would go to
 * files of the others. Returns false if no task of this machine has @pid. */
static bool refresh_task(struct native *native, char *path, pid_t pid)
{
	const size_t length = strlen(path);
	u32 task = 0;

	while (task < NATIVE_TASKS && pid_of_task(native, task) != pid)
		task++;
	if (task == NATIVE_TASKS)
		return false;
	(void)mkdir(path, 0755);
	enter(path, "%d", pid);
	remove_tree(path);
	leave_to(path, length);
	write_task(native, path, task);
	return true;
}

/* @below: the path below PREFIX, or an empty string. */
static bool refresh(struct native *native, char *path, const char *below)
{
	int pid;

	if (!make_own())
		return false;
	(void)snprintf(path, PATH_MAX, "%s/proc", directory);
	if (sscanf(below, "/%d", &pid) == 1 && refresh_task(native, path, pid))
		return true;
	return refresh_all(native, path);
}

/* A test may put processes of its own into the tree of the machine. */
static bool are_in_tree(const struct native *native)
{
	const struct dirent *entry;
	char path[PATH_MAX];
	bool found = false;
	DIR *stream;

	if (snprintf(path, sizeof(path), "%s" PREFIX, native->root) >= (int)sizeof(path))
		return false;
	stream = NATIVE_REAL(opendir)(path);
	while (stream && !found && (entry = readdir(stream)))
		found = entry->d_name[0] != '.';
	if (stream)
		(void)closedir(stream);
	return found;
}

bool native_procfs_path(struct native *native, const char *path, char *buffer)
{
	const size_t length = strlen(PREFIX);
	char made[PATH_MAX];
	bool found;

	if (strncmp(path, PREFIX, length) != 0 || (path[length] && path[length] != '/') ||
	    are_in_tree(native))
		return false;
	(void)pthread_mutex_lock(&lock);
	found = refresh(native, made, path + length);
	(void)pthread_mutex_unlock(&lock);
	return found && snprintf(buffer, PATH_MAX, "%s%s", made, path + length) < PATH_MAX;
}
