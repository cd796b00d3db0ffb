/* SPDX-License-Identifier: GPL-2.0-only */
/* The BOs of a dump that are one object: processes import the buffers of others by dma-bufs, and a
 * process may import a buffer several times. The entry that made the object saves its contents, and
 * the others import it at the restore.
 *
 * Linux does not say which entry made an object. An import always has the same flags there, and
 * libhsakmt gives other flags to what it makes. So the owner of an object is the only entry whose
 * flags are not those of an import. If the owner has freed it, the first importer makes it at the
 * restore.
 *
 * AMD's out-of-tree driver gives imports the flags of the owner. It also shares by share handles
 * (legacy hipIpc), and its record of a BO with such a handle says whether the process imported it.
 * Its RESTORE lets the first process make the object, and the others import it. For an import by a
 * dma-buf the driver says nothing: then each entry can make the object, and an owner outside the
 * dump shows only in the number of holders. */
#ifndef AMDGPU_PLUGIN_SHARING_SHARED_BOS_H
#define AMDGPU_PLUGIN_SHARING_SHARED_BOS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "kernel/kfd_priv.h"
#include "session/dump_session.h"

/* What names a BO: the inode of its dma-buf, or its mmap offset on a topology_pci_device(). */
struct bo_name {
	bool is_inode;
	/* 0 for an inode. */
	uint64_t device;
	uint64_t number;
};

struct shared_bo {
	/* Index in dump_session.processes, and in the list of BOs of that process. */
	size_t process;
	uint32_t index;
	/* topology_pci_device() of its GPU, and the GPU, as this machine names it. */
	uint64_t device;
	uint32_t gpu_id;
	uint32_t alloc_flags;
	uint64_t offset;
	uint64_t size;
	/* Inode of its dma-buf. */
	uint64_t inode;
	uint64_t file_system;
	/* How many descriptors of it the tasks of the dump and CRIU have. */
	uint32_t descriptors;
	/* A task has a dma-buf of the object open, perhaps another one. */
	bool is_open;
	/* The references to its dma-buf when its process was added, or 0 if the kernel does not
	 * report them. The dma-bufs of the processes from @first_open on were open then. */
	uint64_t references;
	size_t first_open;
	/* What the driver's record says, if its layout is known. */
	struct kfd_priv_ipc ipc;
	/* At most so many GPUs map it through PCIe. */
	uint32_t attachments;
	/* The object's offset where its owner has it, and what all BOs of a group have. */
	struct bo_name owner_name;
	struct bo_name group;
	/* A render file of another process has a GEM handle of the object. */
	bool is_named;
	/* Number of the object, from 1, or 0 if a restore makes a BO of its own. */
	uint32_t object;
	/* The process whose entry makes the object. */
	size_t owner;
	/* The object is imported. */
	bool imported;
	/* RESTORE shares the object by its share handle. */
	bool by_share_handle;
	/* On another PCI device than the owner's. */
	bool on_other_device;
	/* The process makes the BO again, which looks imported. */
	bool recreated;
	/* If recreated: its creation flags, and why a restore cannot make it, or NULL. */
	uint32_t made_flags;
	const char *lost;
	/* Why a restore cannot share it. NULL: it can, or no other entry is the object. */
	const char *problem;
	/* Its dma-buf has a holder that the dump does not know. */
	bool has_external_holder;
	/* External holder, and no entry can be the owner's. */
	bool outside;
	/* The dump knows all holders of its dma-buf. */
	bool has_no_other;
};

/* Before the first CHECKPOINT, which returns dma-bufs to this process: lists those of the tasks.
 * Logs on error. */
int shared_bos_begin(struct dump_session *session);
/* After CHECKPOINT of @process, which has its index of BOs: adds its BOs and GEM handles. Logs on
 * error. */
int shared_bos_add(const struct dumped_process *process);
/* After the last process: finds the BOs that are one object, and what is wrong with them. Logs on
 * error. */
int shared_bos_find_objects(struct dump_session *session);
/* Refuses sharing that a restore cannot rebuild. Logs on error. */
int shared_bos_check(const struct dumped_process *process);
/* After all rules: changes the saved state of BOs that a restore makes in another way than the
 * kernel reports them. A BO that no other process of the dump can share (AMDGPU_FORCE) loses its
 * share handle, and a BO whose creator has freed it gets the creator's flags. */
void shared_bos_change_saved_state(struct dumped_process *process);
/* The entry of a BO. NULL: the BO has no contents. */
struct shared_bo *shared_bos_get(const struct dumped_process *process, uint32_t index);
/* Refuses a mapping of a BO if no restore could tell CRIU its new offset. The process has its index
 * of BOs. */
int shared_bos_check_mapping(const struct dumped_process *process,
			     const struct proc_mapping *mapping);
/* The object of a GEM handle of which the process has no BO: sets the object's number, size, and
 * owner in @saved. -ENOENT: no process of the dump has such a BO that can be shared. */
int shared_bos_find_named(const struct dumped_process *process, struct gem_saved *saved);
/* Whether the mapping is that of an object, from its start, of which the process has a GEM handle
 * only. The process has its list of handles. */
bool shared_bos_maps_other(const struct dumped_process *process,
			   const struct proc_mapping *mapping);
/* Whether the BO has contents, and no other entry is the same object. */
bool shared_bos_is_private(const struct dumped_process *process, uint32_t index);
/* An entry of the object that has the dma-buf @stat, and the process that makes the object.
 * -ENOENT: no process of the dump has such a BO, or the BOs are not listed yet. */
int shared_bos_find_file(const struct dump_session *session, const struct stat *stat,
			 uint32_t *ret_object, const struct dumped_process **ret_owner);
/* All files have been shown: whether each process that has a part in an object has an image. Logs
 * on error. */
int shared_bos_check_seen(const struct dump_session *session);
void shared_bos_done(struct dump_session *session);

#endif
