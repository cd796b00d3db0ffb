// SPDX-License-Identifier: GPL-2.0-only
/* Keeps what tasks tell each other, CRIU's main process and the guard in one mapping. */
#include "memory/restore_shared.h"

#include <errno.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/random.h>

#include "amdgpu_plugin_util.h"
#include "criu/log.h"

/* The time after which a task that waits for an object looks again, in seconds. */
#define WAIT_S 1

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

void restore_shared_set_phase(struct restore_shared *shared, pid_t vpid, enum task_phase phase)
{
	_Atomic uint8_t *at = &shared->phases[vpid % PROC_PIDS_MAX];

	shared->num_tasks += *at == PHASE_NONE;
	*at = phase;
}

int restore_shared_add_range(struct restore_shared *shared, pid_t vpid, struct proc_range range)
{
	uint32_t index = shared->num_ranges++;

	if (index >= RESTORE_SHARED_RANGES)
		return -ENOSPC;
	shared->ranges[index].vpid = vpid;
	shared->ranges[index].range = range;
	return 0;
}

uint32_t restore_shared_claim_gpu(struct restore_shared *shared, uint32_t gpu_id, uint32_t saved_id)
{
	uint32_t owner = 0;

	if (__atomic_compare_exchange_n(&shared->claims[gpu_id % MAP_CLAIMS], &owner, saved_id,
					false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		return saved_id;
	return owner;
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
	if (atomic_exchange(&slot->taken, true))
		return -EEXIST;
	slot->object = *object;
	slot->published = true;
	return 0;
}

static void wake(struct restore_shared *shared)
{
	(void)__atomic_add_fetch(&shared->announcements, 1, __ATOMIC_ACQ_REL);
	futex_wake_all(&shared->announcements);
}

void restore_shared_announce(struct restore_shared *shared, pid_t vpid)
{
	shared->complete[vpid % PROC_PIDS_MAX] = true;
	wake(shared);
}

int restore_shared_find(struct restore_shared *shared, uint32_t number, struct object *ret_object)
{
	const struct slot *slot = slot_of(shared, number);

	if (!slot || !slot->published)
		return -ENOENT;
	*ret_object = slot->object;
	return 0;
}

int restore_shared_await(struct restore_shared *shared, uint32_t number, pid_t owner,
			 struct object *ret_object, pid_t *ret_failed)
{
	uint32_t seen = __atomic_load_n(&shared->announcements, __ATOMIC_ACQUIRE);
	bool complete = shared->complete[owner % PROC_PIDS_MAX];
	int ret = restore_shared_find(shared, number, ret_object);

	if (!ret)
		return 0;
	if (complete)
		return -ENODATA;
	*ret_failed = shared->failed;
	if (*ret_failed)
		return -ECANCELED;
	futex_wait_while(&shared->announcements, seen, WAIT_S);
	return restore_shared_find(shared, number, ret_object) < 0 ? -ETIME : 0;
}

void restore_shared_fail(struct restore_shared *shared, pid_t vpid)
{
	if (!shared)
		return;
	shared->failed = vpid;
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
