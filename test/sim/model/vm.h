/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The GPU page tables of one render file: which buffer lies at which address. Both KFD and GEM_VA
 * enter mappings; the engines reach memory through them alone. */
#ifndef SIM_VM_H
#define SIM_VM_H

#include "bo.h"

enum sim_vm_origin { SIM_VM_GEM, SIM_VM_KFD };

struct sim_mapping {
	u64 start, end; /* bytes, end exclusive */
	u64 offset;     /* in the buffer */
	struct sim_bo *bo;
	u32 flags; /* DRM_VM_* */
	enum sim_vm_origin origin;
};

struct sim_vm {
	struct sim *sim;
	struct sim_lock lock;
	struct sim_mapping **mappings; /* ascending */
	u32 count, capacity;
};

void sim_vm_init(struct sim_vm *vm, struct sim *sim);
void sim_vm_done(struct sim_vm *vm);

/* Enters a mapping with a reference of its own to the buffer: -EINVAL overlap, -ENOMEM. */
int sim_vm_map(struct sim_vm *vm, const struct sim_mapping *mapping);
/* Removes the mapping of @bo that starts there: -ENOENT. */
int sim_vm_unmap(struct sim_vm *vm, struct sim_bo *bo, u64 start, enum sim_vm_origin origin);
/* Removes every GEM mapping in the range, cutting those that reach beyond it. */
int sim_vm_clear(struct sim_vm *vm, u64 start, u64 end);
/* Removes what GEM_VA entered for this buffer. */
void sim_vm_unmap_bo(struct sim_vm *vm, struct sim_bo *bo);
/* The mapping at an address, with a reference to its buffer: -EFAULT. */
int sim_vm_find(struct sim_vm *vm, u64 addr, struct sim_mapping *ret_mapping);
/* Copies up to @capacity mappings of @bo (without references); the real number is the result. */
u32 sim_vm_list(struct sim_vm *vm, const struct sim_bo *bo, struct sim_mapping *list, u32 capacity);

/* Memory that an engine reaches without a mapping of its own. */
struct sim_reach {
	struct sim_bo *bo; /* borrowed: stays as long as the client may run */
	u64 offset, bytes;
};

/* Who accesses memory, and what it may touch. */
struct sim_client {
	struct sim *sim;
	struct sim_vm *vm;
	/* What lies at an address that is not mapped: -EFAULT nothing, -EACCES may not be accessed
	 * so. NULL: never anything. */
	int (*reach)(void *arg, u64 addr, u64 size, bool write, struct sim_reach *ret_reach);
	void *reach_arg;
	struct sim_bo **listed; /* the only buffers allowed, ascending; NULL: all that are mapped */
	u32 num_listed;
	bool skip_copies; /* checks addresses, but moves nothing */
	const char *who;
};

/* Accesses by GPU address. Everything that is not mapped, or not in the list, is a violation:
 * -EFAULT; nothing is transferred then beyond the pages in front of it. */
int sim_client_read(const struct sim_client *client, u64 addr, void *data, u64 size);
int sim_client_write(const struct sim_client *client, u64 addr, const void *data, u64 size);
int sim_client_copy(const struct sim_client *client, u64 dst, u64 src, u64 size);
int sim_client_fill(const struct sim_client *client, u64 addr, u32 pattern, u64 size);
/* As sim_bo_exchange(). */
int sim_client_exchange(const struct sim_client *client, u64 addr, u32 bytes, u64 *expected,
			u64 desired);
/* Adds @value to 4 or 8 bytes, as atomically. */
int sim_client_add(const struct sim_client *client, u64 addr, u32 bytes, u64 value);

#endif
