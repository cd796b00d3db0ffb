// SPDX-License-Identifier: GPL-2.0-only
/* Keeps the places of shared objects in memory that all processes of a restore have. imports.c
 * publishes and imports the objects. */
#include "sharing/objects.h"

#include <errno.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/random.h>

#include "amdgpu_plugin_util.h"
#include "image/image.h"
#include "kernel/kfd_priv.h"
#include "kernel/proc.h"

/* The time after which a waiting task looks again, in seconds. */
#define WAIT_S 1

/* The kernel allocates only those pages of the table that are written. */
struct objects {
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

int objects_new(struct objects **ret_objects)
{
	void *objects = mmap(NULL, sizeof(struct objects), PROT_READ | PROT_WRITE,
			     MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (objects == MAP_FAILED)
		return -errno;
	*ret_objects = objects;
	return getrandom((*ret_objects)->rename, sizeof((*ret_objects)->rename), 0) < 0 ? -errno
											: 0;
}

void objects_free(struct objects *objects)
{
	if (objects)
		(void)munmap(objects, sizeof(*objects));
}

static struct slot *slot_of(struct objects *objects, uint32_t number)
{
	return number && number <= IMAGE_OBJECTS_MAX ? &objects->slots[number - 1] : NULL;
}

int objects_publish(struct objects *objects, uint32_t number, const struct object *object)
{
	struct slot *slot = slot_of(objects, number);

	if (!slot)
		return -EINVAL;
	if (__atomic_exchange_n(&slot->taken, true, __ATOMIC_ACQ_REL))
		return -EEXIST;
	slot->object = *object;
	__atomic_store_n(&slot->published, true, __ATOMIC_RELEASE);
	return 0;
}

static void wake(struct objects *objects)
{
	(void)__atomic_add_fetch(&objects->announcements, 1, __ATOMIC_ACQ_REL);
	futex_wake_all(&objects->announcements);
}

void objects_announce(struct objects *objects, pid_t vpid)
{
	__atomic_store_n(&objects->complete[vpid % PROC_PIDS_MAX], true, __ATOMIC_RELEASE);
	wake(objects);
}

int objects_find(struct objects *objects, uint32_t number, struct object *ret_object)
{
	const struct slot *slot = slot_of(objects, number);

	if (!slot || !__atomic_load_n(&slot->published, __ATOMIC_ACQUIRE))
		return -ENOENT;
	*ret_object = slot->object;
	return 0;
}

int objects_await(struct objects *objects, uint32_t number, pid_t owner, struct object *ret_object,
		  pid_t *ret_failed)
{
	uint32_t seen = __atomic_load_n(&objects->announcements, __ATOMIC_ACQUIRE);
	bool complete =
		__atomic_load_n(&objects->complete[owner % PROC_PIDS_MAX], __ATOMIC_ACQUIRE);
	int ret = objects_find(objects, number, ret_object);

	if (!ret)
		return 0;
	if (complete)
		return -ENODATA;
	*ret_failed = (pid_t)__atomic_load_n(&objects->failed, __ATOMIC_ACQUIRE);
	if (*ret_failed)
		return -ECANCELED;
	futex_wait_while(&objects->announcements, seen, WAIT_S);
	return objects_find(objects, number, ret_object) < 0 ? -ETIME : 0;
}

void objects_fail(struct objects *objects, pid_t vpid)
{
	if (!objects)
		return;
	__atomic_store_n(&objects->failed, (uint32_t)vpid, __ATOMIC_RELEASE);
	wake(objects);
}

enum object_name objects_name(struct objects *objects, uint32_t number, enum object_name wish)
{
	struct slot *slot = slot_of(objects, number);
	enum object_name name = NAME_OPEN;

	if (!slot)
		return wish;
	(void)__atomic_compare_exchange_n(&slot->name, &name, wish, false, __ATOMIC_ACQ_REL,
					  __ATOMIC_ACQUIRE);
	return name == NAME_OPEN ? wish : name;
}

void objects_rename(const struct objects *objects, uint32_t *handle)
{
	for (size_t i = 0; i < KFD_SHARE_WORDS; i++)
		handle[i] ^= objects->rename[i];
}
