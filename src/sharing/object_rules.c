// SPDX-License-Identifier: GPL-2.0-only
/* Finds the BOs of a dump that are one object, and chooses the owner of each object. */
#include "sharing/object_rules.h"

#include <stdlib.h>
#include <string.h>

#include "amdgpu_plugin_util.h"
#include "image/image.h"
#include "kernel/kfd.h"
#include "sharing/dmabuf_holders.h"
#include "sharing/shared_bos.h"

/* The references that an import on another PCI device holds: its attachment, its object, and the
 * file (drm_gem_prime_fd_to_handle() and amdgpu_gem_prime_import() in 6.12). A file with a handle
 * of the object itself holds one. */
#define IMPORT_REFERENCES 3

int object_rules_compare(const void *a, const void *b)
{
	const struct shared_bo *one = a, *other = b;

	return ORDER(one->process, other->process) ?: ORDER(one->index, other->index);
}

static int compare_offsets(const void *a, const void *b)
{
	const struct shared_bo *one = a, *other = b;

	return ORDER(one->device, other->device) ?: ORDER(one->offset, other->offset)
						 ?: object_rules_compare(a, b);
}

static int compare_owner_places(const void *a, const void *b)
{
	const struct shared_bo *one = a, *other = b;

	return ORDER(one->owner_device, other->owner_device)
		       ?: ORDER(one->owner_offset, other->owner_offset)
		       ?: object_rules_compare(a, b);
}

static int compare_inodes(const void *a, const void *b)
{
	const struct shared_bo *one = a, *other = b;

	return ORDER(one->inode, other->inode) ?: object_rules_compare(a, b);
}

static bool have_one_offset(const struct shared_bo *one, const struct shared_bo *other)
{
	return one->device == other->device && one->offset == other->offset;
}

static bool have_one_owner_place(const struct shared_bo *one, const struct shared_bo *other)
{
	return one->owner_device == other->owner_device && one->owner_offset == other->owner_offset;
}

static bool have_one_inode(const struct shared_bo *one, const struct shared_bo *other)
{
	return one->inode == other->inode;
}

/* 128 random bits. */
static bool have_one_name(const struct shared_bo *one, const struct shared_bo *other)
{
	return !memcmp(one->ipc.handle, other->ipc.handle, sizeof(one->ipc.handle));
}

int object_rules_compare_handles(const void *a, const void *b)
{
	const struct shared_handle *one = a, *other = b;

	return ORDER(one->is_import, other->is_import) ?: ORDER(one->device, other->device)
						       ?: ORDER(one->key, other->key);
}

struct shared_handle object_rules_name_offset(const struct shared_bo *bo)
{
	return (struct shared_handle){ .device = bo->device, .key = bo->offset };
}

struct shared_handle object_rules_name_inode(const struct shared_bo *bo)
{
	return (struct shared_handle){ .is_import = true, .key = bo->inode };
}

/* The handles that name what @wanted does: *@ret_count of the list, from the one that is returned.
 */
static const struct shared_handle *
find_handles(const struct shared_bos *shared, const struct shared_handle *wanted, size_t *ret_count)
{
	size_t first = lower_bound(wanted, shared->handles, shared->num_handles, sizeof(*wanted),
				   object_rules_compare_handles);
	size_t end = first;

	while (end < shared->num_handles &&
	       !object_rules_compare_handles(&shared->handles[end], wanted))
		end++;
	*ret_count = end - first;
	return &shared->handles[first];
}

static bool has_handle_of_other(const struct shared_bos *shared, const struct shared_bo *bo,
				const struct shared_handle *wanted)
{
	size_t count;
	const struct shared_handle *handles = find_handles(shared, wanted, &count);

	for (size_t i = 0; i < count; i++) {
		if (handles[i].process != bo->process)
			return true;
	}
	return false;
}

/* A process may have a handle of a BO of which it has none itself, such as host memory that ROCr
 * has imported. */
static void note_named(struct shared_bos *shared)
{
	if (shared->num_handles)
		qsort(shared->handles, shared->num_handles, sizeof(*shared->handles),
		      object_rules_compare_handles);
	for (size_t i = 0; shared->num_handles && i < shared->count; i++) {
		struct shared_bo *bo = &shared->list[i];
		const struct shared_handle by_offset = object_rules_name_offset(bo);
		const struct shared_handle by_inode = object_rules_name_inode(bo);

		bo->is_named = has_handle_of_other(shared, bo, &by_offset) ||
			       has_handle_of_other(shared, bo, &by_inode);
	}
}

/* Calls @act for each run of BOs in @list that are @alike, also for runs of one. */
static void for_each_run(struct shared_bos *shared,
			 bool (*alike)(const struct shared_bo *, const struct shared_bo *),
			 void (*act)(struct shared_bos *shared, struct shared_bo *run,
				     size_t count))
{
	size_t first = 0;

	for (size_t i = 1; i <= shared->count; i++) {
		if (i < shared->count && alike(&shared->list[first], &shared->list[i]))
			continue;
		if (i > first)
			act(shared, &shared->list[first], i - first);
		first = i;
	}
}

static void note_problem(struct shared_bo *run, size_t count, const char *problem)
{
	for (size_t i = 0; i < count; i++)
		run[i].problem = problem;
}

static bool have_several_offsets(const struct shared_bo *run, size_t count)
{
	for (size_t i = 1; i < count; i++) {
		if (!have_one_offset(&run[0], &run[i]))
			return true;
	}
	return false;
}

/* Whether the process is known to have made the BO: the driver's record says so, or on Linux flags
 * that no import has. */
static bool is_made(const struct shared_bo *bo)
{
	if (bo->ipc.is_known)
		return kfd_priv_has_share_handle(&bo->ipc) && !bo->ipc.is_imported;
	return !kfd_bo_looks_imported(bo->alloc_flags);
}

static bool is_import(const struct shared_bo *bo)
{
	return bo->ipc.is_imported || kfd_bo_looks_imported(bo->alloc_flags);
}

/* AMD's out-of-tree driver gives imports the flags of the owner. Where its record names no owner,
 * the first entry with these flags makes the object just as well. */
static const char *find_owner(const struct shared_bo *run, size_t count,
			      const struct shared_bo **ret_owner)
{
	*ret_owner = NULL;
	for (size_t i = 0; i < count; i++) {
		if (is_import(&run[i]))
			continue;
		if (*ret_owner &&
		    (!run[i].ipc.is_known || run[i].alloc_flags != (*ret_owner)->alloc_flags))
			return "several processes look like its owner";
		if (!*ret_owner || is_made(&run[i]))
			*ret_owner = &run[i];
	}
	return NULL;
}

/* The entries of a dma-buf have several offsets. Those on the PCI device of the owner have its
 * offset. */
static const char *find_owner_place(const struct shared_bo *run, size_t count,
				    const struct shared_bo **ret_owner)
{
	const char *problem = find_owner(run, count, ret_owner);

	if (problem)
		return problem;
	if (!*ret_owner)
		return "it is imported on several PCI devices, and its owner is not in the dump";
	for (size_t i = 0; i < count; i++) {
		if (run[i].device == (*ret_owner)->device && run[i].offset != (*ret_owner)->offset)
			return "its dma-buf is also that of another BO";
	}
	return NULL;
}

/* The import of a buffer on another PCI device is an object of the kernel with an offset of its
 * own, and with the dma-buf of the buffer (amdgpu_gem_prime_import() in amdgpu_dma_buf.c, Linux
 * 6.12). Up to Linux 6.7 there are no such imports, and each export has a dma-buf of its own. */
static void set_owner_place(struct shared_bos *shared, struct shared_bo *run, size_t count)
{
	const struct shared_bo *owner;
	const char *problem;

	(void)shared;
	if (!have_several_offsets(run, count))
		return;
	problem = find_owner_place(run, count, &owner);
	note_problem(run, count, problem);
	for (size_t i = 0; !problem && i < count; i++) {
		run[i].owner_device = owner->device;
		run[i].owner_offset = owner->offset;
	}
}

/* The dma-bufs of one offset are one dma-buf, or lead to no other offset. */
static void check_owner_places(struct shared_bos *shared, struct shared_bo *run, size_t count)
{
	(void)shared;
	for (size_t i = 1; i < count; i++) {
		if (!have_one_owner_place(&run[0], &run[i]))
			note_problem(run, count, "its entries have different dma-bufs");
	}
}

/* Is @index the first of its kind? */
static bool is_first(const struct shared_bo *run, size_t index,
		     bool (*alike)(const struct shared_bo *, const struct shared_bo *))
{
	for (size_t i = 0; i < index; i++) {
		if (alike(&run[i], &run[index]))
			return false;
	}
	return true;
}

static uint64_t count_handles(const struct shared_bos *shared, const struct shared_handle *wanted)
{
	size_t count = 0;

	if (shared->num_handles)
		(void)find_handles(shared, wanted, &count);
	return count;
}

/* The references of render files to the dma-buf of a run. */
static uint64_t count_files(const struct shared_bos *shared, const struct shared_bo *run,
			    size_t count)
{
	struct shared_handle wanted = object_rules_name_inode(run);
	uint64_t files = IMPORT_REFERENCES * count_handles(shared, &wanted);

	for (size_t i = 0; i < count; i++) {
		wanted = object_rules_name_offset(&run[i]);
		files += is_first(run, i, have_one_offset) ? count_handles(shared, &wanted) : 0;
	}
	return files;
}

/* When the last process of a run was added, all processes of the run had exported their BOs. */
static struct dmabuf_holders list_holders(const struct shared_bos *shared,
					  const struct shared_bo *run, size_t count)
{
	const struct shared_bo *last = &run[count - 1];
	struct dmabuf_holders holders = { .references = last->references,
					  .bos = count,
					  .descriptors = last->descriptors,
					  .files = count_files(shared, run, count) };

	for (size_t i = 0; i < count; i++) {
		holders.bos +=
			kfd_priv_has_share_handle(&run[i].ipc) && is_first(run, i, have_one_name);
		holders.descriptors += run[i].process >= last->first_open;
		holders.other_offsets += i && is_first(run, i, have_one_offset);
		holders.attachments += run[i].attachments;
	}
	return holders;
}

/* An owner whose importers are outside the dump may also be held by something else, so this alone
 * is worth a warning only. A share handle without its owner is of a process outside the dump,
 * unless each reference is known. */
static void check_holders(struct shared_bos *shared, struct shared_bo *run, size_t count)
{
	struct dmabuf_holders holders = list_holders(shared, run, count);
	bool has_owner = false, has_import = false;

	for (size_t i = 0; i < count; i++) {
		has_owner |= is_made(&run[i]);
		has_import |= run[i].ipc.is_imported;
	}
	if (has_import && !has_owner)
		holders.attachments = 0;
	for (size_t i = 0; i < count; i++)
		run[i].has_no_other =
			dmabuf_holders_are_known(&holders) && dmabuf_holders_are_counted(&holders);
	if (dmabuf_holders_are_known(&holders))
		return;
	for (size_t i = 0; i < count; i++) {
		run[i].has_external_holder = true;
		run[i].outside = !has_owner;
		if (run[i].outside)
			run[i].problem =
				is_import(&run[i])
					? "its dma-buf has more holders than the dump knows"
					: "its dma-buf has more holders than the dump knows, and the driver does not report the owner";
	}
}

static const char *find_problem(const struct shared_bo *run, size_t count,
				const struct shared_bo **ret_owner)
{
	const char *problem;

	for (size_t i = 0; i < count; i++) {
		if (run[i].problem)
			return run[i].problem;
		if (run[i].size != run[0].size)
			return "its sizes differ";
	}
	problem = find_owner(run, count, ret_owner);
	if (!problem && !*ret_owner && !run[0].has_no_other)
		problem = "its owner is not in the dump, or cannot be told from the others";
	/* The owner has freed it, or looks like the others. */
	if (!*ret_owner)
		*ret_owner = &run[0];
	return problem;
}

/* Whether RESTORE shares the object: the first process that it restores makes it on its GPU, and
 * the others import it. A process may have it by a dma-buf, and so without the handle, or on
 * another GPU. The restore compares their dma-bufs. */
static bool is_shared_by_handle(const struct shared_bo *run, size_t count)
{
	for (size_t i = 1; i < count; i++) {
		if (!have_one_name(&run[0], &run[i]) || run[i].gpu_id != run[0].gpu_id)
			return false;
	}
	return count > 1 && kfd_priv_has_share_handle(&run[0].ipc);
}

static void share_object(struct shared_bos *shared, struct shared_bo *run, size_t count)
{
	const struct shared_bo *owner;
	const char *problem;
	bool by_share_handle;

	if (count == 1 && !run->is_open && !run->is_named &&
	    (run->has_no_other || !run->ipc.is_imported)) {
		run->recreated = run->has_no_other && kfd_bo_looks_imported(run->alloc_flags);
		return;
	}
	problem = find_problem(run, count, &owner);
	if (!problem && shared->num_objects == IMAGE_OBJECTS_MAX)
		problem = "too many others are";
	note_problem(run, count, problem);
	if (problem)
		return;
	shared->num_objects++;
	by_share_handle = is_shared_by_handle(run, count);
	for (size_t i = 0; i < count; i++) {
		run[i].by_share_handle = by_share_handle;
		run[i].object = shared->num_objects;
		run[i].owner = owner->process;
		run[i].imported = &run[i] != owner;
		run[i].on_other_device = run[i].device != owner->device;
		run[i].recreated = (!run[i].imported || by_share_handle) &&
				   kfd_bo_looks_imported(owner->alloc_flags);
	}
}

/* Until set_owner_place() finds another one. */
static void set_own_places(struct shared_bos *shared)
{
	for (size_t i = 0; i < shared->count; i++) {
		shared->list[i].owner_device = shared->list[i].device;
		shared->list[i].owner_offset = shared->list[i].offset;
	}
}

static void sort(struct shared_bos *shared, int (*compare)(const void *, const void *))
{
	if (shared->count)
		qsort(shared->list, shared->count, sizeof(*shared->list), compare);
}

void object_rules_apply(struct shared_bos *shared)
{
	set_own_places(shared);
	note_named(shared);
	sort(shared, compare_inodes);
	for_each_run(shared, have_one_inode, set_owner_place);
	for_each_run(shared, have_one_inode, check_holders);
	sort(shared, compare_offsets);
	for_each_run(shared, have_one_offset, check_owner_places);
	sort(shared, compare_owner_places);
	for_each_run(shared, have_one_owner_place, share_object);
	sort(shared, object_rules_compare);
}
