// SPDX-License-Identifier: GPL-2.0-only
/* A CRIU without tests around it: what test/unit/host.h declares, for many short runs in one
 * process. Its directory is in memory. */
#include "fuzz.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LINES_MAX  64
#define LINE_SIZE  512
#define PATHS      8
#define STORED_MAX 8

static struct {
	struct unit_criu criu;
	char directory[64];
	size_t fds_before;
	char lines[LINES_MAX][LINE_SIZE];
	size_t num_lines;
	size_t num_errors;
	int stored[STORED_MAX];
	size_t num_stored;
} host;

struct unit_criu *unit_criu(void)
{
	return &host.criu;
}

/* Every line is made, as CRIU would, but only the last few are kept. */
void print_on_level(unsigned int level, const char *format, ...)
{
	va_list arguments;

	host.num_errors += level == 1;
	va_start(arguments, format);
	(void)vsnprintf(host.lines[host.num_lines++ % LINES_MAX], LINE_SIZE, format, arguments);
	va_end(arguments);
}

void fuzz_show_lines(void)
{
	size_t first = host.num_lines < LINES_MAX ? 0 : host.num_lines - LINES_MAX;

	for (size_t i = first; i < host.num_lines; i++)
		(void)fprintf(stderr, "    %s", host.lines[i % LINES_MAX]);
}

size_t fuzz_count_errors(void)
{
	return host.num_errors;
}

int criu_get_image_dir(void)
{
	return host.criu.image_dir;
}

int find_unused_fd_pid(pid_t pid)
{
	(void)pid;
	return host.criu.unused_fd;
}

int fdstore_add(int fd)
{
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);

	promise(host.num_stored < STORED_MAX);
	host.stored[host.num_stored++] = copy;
	return copy;
}

int fdstore_get(int id)
{
	return fcntl(id, F_DUPFD_CLOEXEC, 0);
}

int unit_last_stored(void)
{
	return host.stored[host.num_stored - 1];
}

int add_inventory_plugin(const char *name)
{
	(void)name;
	return 0;
}

bool check_and_remove_inventory_plugin(const char *name, size_t length)
{
	(void)name;
	(void)length;
	return true;
}

int img_streamer_open(const char *name, int flags)
{
	promise(host.criu.open_streamed);
	return host.criu.open_streamed(name, flags);
}

size_t unit_count_fds(void)
{
	DIR *stream = opendir("/proc/self/fd");
	size_t count = 0;

	promise(stream);
	while (readdir(stream))
		count++;
	(void)closedir(stream);
	return count;
}

const char *unit_path(const char *format, ...)
{
	static __thread char paths[PATHS][512];
	static __thread unsigned int next;
	char *path = paths[next++ % PATHS];
	size_t length = (size_t)snprintf(path, sizeof(paths[0]), "%s/", host.directory);
	va_list arguments;

	va_start(arguments, format);
	(void)vsnprintf(path + length, sizeof(paths[0]) - length, format, arguments);
	va_end(arguments);
	return path;
}

void unit_write(const char *path, const void *bytes, size_t size)
{
	int fd = openat(host.criu.image_dir, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	promise(fd >= 0 && write(fd, bytes, size) == (ssize_t)size);
	(void)close(fd);
}

void unit_print(const char *path, const char *format, ...)
{
	char text[256];
	va_list arguments;

	va_start(arguments, format);
	(void)vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	unit_write(path, text, strlen(text));
}

/* Everything below the directory. */
static void empty_directory(int directory)
{
	DIR *stream = fdopendir(fcntl(directory, F_DUPFD_CLOEXEC, 0));
	struct dirent *entry;

	promise(stream);
	rewinddir(stream);
	while ((entry = readdir(stream))) {
		int below;

		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		if (!unlinkat(directory, entry->d_name, 0))
			continue;
		below = openat(directory, entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		promise(below >= 0);
		empty_directory(below);
		(void)close(below);
		(void)unlinkat(directory, entry->d_name, AT_REMOVEDIR);
	}
	(void)closedir(stream);
}

static void remove_directory(void)
{
	(void)rmdir(host.directory);
}

static void make_directory(void)
{
	(void)strcpy(host.directory, "/dev/shm/amdgpu-plugin-fuzz-XXXXXX");
	if (!mkdtemp(host.directory))
		abort();
	(void)atexit(remove_directory);
}

int unit_begin(void **state)
{
	(void)state;
	if (!host.directory[0])
		make_directory();
	host.fds_before = unit_count_fds();
	host.num_lines = host.num_errors = 0;
	host.criu = (struct unit_criu){ .unused_fd = 100 };
	host.criu.image_dir = open(host.directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return host.criu.image_dir < 0 ? -1 : 0;
}

int unit_end(void **state)
{
	(void)state;
	if (getenv("FUZZ_SHOW"))
		fuzz_show_lines();
	while (host.num_stored)
		(void)close(host.stored[--host.num_stored]);
	empty_directory(host.criu.image_dir);
	(void)close(host.criu.image_dir);
	return unit_count_fds() == host.fds_before ? 0 : -1;
}

void fuzz_begin(void)
{
	promise(unit_begin(NULL) == 0);
}

void fuzz_end(void)
{
	promise(unit_end(NULL) == 0);
}

uint64_t fuzz_take_number(struct fuzz_input *input, size_t num_bytes)
{
	uint64_t number = 0;
	size_t size;
	const uint8_t *bytes = fuzz_take_bytes(input, num_bytes, &size);

	for (size_t i = 0; i < size; i++)
		number |= (uint64_t)bytes[i] << (8 * i);
	return number;
}

const uint8_t *fuzz_take_bytes(struct fuzz_input *input, size_t size, size_t *ret_size)
{
	const uint8_t *bytes = input->bytes;

	if (size > input->size)
		size = input->size;
	if (size)
		input->bytes += size;
	input->size -= size;
	*ret_size = size;
	return bytes;
}

char *fuzz_take_text(struct fuzz_input *input)
{
	char *text = malloc(input->size + 1);

	promise(text);
	if (input->size)
		memcpy(text, input->bytes, input->size);
	text[input->size] = '\0';
	input->size = 0;
	return text;
}
