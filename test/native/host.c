// SPDX-License-Identifier: GPL-2.0-only
/* The program makes tasks with a workload and dumps them, or restores them and verifies every byte.
 * It prints results and costs on stdout, one fact a line. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "client.h"
#include "criu.h"
#include "original.h"
#include "simulator.h"
#include "tasks.h"

#define KNOBS_MAX   32
#define MEMORY_STEP (1 << 20)

/* A generous limit, because other programs may use the processor meanwhile. */
#define PATIENCE_MS 60000

struct arguments {
	struct criu_setup setup;
	const char *command, *workload, *memory, *original;
	const char *early[KNOBS_MAX], *late[KNOBS_MAX];
	size_t num_early, num_late;
	bool again;
};

static int usage(void)
{
	(void)fprintf(
		stderr,
		"host [-c VERSION] [-p PLUGIN] [-v LEVEL] [-k FILE=TEXT]... [-f FILE=TEXT]... [-m FILE] [-a] [-o HANDLE] [-s] [-x] "
		"dump|restore DIR WORKLOAD\n"
		"  -c  the CRIU to be: 3.17.1, 3.18, 3.19, 4.0, 4.1.1, 4.2.1 or 4.3 (default)\n"
		"  -k  written to the simulator at the start; -f: before the plugin's first hook\n"
		"  -m  a file: on restore the task reads all of it into its memory, as CRIU does with its own images;\n"
		"      a dump writes all of it to its images, as CRIU does with the memory of tasks\n"
		"  -a  a dump that fails is made again, by another CRIU of the same process: that must succeed\n"
		"  -o  during a restore a process with the first task's pid has KFD state, and a buffer of that handle, or none\n"
		"  -s  images are streams\n"
		"  -x  CRIU is to kill the tasks (several) after the dump; \"stopped\": their queues stand still by then\n"
		"  WORKLOAD: see test/native/workload.h\n");
	return 2;
}

/* The program's own directory holds the CRIU libraries. The directory above holds the plugin. */
static void set_defaults(struct arguments *arguments)
{
	static char hosts[4096], plugin[4096 + 32];
	ssize_t length = readlink("/proc/self/exe", hosts, sizeof(hosts) - 1);

	hosts[length < 0 ? 0 : length] = '\0';
	(void)dirname(hosts);
	(void)snprintf(plugin, sizeof(plugin), "%s/../amdgpu_plugin.so", hosts);
	arguments->setup = (struct criu_setup){
		.version = "4.3", .hosts = hosts, .plugin = plugin, .log_level = 2
	};
}

static int parse(int argc, char **argv, struct arguments *arguments)
{
	int option;

	set_defaults(arguments);
	while ((option = getopt(argc, argv, "+c:p:v:k:f:m:o:asx")) >= 0) {
		if (option == 'c')
			arguments->setup.version = optarg;
		else if (option == 'p')
			arguments->setup.plugin = optarg;
		else if (option == 'v')
			arguments->setup.log_level = atoi(optarg);
		else if (option == 'm')
			arguments->memory = optarg;
		else if (option == 's')
			arguments->setup.streams = true;
		else if (option == 'o')
			arguments->original = optarg;
		else if (option == 'a')
			arguments->again = true;
		else if (option == 'x')
			arguments->setup.ends_tasks = true;
		else if (option == 'k' && arguments->num_early < KNOBS_MAX)
			arguments->early[arguments->num_early++] = optarg;
		else if (option == 'f' && arguments->num_late < KNOBS_MAX)
			arguments->late[arguments->num_late++] = optarg;
		else
			return -EINVAL;
	}
	if (argc - optind != 3)
		return -EINVAL;
	arguments->command = argv[optind];
	arguments->setup.captures = !strcmp(arguments->command, "dump");
	arguments->setup.memory = arguments->setup.captures ? arguments->memory : NULL;
	arguments->setup.directory = argv[optind + 1];
	arguments->workload = argv[optind + 2];
	return 0;
}

static int write_knobs(const char *const *knobs, size_t count)
{
	char file[128];
	int ret = 0;

	for (size_t i = 0; !ret && i < count; i++) {
		size_t length = strcspn(knobs[i], "=");

		if (!knobs[i][length] || length >= sizeof(file))
			return -EINVAL;
		memcpy(file, knobs[i], length);
		file[length] = '\0';
		ret = simulator_write(file, knobs[i] + length + 1);
	}
	return ret;
}

static double clock_seconds(clockid_t clock)
{
	struct timespec time;

	(void)clock_gettime(clock, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* Costs between begin and end, of everything in this process. */
struct measure {
	double wall, cpu;
};

static struct measure measure_begin(void)
{
	return (struct measure){ clock_seconds(CLOCK_MONOTONIC),
				 clock_seconds(CLOCK_PROCESS_CPUTIME_ID) };
}

static long peak_rss_kib(pid_t pid)
{
	char path[64], line[256];
	long kib = 0;
	FILE *file;

	(void)snprintf(path, sizeof(path), "/proc/%d/status", pid);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file)) {
		if (!strncmp(line, "VmHWM:", 6))
			kib = strtol(line + 6, NULL, 10);
	}
	if (file)
		(void)fclose(file);
	return kib;
}

/* @task: a process that takes part in the work; 0: none. */
static void measure_end(const struct measure *begin, pid_t task)
{
	double cpu = clock_seconds(CLOCK_PROCESS_CPUTIME_ID) - begin->cpu;
	struct rusage usage;
	clockid_t clock;

	if (task && !clock_getcpuclockid(task, &clock))
		cpu += clock_seconds(clock);
	(void)getrusage(RUSAGE_SELF, &usage);
	printf("seconds %.6f\n", clock_seconds(CLOCK_MONOTONIC) - begin->wall);
	printf("cpu_seconds %.6f\n", cpu);
	printf("peak_rss_kib %ld\n", usage.ru_maxrss);
	if (task)
		printf("task_peak_rss_kib %ld\n", peak_rss_kib(task));
	(void)fflush(stdout);
}

/* Memory of buffers at this moment. It is not part of the resident memory of any process. */
static void print_pages(void)
{
	char objects[4096], *pages;

	if (simulator_read("objects", objects, sizeof(objects)) < 0)
		return;
	pages = strstr(objects, "pages ");
	if (pages)
		printf("gpu_kib %ld\n", 4 * strtol(pages + strlen("pages "), NULL, 10));
}

/* Counts the entries of @directory. For threads, it leaves out the simulator's threads. */
static long count_entries(const char *directory)
{
	DIR *stream = opendir(directory);
	struct dirent *entry;
	long count = 0;

	while (stream && (entry = readdir(stream))) {
		char path[512], name[32] = "";
		FILE *file;

		(void)snprintf(path, sizeof(path), "%s/%s/comm", directory, entry->d_name);
		file = fopen(path, "re");
		if (file && !fgets(name, sizeof(name), file))
			name[0] = '\0';
		if (file)
			(void)fclose(file);
		count += strncmp(name, "amdgpu_sim", strlen("amdgpu_sim")) != 0;
	}
	if (stream)
		(void)closedir(stream);
	return count;
}

struct process_state {
	long descriptors, threads;
};

static struct process_state process_state(void)
{
	struct process_state state = { .descriptors = count_entries("/proc/self/fd") };

#ifndef __SANITIZE_THREAD__ /* which starts one of its own when there are others, and looks for \
			       lost ones */
	state.threads = count_entries("/proc/self/task");
#endif
	return state;
}

/* A joined thread may stay visible for a moment. Only a thread that stays is a leak. */
static bool has_left(const struct process_state *before)
{
	struct process_state after = process_state();

	for (int i = 0; i < PATIENCE_MS && after.threads > before->threads; i++) {
		(void)usleep(1000);
		after = process_state();
	}
	if (after.descriptors != before->descriptors)
		printf("left descriptors %ld\n", after.descriptors - before->descriptors);
	/* fewer: a thread of the simulator did not have its name yet */
	if (after.threads > before->threads)
		printf("left threads %ld\n", after.threads - before->threads);
	return after.descriptors != before->descriptors || after.threads > before->threads;
}

/* All processes run again as before: no paused process stays paused. */
static int check_processes(void)
{
	char state[16384], *line, *rest = state;
	int ret = simulator_read("processes", state, sizeof(state));

	while (ret >= 0 && (line = strsep(&rest, "\n")) && *line) {
		if (strstr(line, " evicted=0 paused=0 blocked=0 "))
			continue;
		(void)fprintf(stderr, "host: the process does not run: %s\n", line);
		ret = -EIO;
	}
	return ret < 0 ? ret : 0;
}

/* The queues of all processes with GPU state are stopped, and stay so. */
static bool are_stopped(void)
{
	char state[16384], *line, *rest = state;
	bool stopped = false;

	if (simulator_read("processes", state, sizeof(state)) < 0)
		return false;
	while ((line = strsep(&rest, "\n")) && *line) {
		if (strstr(line, " bos=0 "))
			continue;
		if (!strstr(line, " paused=1 ") || strstr(line, " evicted=0 "))
			return false;
		stopped = true;
	}
	return stopped;
}

static int check_dumped(const struct arguments *arguments, int ret)
{
	if (ret || !arguments->setup.ends_tasks || !are_stopped())
		return check_processes();
	printf("stopped\n");
	return 0;
}

static bool has_objects(void)
{
	char objects[16384], *line, *rest = objects;
	bool found = false;

	if (simulator_read("objects", objects, sizeof(objects)) < 0)
		return true;
	while ((line = strsep(&rest, "\n")) && *line)
		found |= strtoull(strchr(line, ' '), NULL, 10) != 0;
	return found;
}

/* The guard of the dump has files of the tasks open, until it sees that the tasks have ended. It is
 * no child of this process, so it cannot be waited for. */
static void await_guard(void)
{
	for (int i = 0; i < PATIENCE_MS && has_objects(); i++)
		(void)usleep(1000);
}

/* After the process's GPU state is gone, no object may be left and no violation may be counted. */
static int check_simulator(const struct process_state *before, bool has_guard)
{
	char violations[4096], objects[16384];
	char *line, *rest = objects;
	bool clean;

	if (simulator_write("process_exit", "1") < 0)
		return -EIO;
	if (has_guard)
		await_guard();
	if (simulator_read("violations", violations, sizeof(violations)) < 0 ||
	    simulator_read("objects", objects, sizeof(objects)) < 0)
		return -EIO;
	printf("violations %.*s\n", (int)strcspn(violations, "\n"), violations);
	clean = !has_left(before);
	while ((line = strsep(&rest, "\n")) && *line) {
		unsigned long long count = strtoull(strchr(line, ' '), NULL, 10);

		clean &= !count;
		if (count)
			printf("left %s\n", line);
	}
	if (clean && atoi(violations) == 0)
		return 0;
	(void)fprintf(stderr, "host: the simulator found: %s", violations);
	return -EIO;
}

/* Objects of the simulator, except the pages of buffers: reading a buffer may allocate pages. */
static void read_objects(char *objects, size_t size)
{
	char *pages;

	if (simulator_read("objects", objects, size) < 0)
		objects[0] = '\0';
	pages = strstr(objects, "pages ");
	if (pages)
		memset(pages, '-', strcspn(pages, "\n"));
}

/* Dumps with a separate CRIU, which must leave the tasks unchanged. */
static int dump_once(const struct arguments *arguments, const struct tasks *tasks)
{
	char before[16384], after[16384];
	struct process_state state = process_state();
	struct measure begin;
	struct criu *criu;
	int ret;

	read_objects(before, sizeof(before));
	ret = criu_load(&arguments->setup, &criu);
	if (ret < 0)
		return ret;
	begin = measure_begin();
	ret = criu_dump(criu, tasks->tasks, tasks->count - tasks->workloads[0].outside);
	measure_end(&begin, 0);
	criu_print_times(criu);
	criu_unload(criu);
	if (check_dumped(arguments, ret) < 0)
		ret = ret ? ret : -EIO;
	read_objects(after, sizeof(after));
	if (strcmp(before, after) != 0)
		printf("left objects: before %s, after %s\n", before, after);
	if (has_left(&state) || strcmp(before, after) != 0)
		ret = ret ? ret : -EIO;
	return ret;
}

/* Files that CRIU would take for the image of a process. */
static void report_images(const char *directory)
{
	DIR *stream = opendir(directory);
	struct dirent *entry;

	while (stream && (entry = readdir(stream))) {
		if (!strncmp(entry->d_name, "amdgpu-kfd-", strlen("amdgpu-kfd-")))
			printf("left image %s\n", entry->d_name);
	}
	if (stream)
		(void)closedir(stream);
}

static int dump_tasks(const struct arguments *arguments, const struct tasks *tasks)
{
	int ret = dump_once(arguments, tasks);

	if (!ret || !arguments->again)
		return ret;
	printf("first %d\n", ret);
	report_images(arguments->setup.directory);
	if (check_processes() < 0)
		return ret;
	(void)fprintf(stderr, "host: dumps again\n");
	return dump_once(arguments, tasks);
}

static int dump(const struct arguments *arguments, struct workload *workload)
{
	struct tasks tasks;
	int ret = tasks_make(workload, &tasks);

	if (!ret)
		ret = write_knobs(arguments->late, arguments->num_late);
	if (!ret)
		ret = dump_tasks(arguments, &tasks);
	if (!ret)
		ret = tasks_save(&tasks, arguments->setup.directory);
	print_pages();
	/* the dump must not have changed anything */
	if (workload->verify && tasks_verify(&tasks) < 0)
		ret = ret ? ret : -EIO;
	tasks_end(&tasks);
	return ret;
}

/* A task's restore, as the task and the main process see it. */
struct restored {
	const struct arguments *arguments;
	struct workload workload;
	const struct task *task;
	struct measure begin;
	struct process_state before; /* state of the task */
	int ret;
};

/* The task has its own simulator. */
static void begin_task(void *argument)
{
	struct restored *restored = argument;
	const struct arguments *arguments = restored->arguments;

	restored->ret = write_knobs(arguments->early, arguments->num_early);
	if (!restored->ret)
		restored->ret = write_knobs(arguments->late, arguments->num_late);
	restored->before = process_state();
}

/* Memory that is not for the GPU, as a measure of CRIU's own work. */
static int read_memory(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), ret = 0;
	struct stat stat;
	char *memory;

	if (fd < 0 || fstat(fd, &stat) < 0)
		return -errno;
	memory = mmap(NULL, (size_t)stat.st_size, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		return -ENOMEM;
	for (off_t at = 0; !ret && at < stat.st_size; at += MEMORY_STEP) {
		off_t left = stat.st_size - at, size = left < MEMORY_STEP ? left : MEMORY_STEP;

		if (pread(fd, memory + at, (size_t)size, at) != size)
			ret = -EIO;
	}
	(void)munmap(memory, (size_t)stat.st_size);
	(void)close(fd);
	return ret;
}

static int map_memory(void *argument)
{
	struct restored *restored = argument;
	const char *memory = restored->arguments->memory;
	int ret = restored->ret;

	if (!ret && memory)
		ret = read_memory(memory);
	return ret ? ret : client_map_user_memory(&restored->workload);
}

static int resume(void *argument)
{
	const struct workload *workload = &((struct restored *)argument)->workload;

	return workload->verify ? client_see_imports(workload) : 0;
}

static int live(void *argument)
{
	struct restored *restored = argument;
	int ret = check_processes(), checked;

	print_pages();
	if (!ret && restored->workload.verify)
		ret = client_verify(&restored->workload);
	if (!ret)
		ret = client_compare_list(&restored->workload,
					  restored->arguments->setup.directory);
	if (!ret)
		ret = client_meet(&restored->workload);
	if (!ret)
		ret = client_verify_dmabufs(&restored->workload, restored->task);
	for (size_t i = 0; i < restored->task->num_files; i++)
		(void)close(restored->task->files[i].fd);
	checked = check_simulator(&restored->before, false);
	return ret ? ret : checked;
}

static void note_resumed(void *argument, pid_t task)
{
	measure_end(&((struct restored *)argument)->begin, task);
}

/* A task that the test does not release must not run. */
static void fail_task(void *argument)
{
	char state[1024];

	(void)argument;
	if (simulator_read("processes", state, sizeof(state)) > 0 && strstr(state, " evicted=0 "))
		printf("left running %s", state);
}

static int restore_tasks(const struct arguments *arguments, const struct workload *workload,
			 struct criu *criu)
{
	struct restored restored[CRIU_TASKS_MAX];
	struct criu_task own[CRIU_TASKS_MAX];
	struct task tasks[CRIU_TASKS_MAX] = { 0 };
	int ret = 0;

	for (uint32_t i = 0; !ret && i < workload->tasks; i++) {
		restored[i] = (struct restored){ .arguments = arguments,
						 .workload = workload_of_task(workload, i),
						 .task = &tasks[i],
						 .begin = measure_begin() };
		own[i] = (struct criu_task){ begin_task, map_memory,   resume,      live,
					     fail_task,  note_resumed, &restored[i] };
		ret = task_load(arguments->setup.directory, i, &tasks[i]);
	}
	if (!ret)
		ret = criu_restore(criu, tasks, own, workload->tasks);
	for (uint32_t i = 0; i < workload->tasks; i++)
		task_done(&tasks[i]);
	return ret;
}

static int restore(const struct arguments *arguments, struct workload *workload)
{
	struct original original = { .pid = 0 };
	struct criu *criu;
	int ret = criu_load(&arguments->setup, &criu);

	if (ret < 0)
		return ret;
	ret = write_knobs(arguments->late, arguments->num_late);
	if (!ret && arguments->original)
		ret = original_start(CRIU_TASK_PID, arguments->original, &original);
	if (!ret)
		ret = restore_tasks(arguments, workload, criu);
	ret = original_end(&original, ret);
	criu_print_times(criu);
	criu_unload(criu);
	return ret;
}

int main(int argc, char **argv)
{
	struct arguments arguments = { 0 };
	struct workload workload;
	struct process_state before;
	int ret, checked;

	if (parse(argc, argv, &arguments) < 0 ||
	    (strcmp(arguments.command, "dump") && strcmp(arguments.command, "restore")))
		return usage();
	(void)mkdir(arguments.setup.directory, 0700);
	ret = workload_parse(arguments.workload, &workload);
	arguments.setup.workload = workload.tasks == 1 ? &workload : NULL;
	if (!ret && arguments.setup.ends_tasks && workload.tasks == 1)
		ret = -EINVAL;
	if (!ret)
		ret = write_knobs(arguments.early, arguments.num_early);
	if (!ret)
		ret = simulator_write("traced", "0"); /* the task has all its files by then */
	if (!ret) {
		before = process_state();
		printf("bytes %" PRIu64 "\n", workload_content_bytes(&workload));
		ret = !strcmp(arguments.command, "dump") ? dump(&arguments, &workload)
							 : restore(&arguments, &workload);
		checked = check_simulator(&before, arguments.setup.ends_tasks);
		ret = ret ? ret : checked;
	}
	workload_done(&workload);
	printf("result %d\n", ret);
	return ret ? 1 : 0;
}
