/* SPDX-License-Identifier: GPL-2.0-only */
/* gpu_files LOG KIND...: a process whose engine counts up a word of VRAM, and one of each KIND of
 * its own memory, again and again, without the CPU: as long as the engine is slow, it goes on
 * whatever happens to the process. A verification waits until the engine has done all of its work.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "host_memory.h"
#include "raw_kfd.h"
#include "report.h"
#include "serve.h"

/* Of these fit WORDS_MAX additions and a copy in the ring. */
#define ROUNDS     220u
#define COPY_BYTES 8192u
#define WORDS_MAX  8

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

static int add_word(struct files *files, const char *name)
{
	const uint32_t gpu_id = files->process.gpu[0].gpu_id;
	struct raw_bo *word = &files->words[files->count];
	size_t size = 4096;
	void *memory;
	int ret;

	if (files->count == WORDS_MAX)
		return -EINVAL;
	ret = host_memory_map(name, &size, &memory);
	if (ret < 0)
		return ret;
	*(volatile uint64_t *)memory = 0;
	ret = raw_alloc(&files->process, gpu_id, RAW_USERPTR, size, memory, word);
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
