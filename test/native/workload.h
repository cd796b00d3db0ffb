/* SPDX-License-Identifier: GPL-2.0-only */
// clang-format off
/* Workloads as words: which buffers a process has, how many of each, and what is in them.
 * client.h makes them.
 *
 *	2x4G,100x4K-64K:G,gpus=8,zero=50
 *
 * An item COUNTxSIZE[-SIZE][:KIND] is made on each GPU. A range of sizes is spread over the count.
 *
 *	V	VRAM, the default
 *	C	coherent VRAM
 *	G	GTT
 *	H	coherent GTT
 *	N	VRAM of the virtual memory API: KFD knows no address, and GEM_VA maps it at its address,
 *		from its second half at another one, and on the next GPU of several
 *	B	VRAM that KFD has mapped, with a GEM handle, and such a second mapping
 *	I	VRAM that KFD has mapped, with a GEM handle and metadata, as ROCr 7.2 makes for IPC
 *	U	memory of the process
 *	D	doorbells
 *	M	the register page
 *	W	where waves of queues are saved
 *	S	the same in an SVM range, which is no buffer
 *	Q	a page for a compute queue, which runs nothing; needs a W or S before it
 *	P	a page for a copy engine's queue, which runs nothing
 *	E	the page of signal events, 32K or more; without it the kernel makes one
 *
 * Settings follow or precede. They have numbers, and a flag is 1.
 *
 *	gpus=N		GPUs, 1 by default
 *	scale=N/M	multiplies sizes
 *	count=N/M	multiplies counts, which stay at least one
 *	zero=PERCENT	this much of the end of each buffer is never written
 *	events=N	signal events
 *	tasks=N		processes, up to 64, each with all of this
 *	xnack=1		the process has XNACK on
 *	kfds=N		how often /dev/kfd is open, up to 4
 *	seed=N		another seed for the contents
 *	map=N		buffers of a GPU that stay mapped for the CPU, 16 by default
 *	shared=N	each task imports the first N buffers of each other task, or of itself if alone
 *	owner=N		only task N, from 0, has those buffers, and shares them
 *	gone=1		owners have freed them
 *	peer=N		imports are for the GPU that follows N behind the buffer's
 *	both=1		the buffer's GPU maps such imports, too
 *	legacy=1	share handles of AMD's driver instead of dma-bufs; 2: in tasks with odd numbers
 *	host=1		imports have a GEM handle and a mapping by GEM_VA instead of a BO of KFD, as
 *			ROCr imports host memory
 *	cpu=1		a single task also maps its imports for the CPU
 *	apart=1		task N counts GPUs from the N-th on, so tasks with one GPU have different ones
 *	dmabufs=N	each task keeps a dma-buf of its first N buffers open, the first of them in a
 *			lower descriptor than /dev/kfd
 *	broker=1	task 0 has no /dev/kfd, but dma-bufs of the shared buffers of all others
 *	memfd=1		memory of kinds U and S is that of memfds
 *	verify=0	bytes are not compared
 *
 * For dumps that the plugin refuses, and restores that fail:
 *
 *	opened=N	the GPUs whose render node the process opens, all by default
 *	strange=N	events of a type that RESTORE does not make
 *	outside=N	the last N tasks are not dumped
 *	contexts=N	KFD contexts beside the process's first, up to 4
 *	lost=1		CRIU does not restore the memory of kinds U and S
 *
 * A name instead of items is a profile: P1-issue2663, P2-train, P4-serve or P7-small. Settings behind
 * it replace those of the profile. */
// clang-format on
#ifndef TEST_NATIVE_WORKLOAD_H
#define TEST_NATIVE_WORKLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WORKLOAD_PAGE 4096u
#define WORKLOAD_ALL  UINT32_MAX

/* For workload.legacy: all tasks, and those with odd numbers. */
#define WORKLOAD_LEGACY      1u
#define WORKLOAD_HALF_LEGACY 2u

struct workload_bo {
	uint32_t gpu; /* index among the GPUs of the machine */
	char kind;
	uint64_t size;    /* bytes, whole pages */
	uint64_t written; /* bytes from the start that hold the pattern; the rest is zero */
	bool mapped;      /* stays mapped for the CPU */
};

struct workload {
	struct workload_bo *bos;
	size_t num_bos;
	uint32_t gpus, events, strange, kfds, tasks, opened, zero_percent, map, shared;
	uint32_t outside;
	uint32_t contexts;
	uint32_t dmabufs;
	uint32_t peer;   /* how far the GPU of an import is from that of the buffer */
	uint32_t legacy; /* which tasks import by share handles */
	uint32_t owner;  /* of shared buffers; WORKLOAD_ALL: each task has its own */
	uint32_t task;   /* the task's number: addresses and contents differ from task to task */
	uint64_t scale_times, scale_by, count_times, count_by;
	uint64_t seed;
	bool broker;
	bool host;  /* imports by the render node */
	bool cpu;   /* maps imports for the CPU, too */
	bool lost;  /* memory of the process (kinds U and S) does not come back */
	bool gone;  /* owners have freed the shared buffers */
	bool apart; /* the first GPU of a task is the one with its number */
	bool both;  /* the GPU of a shared buffer maps imports for another one, too */
	bool xnack;
	bool memfd; /* memory of kinds U and S is shared, and its files have no name */
	bool verify;
	bool settled; /* used while parsing: all settings are known */
};

/* -EINVAL after a line on stderr. Free it with workload_done(), also after a failure. */
int workload_parse(const char *text, struct workload *ret_workload);
void workload_done(struct workload *workload);
/* The same workload for another task; @workload keeps the ownership of the buffers. */
struct workload workload_of_task(const struct workload *workload, uint32_t task);

/* Whether the task has no KFD. */
bool workload_is_broker(const struct workload *workload);

/* The address of the first buffer, and the address behind @bo. */
uint64_t workload_first_address(const struct workload *workload);
uint64_t workload_next_address(uint64_t address, const struct workload_bo *bo);

/* The distance of the second mapping of a buffer of kind N below the first. */
#define WORKLOAD_SECOND_DISTANCE (2ull << 40)

uint64_t workload_second_address(uint64_t address);

/* The distance of imports below their originals. */
#define WORKLOAD_IMPORT_DISTANCE (1ull << 40)

/* The address at which other tasks, or the only task, import buffer @index of the task. */
uint64_t workload_import_address(const struct workload *workload, size_t index);
/* Whether the task makes buffer @index, and whether it still has it when all are shared. */
bool workload_makes(const struct workload *workload, size_t index);
bool workload_keeps(const struct workload *workload, size_t index);
/* Whether the task, or any of several tasks, imports the shared buffers of task @owner. */
bool workload_imports(const struct workload *workload, uint32_t owner);
/* Whether tasks write to the last WORKLOAD_SLOTS bytes of buffer @index to show that they share it.
 */
bool workload_is_shared(const struct workload *workload, size_t index);
#define WORKLOAD_SLOTS 64u
/* What task @slot writes to its slot of buffer @index of task @owner. */
uint64_t workload_slot_word(uint32_t owner, size_t index, uint32_t slot);

/* False: the buffer is memory of the process in an SVM range. */
bool workload_is_buffer(const struct workload_bo *bo);
/* Whether the plugin has to save the contents of the buffer. */
bool workload_has_content(const struct workload_bo *bo);
/* Whether the contents are the pattern and zeros still when the GPU and the kernel have run. */
bool workload_has_pattern(const struct workload *workload, size_t index);
uint64_t workload_content_bytes(const struct workload *workload);

/* The pattern of buffer @index in [@offset, +@size), whole words: every word encodes its buffer and
 * its place. check: returns the number of correct bytes from @offset on. */
void workload_fill(const struct workload *workload, size_t index, uint64_t offset, void *memory,
		   uint64_t size);
uint64_t workload_check(const struct workload *workload, size_t index, uint64_t offset,
			const void *memory, uint64_t size);

#endif
