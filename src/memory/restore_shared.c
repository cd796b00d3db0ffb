// SPDX-License-Identifier: GPL-2.0-only
/* Keeps the phase of each task where CRIU's main process can read it. The guard of a restore has
 * its own page, see restore_guard.c. */
#include "memory/restore_shared.h"

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

#include "content/content.h"
#include "criu/log.h"
#include "kernel/kfd.h"
#include "kernel/render_node.h"
#include "map/map.h"

#define GPU_IDS (KFD_GPU_ID_MAX + 1)
/* Memory ranges of all tasks together. */
#define RANGES_MAX (1u << 20)

/* The kernel allocates only those pages of the table that are written. */
struct restore_shared {
	uint8_t handoff_ready;
	struct content_totals totals;
	struct log_first first_error;
	/* The tasks that have left PHASE_NONE. */
	unsigned int count;
	/* Phase of each task (enum task_phase), by vpid. */
	uint8_t phases[PROC_PIDS_MAX];
	/* VRAM that tasks have claimed of each GPU, by gpu_id. */
	uint64_t claimed_vram[GPU_IDS];
	uint32_t claims[MAP_CLAIMS];
	uint8_t made_nodes[RENDER_NODE_MINOR_LAST + 1];
	/* Counts ranges beyond the end of the table, too. */
	uint32_t num_ranges;
	struct {
		pid_t vpid;
		struct proc_range range;
	} ranges[RANGES_MAX];
};

int restore_shared_new(struct restore_shared **ret_shared)
{
	void *shared = mmap(NULL, sizeof(struct restore_shared), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (shared == MAP_FAILED)
		return -errno;
	*ret_shared = shared;
	log_keep_first(&(*ret_shared)->first_error);
	return 0;
}

void restore_shared_free(struct restore_shared *shared)
{
	if (!shared)
		return;
	log_keep_first(NULL);
	(void)munmap(shared, sizeof(*shared));
}

enum task_phase restore_shared_phase(const struct restore_shared *shared, pid_t vpid)
{
	return __atomic_load_n(&shared->phases[vpid % PROC_PIDS_MAX], __ATOMIC_ACQUIRE);
}

void restore_shared_set_phase(struct restore_shared *shared, pid_t vpid, enum task_phase phase)
{
	uint8_t old =
		__atomic_exchange_n(&shared->phases[vpid % PROC_PIDS_MAX], phase, __ATOMIC_ACQ_REL);

	(void)__atomic_add_fetch(&shared->count, old == PHASE_NONE, __ATOMIC_ACQ_REL);
}

unsigned int restore_shared_count(const struct restore_shared *shared)
{
	return __atomic_load_n(&shared->count, __ATOMIC_ACQUIRE);
}

int restore_shared_add_range(struct restore_shared *shared, pid_t vpid, struct proc_range range)
{
	uint32_t index = __atomic_fetch_add(&shared->num_ranges, 1, __ATOMIC_ACQ_REL);

	if (index >= RANGES_MAX)
		return -ENOSPC;
	shared->ranges[index].vpid = vpid;
	shared->ranges[index].range = range;
	return 0;
}

int restore_shared_get_range(const struct restore_shared *shared, uint32_t index, pid_t *ret_vpid,
			     struct proc_range *ret_range)
{
	uint32_t count = __atomic_load_n(&shared->num_ranges, __ATOMIC_ACQUIRE);

	if (index >= count || index >= RANGES_MAX)
		return -ENOENT;
	*ret_vpid = shared->ranges[index].vpid;
	*ret_range = shared->ranges[index].range;
	return 0;
}

struct content_totals *restore_shared_totals(struct restore_shared *shared)
{
	return &shared->totals;
}

bool restore_shared_handoff_is_ready(const struct restore_shared *shared)
{
	return __atomic_load_n(&shared->handoff_ready, __ATOMIC_ACQUIRE);
}

void restore_shared_set_handoff_ready(struct restore_shared *shared)
{
	__atomic_store_n(&shared->handoff_ready, true, __ATOMIC_RELEASE);
}

uint64_t restore_shared_claimed_vram(const struct restore_shared *shared, uint32_t gpu_id)
{
	return __atomic_load_n(&shared->claimed_vram[gpu_id % GPU_IDS], __ATOMIC_ACQUIRE);
}

void restore_shared_claim_vram(struct restore_shared *shared, uint32_t gpu_id, uint64_t bytes)
{
	(void)__atomic_add_fetch(&shared->claimed_vram[gpu_id % GPU_IDS], bytes, __ATOMIC_ACQ_REL);
}

const uint32_t *restore_shared_claims(const struct restore_shared *shared)
{
	return shared->claims;
}

uint32_t restore_shared_claim_gpu(struct restore_shared *shared, uint32_t gpu_id, uint32_t saved_id)
{
	uint32_t owner = 0;

	if (__atomic_compare_exchange_n(&shared->claims[gpu_id % MAP_CLAIMS], &owner, saved_id,
					false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		return saved_id;
	return owner;
}

bool restore_shared_has_made_node(const struct restore_shared *shared, uint32_t minor)
{
	return minor <= RENDER_NODE_MINOR_LAST &&
	       __atomic_load_n(&shared->made_nodes[minor], __ATOMIC_ACQUIRE);
}

void restore_shared_note_made_node(struct restore_shared *shared, uint32_t minor)
{
	if (minor <= RENDER_NODE_MINOR_LAST)
		__atomic_store_n(&shared->made_nodes[minor], true, __ATOMIC_RELEASE);
}
