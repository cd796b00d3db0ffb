/* SPDX-License-Identifier: GPL-2.0-only */
/* The shared objects of a restore: a table that CRIU's main process and all tasks share. The task
 * that makes an object publishes its dma-buf, and the tasks that import it wait for that. A task
 * publishes all its objects before it waits for the first, so tasks that import from each other do
 * not wait forever. */
#ifndef AMDGPU_PLUGIN_SHARING_OBJECTS_H
#define AMDGPU_PLUGIN_SHARING_OBJECTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct objects;

/* A GPU, and its topology_pci_device(), as its machine names them. */
struct object_gpu {
	uint32_t gpu_id;
	uint64_t device;
};

struct object {
	/* Id of the dma-buf in CRIU's descriptor store. */
	int store_id;
	/* The GPU that has the memory, on this machine and on that of the dump. */
	struct object_gpu gpu;
	struct object_gpu saved_gpu;
	/* Offset of the object in the render nodes of that GPU's PCI device. */
	uint64_t mmap_offset;
};

/* In CRIU's main process, before CRIU forks the tasks. */
int objects_new(struct objects **ret_objects);
/* Accepts NULL. */
void objects_free(struct objects *objects);

/* Publishes object @number, from 1 to IMAGE_OBJECTS_MAX. -EEXIST: another BO is this object. */
int objects_publish(struct objects *objects, uint32_t number, const struct object *object);
/* Task @vpid has published all its objects, or has none: waiting tasks go on. */
void objects_announce(struct objects *objects, pid_t vpid);
/* -ENOENT: object @number is not published. */
int objects_find(struct objects *objects, uint32_t number, struct object *ret_object);
/* Waits until task @owner has published it. -ETIME: not yet, after a second. -ENODATA: the task has
 * published all its objects, and this one is not among them. -ECANCELED: a task has failed, and
 * CRIU is going to kill all of them; *@ret_failed is its vpid. */
int objects_await(struct objects *objects, uint32_t number, pid_t owner, struct object *ret_object,
		  pid_t *ret_failed);
/* Task @vpid fails: the others do not wait any more. Accepts NULL. */
void objects_fail(struct objects *objects, pid_t vpid);

/* Which share handle the tasks of a restore give an object of AMD's out-of-tree driver. */
enum object_name {
	NAME_OPEN,
	NAME_SAVED,
	NAME_FRESH,
};

/* The decision of the first task that has @wish, unless that is NAME_OPEN. Object 0 is the task's
 * own. */
enum object_name objects_name(struct objects *objects, uint32_t number, enum object_name wish);
/* Makes another share handle of the one at @handle, the same in all tasks. */
void objects_rename(const struct objects *objects, uint32_t *handle);

#endif
