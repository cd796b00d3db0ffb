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

struct bo_sum facts_sum_kind(const CriuKfd *kfd, uint32_t flag);
/* The BOs of a GPU that have contents in its pages file. */
struct bo_sum facts_sum_contents(const CriuKfd *kfd, uint32_t gpu_id);
/* The BOs that other entries of the dump are, too. */
struct bo_sum facts_sum_shared(const CriuKfd *kfd);
/* Those of them that a restore imports, so their contents are with another entry. */
struct bo_sum facts_sum_imports(const CriuKfd *kfd);

/* The BOs of a process that process @owner_pid makes at a restore. */
struct owner_sum {
	uint32_t owner_pid;
	struct bo_sum bos;
	/* How many of them RESTORE shares by share handles. */
	size_t by_share_handle;
	uint32_t lowest_object;
	uint32_t highest_object;
};

/* One for each owner, by pid, in memory that the caller frees. The process itself is the owner of
 * what it makes for others. -ENOMEM. */
int facts_sum_owners(const CriuKfd *kfd, struct owner_sum **ret_owners, size_t *ret_count);

/* The GEM handles of a process in the render file of a GPU. */
struct gem_sum {
	size_t count;
	uint32_t lowest;
	uint32_t highest;
	/* Of objects of which only other processes have a BO. */
	size_t others;
	size_t mappings;
};

struct gem_sum facts_sum_gem_handles(const CriuKfd *kfd, uint32_t gpu_id);

struct objects {
	/* Whether the layout of the private data is known; if not, nothing else is. */
	bool known;
	struct kfd_priv_queue *queues;
	size_t num_queues;
	size_t num_events;
	size_t num_svm_ranges;
};

/* Free the result with facts_objects_done(). */
void facts_read_objects(const struct kfd_priv *priv, struct objects *ret_objects);
void facts_objects_done(struct objects *objects);
const char *facts_queue_type(uint32_t type);

/* Which plugin has written the image. */
const char *facts_writer(const CriuKfd *kfd);

#endif
