// SPDX-License-Identifier: GPL-2.0-only
/* Chooses how much staging memory a GPU gets, and maps it. */
#include "content/staging.h"

#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "amdgpu_plugin_util.h"
#include "content/sdma.h"
#include "kernel/free_memory.h"

/* 4 MiB for each of twelve threads. With fewer bytes, each copy and each request to storage pays
 * more of its fixed cost. */
#define STAGING_MAX (48u << 20)
/* Keeps a copy engine and a disk busy at once. */
#define STAGING_WANTED (8u << 20)

/* Parts of the free memory: of a large machine, and of a small container. Eight GPUs may be copied
 * at the same time. */
#define SHARE_OF_MUCH   1024u
#define SHARE_OF_LITTLE 64u

uint64_t staging_choose(void)
{
	uint64_t bytes, little;

	if (free_memory_find(&bytes) < 0)
		return STAGING_WANTED;
	little = bytes / SHARE_OF_LITTLE;
	if (little < STAGING_WANTED)
		return little;
	return clamp(bytes / SHARE_OF_MUCH, STAGING_WANTED, STAGING_MAX);
}

size_t staging_round_up(size_t size)
{
	size_t unit = size < SDMA_HUGE_PAGE ? (size_t)getpagesize() : SDMA_HUGE_PAGE;

	return (size + unit - 1) / unit * unit;
}

size_t staging_round_up_slot(size_t size)
{
	size_t page = (size_t)getpagesize();

	return (size + page - 1) / page * page;
}

/* Memory at the alignment of a huge page. */
static char *map_aligned(size_t size)
{
	size_t page = (size_t)getpagesize();
	size_t room = size < SDMA_HUGE_PAGE ? size : size + SDMA_HUGE_PAGE - page;
	char *memory = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	size_t head;

	if (memory == MAP_FAILED)
		return NULL;
	if (room == size)
		return memory;
	head = -(uintptr_t)memory % SDMA_HUGE_PAGE;
	if (head)
		(void)munmap(memory, head);
	if (room - head - size)
		(void)munmap(memory + head + size, room - head - size);
	/* cppcheck-suppress deallocret ; only the memory around it is unmapped */
	return memory + head;
}

char *staging_map(size_t size)
{
	char *memory = map_aligned(size);

	if (!memory)
		return NULL;
	(void)madvise(memory, size, MADV_DONTFORK);
	(void)madvise(memory, size, MADV_HUGEPAGE);
	return memory;
}
