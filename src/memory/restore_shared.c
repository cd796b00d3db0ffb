// SPDX-License-Identifier: GPL-2.0-only
/* Keeps what tasks tell each other and CRIU's main process in one mapping. The guard of a restore
 * has its own page, see restore_guard.c. */
#include "memory/restore_shared.h"

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/random.h>

#include "amdgpu_plugin_util.h"
#include "content/content.h"
#include "criu/log.h"
#include "image/image.h"
#include "kernel/kfd.h"
#include "kernel/kfd_priv.h"
#include "kernel/render_node.h"
#include "map/map.h"

#define GPU_IDS (KFD_GPU_ID_MAX + 1)
/* Memory ranges of all tasks together. */
#define RANGES_MAX (1u << 20)
/* The time after which a task that waits for an object looks again, in seconds. */
#define WAIT_S 1

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
	/* A futex, which changes with each announcement. */
	uint32_t announcements;
	/* The vpid of a task that has failed, or 0. */
	uint32_t failed;
	/* Random bits, which change a share handle into another one. */
	uint32_t rename[KFD_SHARE_WORDS];
	/* Whether the task has published all its objects, by vpid. */
	bool complete[PROC_PIDS_MAX];
	struct slot {
		bool taken;
		bool published;
		enum object_name name;
		struct object object;
	} slots[IMAGE_OBJECTS_MAX];
};

int restore_shared_new(struct restore_shared **ret_shared)
{
	void *shared = mmap(NULL, sizeof(struct restore_shared), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (shared == MAP_FAILED)
		return -errno;
	*ret_shared = shared;
	log_keep_first(&(*ret_shared)->first_error);
	return getrandom((*ret_shared)->rename, sizeof((*ret_shared)->rename), 0) < 0 ? -errno : 0;
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

static struct slot *slot_of(struct restore_shared *shared, uint32_t number)
{
	return number && number <= IMAGE_OBJECTS_MAX ? &shared->slots[number - 1] : NULL;
}

int restore_shared_publish(struct restore_shared *shared, uint32_t number,
			   const struct object *object)
{
	struct slot *slot = slot_of(shared, number);

	if (!slot)
		return -EINVAL;
	if (__atomic_exchange_n(&slot->taken, true, __ATOMIC_ACQ_REL))
		return -EEXIST;
	slot->object = *object;
	__atomic_store_n(&slot->published, true, __ATOMIC_RELEASE);
	return 0;
}

static void wake(struct restore_shared *shared)
{
	(void)__atomic_add_fetch(&shared->announcements, 1, __ATOMIC_ACQ_REL);
	futex_wake_all(&shared->announcements);
}

void restore_shared_announce(struct restore_shared *shared, pid_t vpid)
{
	__atomic_store_n(&shared->complete[vpid % PROC_PIDS_MAX], true, __ATOMIC_RELEASE);
	wake(shared);
}

int restore_shared_find(struct restore_shared *shared, uint32_t number, struct object *ret_object)
{
	const struct slot *slot = slot_of(shared, number);

	if (!slot || !__atomic_load_n(&slot->published, __ATOMIC_ACQUIRE))
		return -ENOENT;
	*ret_object = slot->object;
	return 0;
}

int restore_shared_await(struct restore_shared *shared, uint32_t number, pid_t owner,
			 struct object *ret_object, pid_t *ret_failed)
{
	uint32_t seen = __atomic_load_n(&shared->announcements, __ATOMIC_ACQUIRE);
	bool complete = __atomic_load_n(&shared->complete[owner % PROC_PIDS_MAX], __ATOMIC_ACQUIRE);
	int ret = restore_shared_find(shared, number, ret_object);

	if (!ret)
		return 0;
	if (complete)
		return -ENODATA;
	*ret_failed = (pid_t)__atomic_load_n(&shared->failed, __ATOMIC_ACQUIRE);
	if (*ret_failed)
		return -ECANCELED;
	futex_wait_while(&shared->announcements, seen, WAIT_S);
	return restore_shared_find(shared, number, ret_object) < 0 ? -ETIME : 0;
}

void restore_shared_fail(struct restore_shared *shared, pid_t vpid)
{
	if (!shared)
		return;
	__atomic_store_n(&shared->failed, (uint32_t)vpid, __ATOMIC_RELEASE);
	wake(shared);
}

enum object_name restore_shared_name(struct restore_shared *shared, uint32_t number,
				     enum object_name wish)
{
	struct slot *slot = slot_of(shared, number);
	enum object_name name = NAME_OPEN;

	if (!slot)
		return wish;
	(void)__atomic_compare_exchange_n(&slot->name, &name, wish, false, __ATOMIC_ACQ_REL,
					  __ATOMIC_ACQUIRE);
	return name == NAME_OPEN ? wish : name;
}

void restore_shared_rename(const struct restore_shared *shared, uint32_t *handle)
{
	for (size_t i = 0; i < KFD_SHARE_WORDS; i++)
		handle[i] ^= shared->rename[i];
}
