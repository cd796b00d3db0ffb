/* SPDX-License-Identifier: GPL-2.0-only */
/* The GPU page tables of one render file: the buffer at each address. KFD and GEM_VA add mappings.
 * The engines reach memory only through these page tables. */
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

/* Adds a mapping with its own reference to the buffer: -EINVAL: overlap; -ENOMEM. */
int sim_vm_map(struct sim_vm *vm, const struct sim_mapping *mapping);
/* Removes the mapping of @bo that starts at the address: -ENOENT. */
int sim_vm_unmap(struct sim_vm *vm, struct sim_bo *bo, u64 start, enum sim_vm_origin *ret_origin);
/* Removes each GEM mapping in the range. Cuts mappings that reach beyond the range. */
int sim_vm_clear(struct sim_vm *vm, u64 start, u64 end);
/* Removes the mappings that GEM_VA has added for this buffer. */
void sim_vm_unmap_bo(struct sim_vm *vm, struct sim_bo *bo);
/* The mapping at an address, with a reference to its buffer: -EFAULT. */
int sim_vm_find(struct sim_vm *vm, u64 addr, struct sim_mapping *ret_mapping);
/* Copies up to @capacity mappings of @bo, without references. Returns the real number. */
u32 sim_vm_list(struct sim_vm *vm, const struct sim_bo *bo, struct sim_mapping *list, u32 capacity);

/* bo_va.c: a GEM handle, or a buffer of KFD, needs the mappings of @bo in @vm. The last put removes
 * those that GEM_VA has added. */
int sim_bo_va_get(struct sim_bo *bo, struct sim_vm *vm);
void sim_bo_va_put(struct sim_bo *bo, struct sim_vm *vm);

/* Memory that an engine reaches without a mapping in the page tables. */
struct sim_reach {
	struct sim_bo *bo; /* borrowed: it stays as long as the client may run */
	u64 offset, bytes;
};

/* The client of an access, and the memory that it may touch. */
struct sim_client {
	struct sim *sim;
	struct sim_vm *vm;
	/* Finds the memory at an unmapped address. -EFAULT: nothing; -EACCES: this access is not
	 * allowed. NULL: there is never any. */
	int (*reach)(void *arg, u64 addr, u64 size, bool write, struct sim_reach *ret_reach);
	void *reach_arg;
	struct sim_bo **listed; /* the only allowed buffers, ascending; NULL: all mapped ones */
	u32 num_listed;
	bool skip_copies; /* checks addresses, but moves no bytes */
	const char *who;
};

/* Accesses by GPU address. An access to an unmapped address, or to a buffer outside of the list, is
 * a violation and -EFAULT. Nothing is transferred then but the pages before it. */
int sim_client_read(const struct sim_client *client, u64 addr, void *data, u64 size);
int sim_client_write(const struct sim_client *client, u64 addr, const void *data, u64 size);
int sim_client_copy(const struct sim_client *client, u64 dst, u64 src, u64 size);
/* Adds @value to 4 or 8 bytes, atomically. */
int sim_client_add(const struct sim_client *client, u64 addr, u32 bytes, u64 value);

#endif
