// SPDX-License-Identifier: GPL-2.0-only
/* The directory of a test, and CRIU's inventory and log. */
#include "host.h"

#include <dirent.h>
#include <ftw.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "criu/host.h"
#include "streamer.h"

#define LINES_MAX 512
#define LINE_SIZE 1024
#define PATHS     8

static struct {
	struct unit_criu criu;
	char directory[128];
	size_t fds_before;
	struct rlimit file_size;
	char lines[LINES_MAX][LINE_SIZE];
	/* Of all lines, also of those that are not kept. */
	size_t num_lines;
	size_t num_errors;
} test;

struct unit_settings unit_settings = { .directory = "/tmp" };

/* The runner needs all output, also that of a test that crashes. */
static void __attribute__((constructor)) print_at_once(void)
{
	(void)setvbuf(stdout, NULL, _IOLBF, 0);
}

struct unit_criu *unit_criu(void)
{
	return &test.criu;
}

static void keep_line(unsigned int level, const char *text)
{
	char *line = test.lines[test.num_lines % LINES_MAX];

	assert_in_range(level, 1, 4);
	assert_true(unit_settings.quiet || test.num_lines < LINES_MAX);
	test.num_lines++;
	test.num_errors += level == 1;
	(void)snprintf(line, LINE_SIZE, "%s", text);
	/* The runner shows the line if the test fails. */
	if (!unit_settings.quiet)
		printf("%s", line);
	if (test.criu.printed)
		test.criu.printed(line);
}

int unit_last_stored(void)
{
	return criu_stub_count_stored() - 1;
}

int add_inventory_plugin(const char *name)
{
	test.criu.notes++;
	(void)snprintf(test.criu.name, sizeof(test.criu.name), "%s", name);
	return test.criu.note_result;
}

bool check_and_remove_inventory_plugin(const char *name, size_t length)
{
	test.criu.claims++;
	(void)snprintf(test.criu.name, sizeof(test.criu.name), "%.*s", (int)length, name);
	return true;
}

size_t unit_count_fds(void)
{
	DIR *stream = opendir("/proc/self/fd");
	size_t count = 0;

	assert_non_null(stream);
	while (readdir(stream))
		count++;
	(void)closedir(stream);
	return count;
}

size_t unit_count_children(void)
{
	DIR *stream = opendir("/proc");
	struct dirent *entry;
	size_t count = 0;

	assert_non_null(stream);
	while ((entry = readdir(stream))) {
		char path[300];
		_cleanup_fclose_ FILE *file = NULL;
		int parent;

		(void)snprintf(path, sizeof(path), "/proc/%s/stat", entry->d_name);
		file = entry->d_name[0] > '0' && entry->d_name[0] <= '9' ? fopen(path, "re") : NULL;
		if (!file)
			continue;
		count += fscanf(file, "%*d (%*[^)]) %*c %d", &parent) == 1 && parent == getpid();
	}
	(void)closedir(stream);
	return count;
}

int unit_wait(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		assert_int_equal(errno, EINTR);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == UNIT_REFUSED)
		skip();
	return WEXITSTATUS(status);
}

void unit_wait_for_killed(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGKILL);
}

pid_t unit_start_sleeper(void)
{
	pid_t pid = fork();

	/* If the test fails before it ends the sleeper. */
	if (!pid)
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (!pid)
		(void)pause();
	return pid;
}

void unit_end_sleeper(pid_t pid)
{
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
}

int unit_begin(void **state)
{
	(void)state;
	(void)getrlimit(RLIMIT_FSIZE, &test.file_size);
	(void)signal(SIGXFSZ, SIG_IGN);
	test.fds_before = unit_count_fds();
	test.num_lines = test.num_errors = 0;
	(void)snprintf(test.directory, sizeof(test.directory), "%s/amdgpu-plugin-unit-XXXXXX",
		       unit_settings.directory);
	if (!mkdtemp(test.directory))
		return -1;
	test.criu = (struct unit_criu){ 0 };
	criu_stub = (struct criu_stub){
		.unused_fd = 100, .log_level = 4, .print = keep_line, .store = -1
	};
	criu_stub.image_dir = open(test.directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return criu_stub.image_dir < 0 ? -1 : 0;
}

static int remove_entry(const char *path, const struct stat *stat, int type, struct FTW *walk)
{
	(void)stat;
	(void)type;
	(void)walk;
	return remove(path);
}

int unit_end(void **state)
{
	size_t left;

	(void)state;
	streamer_stop();
	host_find_streamer();
	criu_stub_close_stored();
	unit_unlimit_files();
	(void)close(criu_stub.image_dir);
	(void)nftw(test.directory, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
	left = unit_count_fds();
	if (left == test.fds_before)
		return 0;
	printf("%zu descriptors before the test, %zu after it\n", test.fds_before, left);
	return -1;
}

static size_t num_kept(void)
{
	return test.num_lines < LINES_MAX ? test.num_lines : LINES_MAX;
}

size_t unit_count_errors(void)
{
	return test.num_errors;
}

void unit_show_lines(void)
{
	for (size_t i = test.num_lines - num_kept(); i < test.num_lines; i++)
		(void)fprintf(stderr, "    %s", test.lines[i % LINES_MAX]);
}

size_t unit_count_lines(const char *text)
{
	size_t count = 0;

	for (size_t i = 0; i < num_kept(); i++)
		count += strstr(test.lines[i], text) != NULL;
	return count;
}

static bool holds_all(const char *line, const char *first, va_list texts)
{
	for (const char *text = first; text; text = va_arg(texts, const char *)) {
		if (!strstr(line, text))
			return false;
	}
	return true;
}

bool unit_logged(const char *text, ...)
{
	for (size_t i = 0; i < num_kept(); i++) {
		va_list texts;
		bool found;

		va_start(texts, text);
		found = holds_all(test.lines[i], text, texts);
		va_end(texts);
		if (found)
			return true;
	}
	return false;
}

void unit_forget_lines(void)
{
	test.num_lines = test.num_errors = 0;
}

const char *unit_directory(void)
{
	return test.directory;
}

const char *unit_path(const char *format, ...)
{
	/* One set for each thread, because workers of the plugin open files, too. */
	static _Thread_local char paths[PATHS][512];
	static _Thread_local unsigned int turn;
	char *path = paths[turn++ % PATHS];
	va_list arguments;
	int used;

	used = snprintf(path, sizeof(paths[0]), "%s/", test.directory);
	va_start(arguments, format);
	(void)vsnprintf(path + used, sizeof(paths[0]) - (size_t)used, format, arguments);
	va_end(arguments);
	return path;
}

static void make_directories_above(char *path)
{
	for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(path, 0700) < 0)
			assert_int_equal(errno, EEXIST);
		*slash = '/';
	}
}

void unit_write(const char *path, const void *bytes, size_t size)
{
	char full[512];
	FILE *file;

	(void)strcpy(full, unit_path("%s", path));
	make_directories_above(full);
	file = fopen(full, "we");
	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, size, file), size);
	assert_int_equal(fclose(file), 0);
}

void unit_print(const char *path, const char *format, ...)
{
	va_list arguments;
	_cleanup_free_ char *text = NULL;
	int length;

	va_start(arguments, format);
	length = vasprintf(&text, format, arguments);
	va_end(arguments);
	assert_true(length >= 0);
	unit_write(path, text, (size_t)length);
}

void unit_free_kfd(CriuKfd **kfd)
{
	if (*kfd)
		criu_kfd__free_unpacked(*kfd, NULL);
}

uint8_t *unit_read(const char *path, size_t *ret_size)
{
	_cleanup_fclose_ FILE *file = fopen(unit_path("%s", path), "re");
	uint8_t *bytes = malloc(1 << 20);

	assert_non_null(file);
	assert_non_null(bytes);
	*ret_size = fread(bytes, 1, 1 << 20, file);
	return bytes;
}

bool unit_exists(const char *path)
{
	struct stat stat;

	return lstat(unit_path("%s", path), &stat) == 0;
}

void unit_limit_files(uint64_t bytes)
{
	struct rlimit limit = { bytes, test.file_size.rlim_max };

	/* The limit also applies to the output, so write it out first. */
	(void)fflush(stdout);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

void unit_unlimit_files(void)
{
	(void)setrlimit(RLIMIT_FSIZE, &test.file_size);
}
