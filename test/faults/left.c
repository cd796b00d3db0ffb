// SPDX-License-Identifier: GPL-2.0-only
/* Counts the memory of the plugin and of the libraries below it: blocks and streams by address,
 * mapped pages by number. */
#include "left.h"

#include <pthread.h>
#include <stdio.h>

#include "calls.h"

#define BLOCKS_MAX 65536

static struct {
	pthread_mutex_t lock;
	void *blocks[BLOCKS_MAX];
	/* The places of the calls that made the blocks. */
	uint64_t places[BLOCKS_MAX];
	long mapped;
} left = { .lock = PTHREAD_MUTEX_INITIALIZER };

static size_t find_block(const void *block)
{
	size_t at = (uintptr_t)block / 16 * 0x9e3779b97f4a7c15ull >> 48;

	while (left.blocks[at] && left.blocks[at] != block)
		at = (at + 1) % BLOCKS_MAX;
	return at;
}

static void add_block(void *block, uint64_t place)
{
	size_t at;

	if (!block)
		return;
	at = find_block(block);
	left.blocks[at] = block;
	left.places[at] = place;
}

/* The blocks behind it move up, because find_block() stops at a gap. */
static void remove_block(const void *block)
{
	size_t at = find_block(block);

	if (!block || !left.blocks[at])
		return;
	left.blocks[at] = NULL;
	for (at = (at + 1) % BLOCKS_MAX; left.blocks[at]; at = (at + 1) % BLOCKS_MAX) {
		void *moved = left.blocks[at];
		uint64_t place = left.places[at];

		left.blocks[at] = NULL;
		add_block(moved, place);
	}
}

/* The call releases a block or pages. */
static void note_before(int number, const long *args)
{
	if (number == CALL_free || number == CALL_fclose || number == CALL_closedir)
		remove_block((void *)args[0]);
	else if (number == CALL___getdelim || number == CALL_getline)
		remove_block(*(void **)args[0]);
	else if (number == CALL_munmap)
		left.mapped -= (args[1] + 4095) / 4096;
}

static void note_after(int number, const long *args, long result, uint64_t place)
{
	switch (number) {
	case CALL_realloc:
		if (result)
			remove_block((void *)args[0]);
		/* fallthrough */
	case CALL_malloc:
	case CALL_calloc:
	case CALL_strdup:
	case CALL_fopen:
	case CALL_opendir:
	case CALL_fdopendir:
		add_block((void *)result, place);
		break;
	case CALL___getdelim:
	case CALL_getline:
		add_block(*(void **)args[0], place);
		break;
	case CALL_mmap:
	case CALL_mmap64:
		if (result != -1)
			left.mapped += (args[1] + 4095) / 4096;
		break;
	default:
		break;
	}
}

bool left_tracks(int number)
{
	return number == CALL_free || number == CALL_fclose || number == CALL_closedir ||
	       number == CALL_munmap || number == CALL_realloc || number == CALL_malloc ||
	       number == CALL_calloc || number == CALL_strdup || number == CALL_fopen ||
	       number == CALL_opendir || number == CALL_fdopendir || number == CALL___getdelim ||
	       number == CALL_getline || number == CALL_mmap || number == CALL_mmap64;
}

void left_begin(int number, const long *args)
{
	(void)pthread_mutex_lock(&left.lock);
	note_before(number, args);
}

void left_end(int number, const long *args, long result, uint64_t place)
{
	note_after(number, args, result, place);
	(void)pthread_mutex_unlock(&left.lock);
}

void left_report(void)
{
	long blocks = 0;

	for (size_t i = 0; i < BLOCKS_MAX; i++) {
		if (!left.blocks[i])
			continue;
		if (!blocks++)
			printf("left memory of place %016lx\n", left.places[i]);
		left.blocks[i] = NULL;
	}
	if (blocks)
		printf("left blocks %ld\n", blocks);
	if (left.mapped)
		printf("left pages %ld\n", left.mapped);
	left.mapped = 0;
}
