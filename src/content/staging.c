// SPDX-License-Identifier: GPL-2.0-only
#include "content/staging.h"

#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "content/sdma.h"

size_t staging_round_up(size_t size)
{
	size_t unit = size < SDMA_HUGE_PAGE ? (size_t)getpagesize() : SDMA_HUGE_PAGE;

	return (size + unit - 1) / unit * unit;
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
