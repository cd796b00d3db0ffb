// SPDX-License-Identifier: GPL-2.0-only
/* Verifies the memory of buffers through the dma-bufs that a task keeps open. */
#include "client.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Time limit for all tasks to arrive, long enough for a busy machine. */
#define MEETING_MS 30000

/* A dma-buf of buffer @index of @owner. */
struct dmabuf {
	struct workload owner;
	size_t index;
	char *memory;
	uint64_t size;
};

/* Where each task writes a word. */
static volatile uint64_t *slot_of(const struct dmabuf *dmabuf, uint32_t slot)
{
	char *end = dmabuf->memory + dmabuf->size;

	return (volatile uint64_t *)(void *)(end - WORKLOAD_SLOTS) + slot;
}

static int check_contents(const struct dmabuf *dmabuf)
{
	const uint64_t size =
		dmabuf->size -
		(workload_is_shared(&dmabuf->owner, dmabuf->index) ? WORKLOAD_SLOTS : 0);

	return workload_check(&dmabuf->owner, dmabuf->index, 0, dmabuf->memory, size) == size
		       ? 0
		       : client_complain(-EIO, "dma-buf: the contents are wrong");
}

/* The other tasks do the same through their own handles. */
static int meet(const struct workload *workload, const struct dmabuf *dmabuf)
{
	const uint32_t owner = dmabuf->owner.task;

	*slot_of(dmabuf, workload->task) = workload_slot_word(owner, dmabuf->index, workload->task);
	for (uint32_t slot = 0; slot < workload->tasks; slot++) {
		const uint64_t word = workload_slot_word(owner, dmabuf->index, slot);

		for (int i = 0; *slot_of(dmabuf, slot) != word; i++) {
			if (i == MEETING_MS)
				return client_complain(
					-ETIME,
					"dma-buf: what another process writes is not there");
			(void)usleep(1000);
		}
	}
	return 0;
}

/* The process sees the word at its own address of the buffer. */
static int compare_memory(const struct dmabuf *dmabuf)
{
	const uint64_t address =
		workload_import_address(&dmabuf->owner, dmabuf->index) + WORKLOAD_IMPORT_DISTANCE;
	uint64_t *word = (uint64_t *)(void *)dmabuf->memory, before = *word;
	const volatile uint64_t *own = (const volatile uint64_t *)(uintptr_t)address;
	bool equal;

	*word = ~before;
	equal = *own == ~before;
	*word = before;
	return equal ? 0 : client_complain(-EIO, "dma-buf: it is not the memory of the buffer");
}

static int verify(const struct workload *workload, const struct dmabuf *dmabuf)
{
	int ret = check_contents(dmabuf);

	if (ret < 0)
		return ret;
	return workload_is_broker(workload) ? meet(workload, dmabuf) : compare_memory(dmabuf);
}

static int verify_file(const struct workload *workload, int fd, uint32_t owner, size_t index)
{
	struct workload first = *workload;
	struct dmabuf dmabuf = { .index = index, .size = workload->bos[index].size };
	int ret;

	first.seed -= first.task;
	dmabuf.owner = workload_of_task(&first, owner);
	if (lseek(fd, 0, SEEK_END) != (off_t)dmabuf.size)
		return client_complain(-EIO, "dma-buf: another size");
	dmabuf.memory = mmap(NULL, dmabuf.size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (dmabuf.memory == MAP_FAILED)
		return client_complain(-errno, "dma-buf: mmap");
	ret = verify(workload, &dmabuf);
	(void)munmap(dmabuf.memory, dmabuf.size);
	return ret;
}

int client_verify_dmabufs(const struct workload *workload, const struct task *task)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < task->num_files; i++) {
		uint32_t owner;
		size_t index;

		if (sscanf(task->files[i].path, "dmabuf:%u:%zu", &owner, &index) == 2)
			ret = verify_file(workload, task->files[i].fd, owner, index);
	}
	return ret;
}
