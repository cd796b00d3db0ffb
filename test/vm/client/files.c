/* SPDX-License-Identifier: GPL-2.0-only */
/* gpu_files LOG KIND...: a process whose engine counts up a word of VRAM, and one of each KIND of
 * its own memory, again and again, without the CPU: as long as the engine is slow, it goes on
 * whatever happens to the process. A verification waits until the engine has done all of its work.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <unistd.h>

#include "raw_kfd.h"
#include "report.h"
#include "serve.h"

/* Of these fit WORDS_MAX additions and a copy in the ring. */
#define ROUNDS     220u
#define COPY_BYTES 8192u
#define WORDS_MAX  8
#define HUGE_BYTES (2u << 20)

struct files {
	struct report report;
	char **kinds; /* of the user */
	struct raw_process process;
	struct raw_queue queue;
	struct raw_bo words[WORDS_MAX];
	const char *names[WORDS_MAX];
	int count;
	/* The engine copies from one half to the other, which takes the time of each round. */
	struct raw_bo filler;
	uint64_t expected;
};

static void *map_anonymous(size_t size, int flags)
{
	return mmap(NULL, size, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);
}

static void *map_file(int fd, size_t size)
{
	void *memory = MAP_FAILED;

	if (fd < 0)
		return MAP_FAILED;
	if (ftruncate(fd, (off_t)size) == 0)
		memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	return memory;
}

static void *map_private(size_t size)
{
	return map_anonymous(size, MAP_PRIVATE);
}

static void *map_shared(size_t size)
{
	return map_anonymous(size, MAP_SHARED);
}

static void *map_memfd(size_t size)
{
	return map_file(memfd_create("gpu_files", MFD_CLOEXEC), size);
}

static void *map_huge(size_t size)
{
	return map_file(memfd_create("gpu_files", MFD_CLOEXEC | MFD_HUGETLB), size);
}

static void *map_named(size_t size)
{
	return map_file(open("/run/gpu_files", O_RDWR | O_CREAT | O_CLOEXEC, 0600), size);
}

static void *map_unlinked(size_t size)
{
	char path[] = "/dev/shm/gpu_files-XXXXXX";
	int fd = mkostemp(path, O_CLOEXEC);

	if (fd >= 0)
		(void)unlink(path);
	return map_file(fd, size);
}

static void *map_segment(size_t size)
{
	int id = shmget(IPC_PRIVATE, size, IPC_CREAT | 0600);

	return id < 0 ? MAP_FAILED : shmat(id, NULL, 0);
}

static const struct kind {
	const char *name;
	void *(*map)(size_t size);
	size_t size;
} kinds[] = {
	{ "private", map_private, 4096 }, /* anonymous memory */
	{ "shared", map_shared, 4096 },     { "memfd", map_memfd, 4096 },
	{ "huge", map_huge, HUGE_BYTES }, /* a memfd with huge pages */
	{ "named", map_named, 4096 },     /* a file in /run */
	{ "unlinked", map_unlinked, 4096 }, { "segment", map_segment, 4096 }, /* shmget() */
};

static const struct kind *find_kind(const char *name)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (strcmp(kinds[i].name, name) == 0)
			return &kinds[i];
	}
	return NULL;
}

static int add_word(struct files *files, const char *name)
{
	const uint32_t gpu_id = files->process.gpu[0].gpu_id;
	const struct kind *kind = find_kind(name);
	struct raw_bo *word = &files->words[files->count];
	void *memory;
	int ret;

	if (!kind || files->count == WORDS_MAX)
		return -EINVAL;
	memory = kind->map(kind->size);
	if (memory == MAP_FAILED)
		return -errno;
	*(volatile uint64_t *)memory = 0;
	ret = raw_alloc(&files->process, gpu_id, RAW_USERPTR, kind->size, memory, word);
	files->names[files->count++] = name;
	return ret < 0 ? ret : raw_map(&files->process, word, gpu_id);
}

static int start(void *arg)
{
	struct files *files = arg;
	struct raw_process *process = &files->process;
	int ret = raw_open_acquired(process);

	if (ret == 0)
		ret = raw_alloc_mapped(process, 0, RAW_VRAM, 4096, &files->words[0]);
	if (ret == 0)
		ret = raw_alloc_mapped(process, 0, RAW_GTT, 2 * COPY_BYTES, &files->filler);
	if (ret < 0)
		return ret;
	*(volatile uint64_t *)(void *)files->words[0].address = 0;
	files->names[files->count++] = "VRAM";
	for (char **kind = files->kinds; ret == 0 && *kind; kind++)
		ret = add_word(files, *kind);
	return ret < 0 ? ret : raw_create_queue(process, 0, &files->queue);
}

static void give_work(struct files *files)
{
	for (unsigned int i = 0; i < ROUNDS; i++) {
		for (int word = 0; word < files->count; word++)
			raw_queue_add(&files->queue,
				      (volatile uint64_t *)(void *)files->words[word].address, 1);
		raw_queue_copy(&files->queue, files->filler.address,
			       files->filler.address + COPY_BYTES, COPY_BYTES);
	}
	files->expected += ROUNDS;
	raw_queue_ring(&files->queue);
}

static int verify(struct files *files)
{
	for (int word = 0; word < files->count; word++) {
		uint64_t value = *(volatile uint64_t *)(void *)files->words[word].address;

		if (value != files->expected)
			return report_fail(&files->report, -EILSEQ,
					   "%s: expected %" PRIu64 ", got %" PRIu64,
					   files->names[word], files->expected, value);
	}
	report_line(&files->report, "verified");
	return 0;
}

/* Until SIGTERM. */
static int run(void *arg, const sigset_t *signals)
{
	struct files *files = arg;
	int signal = 0, ret = 0;

	while (ret == 0 && signal != SIGTERM) {
		(void)sigwait(signals, &signal);
		ret = raw_queue_wait(&files->queue);
		ret = ret < 0 ? report_fail(&files->report, ret, "the queue hangs") : verify(files);
		if (ret == 0 && signal == SIGUSR1)
			give_work(files);
	}
	return ret;
}

int main(int argc, char **argv)
{
	static struct files files;

	if (argc < 2)
		return 2;
	report_init(&files.report, argv[1]);
	files.kinds = argv + 2;
	return serve_running(&files.report, &files, start, run);
}
