// SPDX-License-Identifier: GPL-2.0-only
#include "after.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client.h"
#include "criu.h"
#include "criu_stub.h"
#include "simulator.h"

/* CRIU's table of messages, with some more pointers. All versions of CRIU export it. */
typedef size_t packed_size(const void *message);

size_t stats_entry__get_packed_size(const void *message);
size_t stats_entry__get_packed_size(const void *message)
{
	(void)message;
	return 1;
}

extern packed_size *cr_pb_descs[8];
packed_size *cr_pb_descs[8] = { [5] = stats_entry__get_packed_size };

bool after_is_awaited(void)
{
	return cr_pb_descs[5] != stats_entry__get_packed_size;
}

/* The end of CRIU is not the end of the test. */
static jmp_buf *criu_end;

__attribute__((visibility("default"), noreturn)) void exit(int status)
{
	void (*real_exit)(int) = (void (*)(int))(uintptr_t)dlsym(RTLD_NEXT, "exit");

	if (criu_end)
		longjmp(*criu_end, 1);
	real_exit(status);
	abort();
}

/* The images are on the file system of this directory, which is full, or -1. Writers of the plugin
 * read it. */
static _Atomic int full_dir = -1;

static bool is_full(int fd)
{
	struct stat file, dir;
	int full = full_dir;

	return full >= 0 && !fstat(fd, &file) && S_ISREG(file.st_mode) && !fstat(full, &dir) &&
	       file.st_dev == dir.st_dev;
}

static unsigned int count_images(int image_dir, const char *prefix)
{
	int fd = openat(image_dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *stream = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	unsigned int count = 0;

	while (stream && (entry = readdir(stream)))
		count += !strncmp(entry->d_name, prefix, strlen(prefix));
	if (stream)
		(void)closedir(stream);
	return count;
}

/* Each task has one, so the images could be restored. */
bool after_have_state(int image_dir)
{
	return count_images(image_dir, "amdgpu-kfd-") >= count_images(image_dir, "core-");
}

/* Contents that are written behind wait until the plugin waits for them. Then no state image may be
 * there. */
static _Atomic bool is_held, plugin_is_called, state_came_first;

static void __attribute__((constructor)) hold_contents(void)
{
	is_held = getenv("AMDGPU_HOST_HELD") != NULL;
}

/* Whether the main thread sleeps. */
static bool plugin_waits(void)
{
	FILE *file = plugin_is_called ? fopen("/proc/self/stat", "re") : NULL;
	char state = '?';

	if (file && fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
		state = '?';
	if (file)
		(void)fclose(file);
	return state == 'S';
}

static void await_plugin(void)
{
	while (is_held && !plugin_waits())
		(void)sched_yield();
	if (is_held && after_have_state(criu_stub.image_dir))
		state_came_first = true;
	is_held = false;
}

static ssize_t (*real_pwrite)(int, const void *, size_t, off_t);
static ssize_t (*real_write)(int, const void *, size_t);

/* Before threads run. A thread may hold the lock of dlsym() when another one forks a guard, and
 * guards write. */
static void __attribute__((constructor)) find_real_functions(void)
{
	real_pwrite = (__typeof__(real_pwrite))(uintptr_t)dlsym(RTLD_NEXT, "pwrite");
	real_write = (__typeof__(real_write))(uintptr_t)dlsym(RTLD_NEXT, "write");
}

/* The plugin's calls come here first. */
__attribute__((visibility("default"))) ssize_t pwrite(int fd, const void *bytes, size_t size,
						      off_t offset)
{
	await_plugin();
	if (!is_full(fd))
		return real_pwrite(fd, bytes, size, offset);
	errno = ENOSPC;
	return -1;
}

__attribute__((visibility("default"))) ssize_t write(int fd, const void *bytes, size_t size)
{
	if (!is_full(fd))
		return real_write(fd, bytes, size);
	errno = ENOSPC;
	return -1;
}

/* The first word of each buffer that the CPU maps becomes its complement. */
static void change_buffers(const struct workload *workload)
{
	int (*peek)(uint64_t address, void *data, size_t size) =
		simulator_find("amdgpu_sim_peek_va");
	int (*poke)(uint64_t address, const void *data, size_t size) =
		simulator_find("amdgpu_sim_poke_va");
	uint64_t address = workload_first_address(workload), word;

	for (size_t i = 0; i < workload->num_bos; i++) {
		if (workload_has_pattern(workload, i) && workload->bos[i].mapped &&
		    peek(address, &word, sizeof(word)) == 1) {
			word = ~word;
			(void)poke(address, &word, sizeof(word));
		}
		address = workload_next_address(address, &workload->bos[i]);
	}
}

/* No queue of the tasks is stopped. */
static bool run(void)
{
	char state[16384];

	return simulator_read("processes", state, sizeof(state)) >= 0 &&
	       !strstr(state, " evicted=1 ") && !strstr(state, " paused=1 ");
}

static int call_plugin(void)
{
	jmp_buf end;

	criu_end = &end;
	if (setjmp(end)) {
		criu_end = NULL;
		return -EIO;
	}
	(void)cr_pb_descs[5](NULL);
	criu_end = NULL;
	return 0;
}

int after_write_statistics(int image_dir, const struct workload *workload)
{
	int ret;

	if (after_have_state(image_dir) || !run()) {
		printf("left %s\n", run() ? "state before contents" : "stopped tasks");
		return -EIO;
	}
	if (workload)
		change_buffers(workload);
	if (getenv("AMDGPU_HOST_FULL"))
		full_dir = image_dir;
	plugin_is_called = true;
	ret = call_plugin();
	full_dir = -1;
	if (workload)
		change_buffers(workload);
	if (!ret && !after_have_state(image_dir))
		ret = -ENOENT;
	if (is_held || state_came_first) {
		printf("left %s\n", is_held ? "contents" : "state before contents");
		ret = -EIO;
	}
	printf("behind\n");
	return ret;
}
