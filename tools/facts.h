/* SPDX-License-Identifier: GPL-2.0-only */
/* Facts about the image of a process, for the commands that print them. */
#ifndef AMDGPU_PLUGIN_TOOLS_FACTS_H
#define AMDGPU_PLUGIN_TOOLS_FACTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "criu-amdgpu.pb-c.h"
#include "kernel/kfd_priv.h"

/* The kinds of BOs: a bit of alloc_flags each. */
struct bo_kind {
	uint32_t flag;
	const char *name;
};

#define BO_KINDS 5
extern const struct bo_kind facts_bo_kinds[BO_KINDS];

struct bo_sum {
	size_t count;
	uint64_t bytes;
	uint64_t largest;
	size_t with_checksum;
};

enum bo_fact {
	BO_OF_KIND,       /* the number is a flag of facts_bo_kinds */
	BO_WITH_CONTENTS, /* in the pages file of the GPU whose id is the number */
	BO_SHARED,        /* other entries of the dump are this BO, too */
	BO_IMPORT,        /* one of them that a restore imports: another entry has the contents */
};

/* Sums up the BOs of which this is true. */
struct bo_sum facts_sum(const CriuKfd *kfd, enum bo_fact fact, uint32_t number);

const char *facts_queue_type(uint32_t type);

/* Which plugin has written the image. */
const char *facts_writer(const CriuKfd *kfd);

/* Bytes of the pages file of GPU @gpu_id that share their blocks with other files (option base). 0
 * if the file system does not tell, and in archives. */
uint64_t facts_count_shared(int id, uint32_t gpu_id);

#endif
