// SPDX-License-Identifier: GPL-2.0-only
/* Maps the memory, and chooses size and number of slots: large enough that the fixed costs of a
 * step do not count, and so many that processors, storage and engine have work, as far as the
 * memory goes. */
#include "content/slots.h"

#include <sys/mman.h>
#include <unistd.h>

#include "amdgpu_plugin_util.h"
#include "content/sdma.h"
#include "kernel/cgroup.h"

#define PAGE CONTENT_ALIGNMENT

/* A large slot makes the fixed cost of a command buffer and of a storage request small. Even larger
 * ones take longer to register, and the caches of the processors hold less of them. */
#define SLOT_MEMORY_MAX    (4u << 20)
#define SLOT_MEMORY_WANTED (512u << 10)
#define SLOT_MEMORY_MIN    (PAGE + 2 * SLOT_MARGIN)

/* Several slots keep several requests in flight and several processors busy. */
#define SLOTS_WANTED 4u
#define THREADS_MAX  12u

/* The threads of all transfers that run. More for each processor only take it from each other. On
 * few processors there are some more, because threads wait for the engine and for storage, too. */
#define THREADS_PER_PROCESSOR 2u
#define THREADS_WANTED        8u

/* 4 MiB for each of twelve threads. With fewer bytes, each copy and each request to storage pays
 * more of its fixed cost. */
#define STAGING_MAX (48u << 20)
/* Keeps a copy engine and a disk busy at once. */
#define STAGING_WANTED (8u << 20)

/* Parts of the free memory: of a large machine, and of a small container. Eight GPUs may be copied
 * at the same time. */
#define SHARE_OF_MUCH   1024u
#define SHARE_OF_LITTLE 64u

uint64_t slots_choose_bytes(void)
{
	uint64_t bytes, little;

	if (cgroup_find_memory(&bytes) < 0)
		return STAGING_WANTED;
	little = bytes / SHARE_OF_LITTLE;
	if (little < STAGING_WANTED)
		return little;
	return clamp(bytes / SHARE_OF_MUCH, STAGING_WANTED, STAGING_MAX);
}

size_t slots_round_up(size_t size)
{
	return round_up(size, size < SDMA_HUGE_PAGE ? (size_t)getpagesize() : SDMA_HUGE_PAGE);
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

char *slots_map(size_t size)
{
	char *memory = map_aligned(size);

	if (!memory)
		return NULL;
	(void)madvise(memory, size, MADV_DONTFORK);
	(void)madvise(memory, size, MADV_HUGEPAGE);
	return memory;
}

/* The most threads of a transfer. */
static uint64_t count_threads(size_t num_transfers)
{
	uint64_t threads = usable_processors() * THREADS_PER_PROCESSOR;

	if (!threads)
		return THREADS_MAX;
	if (threads < THREADS_WANTED)
		threads = THREADS_WANTED;
	return clamp(threads / num_transfers, SLOTS_WANTED, THREADS_MAX);
}

/* These threads hardly wait: the engine copies from their other slots, and reads are copies. */
static uint64_t count_pairs(size_t num_transfers)
{
	size_t processors = usable_processors();

	return processors ? clamp(processors / num_transfers, 1, THREADS_MAX) : THREADS_MAX;
}

static uint64_t choose_memory(uint64_t budget, uint64_t most_slots, uint64_t most_memory)
{
	uint64_t memory = clamp(budget / most_slots, SLOT_MEMORY_WANTED, most_memory);

	memory = clamp(memory, 0, budget / SLOTS_WANTED);
	if (memory >= SDMA_HUGE_PAGE)
		return memory / SDMA_HUGE_PAGE * SDMA_HUGE_PAGE;
	return clamp(memory / PAGE * PAGE, SLOT_MEMORY_MIN, SLOT_MEMORY_MAX);
}

static struct slots choose(uint64_t staging_bytes, uint64_t size, uint64_t most_slots,
			   uint64_t most_memory)
{
	/* sdma_open() rounds up. */
	uint64_t unit = staging_bytes < SDMA_HUGE_PAGE ? PAGE : SDMA_HUGE_PAGE;
	uint64_t pages = size / PAGE + (size % PAGE != 0);
	uint64_t enough = pages * PAGE + SLOTS_WANTED * 2 * SLOT_MARGIN;
	uint64_t budget = clamp(staging_bytes / unit * unit, 0, enough);
	uint64_t memory = choose_memory(budget, most_slots, most_memory);
	unsigned int count = (unsigned int)clamp(budget / memory, 1, clamp(pages, 1, most_slots));

	return (struct slots){ count, count, memory, memory - 2 * SLOT_MARGIN };
}

/* A huge page is enough for a slot: twelve slots with one each are faster than eleven with two,
 * which leave a thread less in the same memory. docs/benchmark.md has the times. */
static uint64_t align_size(uint64_t memory, uint64_t unit)
{
	return memory < unit || unit >= SDMA_HUGE_PAGE ? unit : memory / unit * unit;
}

struct slots slots_choose(uint64_t staging_bytes, uint64_t size, size_t num_transfers,
			  uint64_t unit)
{
	const struct slots slots =
		choose(staging_bytes, size, count_threads(num_transfers), SLOT_MEMORY_MAX);
	const uint64_t contents = align_size(slots.memory, unit);
	const uint64_t memory = contents + 2 * SLOT_MARGIN;
	const unsigned int count =
		(unsigned int)clamp(slots.count * slots.memory / memory, 0, slots.count);

	if (slots.size % unit == 0 || count < SLOTS_WANTED)
		return slots;
	return (struct slots){ count, count, memory, contents };
}

struct slots slots_choose_pairs(uint64_t staging_bytes, uint64_t size, size_t num_transfers)
{
	/* With the memory of several GPUs, more takes longer to register than it saves, and the
	 * caches hold less of it. */
	const uint64_t most_memory = num_transfers > 1 ? SDMA_HUGE_PAGE : SLOT_MEMORY_MAX;
	struct slots slots =
		choose(staging_bytes, size, 2 * count_pairs(num_transfers), most_memory);

	slots.threads = slots.count > 1 ? slots.count / 2 : 1;
	slots.count = 2 * slots.threads;
	return slots;
}

struct slots slots_of_parts(size_t size, uint64_t unit)
{
	size_t contents = size - 2 * SLOT_MARGIN;

	if (contents >= unit)
		contents = contents / unit * unit;
	return (struct slots){ SLOTS_WANTED, SLOTS_WANTED, size, contents };
}
