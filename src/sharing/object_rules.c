// SPDX-License-Identifier: GPL-2.0-only
/* Finds the BOs of a dump that are one object, and chooses the owner of each object. */
#include "sharing/object_rules.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "amdgpu_plugin_util.h"
#include "image/image.h"
#include "kernel/kfd.h"
#include "sharing/dmabufs.h"
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

/* 128 random bits. */
static bool have_one_name(const struct shared_bo *one, const struct shared_bo *other)
{
	return !memcmp(one->ipc.handle, other->ipc.handle, sizeof(one->ipc.handle));
}

/* Of names, and of structs that begin with one. */
static int compare_names(const void *a, const void *b)
{
	const struct bo_name *one = a, *other = b;

	return ORDER(one->is_inode, other->is_inode) ?: ORDER(one->device, other->device)
						     ?: ORDER(one->number, other->number);
}

/* The two names of @bo. */
static struct bo_name name_offset(const struct shared_bo *bo)
{
	return (struct bo_name){ .device = bo->device, .number = bo->offset };
}

static struct bo_name name_inode(const struct shared_bo *bo)
{
	return (struct bo_name){ .is_inode = true, .number = bo->inode };
}

struct named_object {
	struct bo_name name;
	const struct shared_bo *bo;
};

static struct bo_name name_owner(const struct shared_bo *bo)
{
	return bo->owner_name;
}

static bool have_one_offset(const struct shared_bo *one, const struct shared_bo *other)
{
	return one->device == other->device && one->offset == other->offset;
}

/* The handles that name what @wanted does: *@ret_count of the list, from the one that is returned.
 */
static const struct shared_handle *find_handles(const struct shared_bos *shared,
						const struct bo_name *wanted, size_t *ret_count)
{
	size_t first = lower_bound(wanted, shared->handles, shared->num_handles,
				   sizeof(*shared->handles), compare_names);
	size_t end = first;

	while (end < shared->num_handles && !compare_names(&shared->handles[end].name, wanted))
		end++;
	*ret_count = end - first;
	return &shared->handles[first];
}

static bool has_handle_of_other(const struct shared_bos *shared, const struct shared_bo *bo,
				const struct bo_name *wanted)
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
		      compare_names);
	for (size_t i = 0; shared->num_handles && i < shared->count; i++) {
		struct shared_bo *bo = &shared->list[i];
		const struct bo_name by_offset = name_offset(bo);
		const struct bo_name by_inode = name_inode(bo);

		bo->is_named = has_handle_of_other(shared, bo, &by_offset) ||
			       has_handle_of_other(shared, bo, &by_inode);
	}
}

static int compare_groups(const void *a, const void *b)
{
	const struct shared_bo *one = a, *other = b;

	return compare_names(&one->group, &other->group) ?: object_rules_compare(one, other);
}

static void sort(struct shared_bos *shared, int (*compare)(const void *, const void *))
{
	if (shared->count)
		qsort(shared->list, shared->count, sizeof(*shared->list), compare);
}

/* Groups the BOs that have one @name: they follow each other in the list, in their old order. */
static void group(struct shared_bos *shared, struct bo_name (*name)(const struct shared_bo *bo))
{
	for (size_t i = 0; i < shared->count; i++)
		shared->list[i].group = name(&shared->list[i]);
	sort(shared, compare_groups);
}

/* Calls @act for each group, also for those of one BO. */
static void for_each_group(struct shared_bos *shared,
			   void (*act)(struct shared_bos *shared, struct shared_bo *run,
				       size_t count))
{
	size_t first = 0;

	for (size_t i = 1; i <= shared->count; i++) {
		if (i < shared->count &&
		    !compare_names(&shared->list[first].group, &shared->list[i].group))
			continue;
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
static const char *find_owner_of_inode(const struct shared_bo *run, size_t count,
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
static void set_owner_name(struct shared_bos *shared, struct shared_bo *run, size_t count)
{
	const struct shared_bo *owner;
	const char *problem;

	(void)shared;
	if (!have_several_offsets(run, count))
		return;
	problem = find_owner_of_inode(run, count, &owner);
	note_problem(run, count, problem);
	for (size_t i = 0; !problem && i < count; i++)
		run[i].owner_name = name_offset(owner);
}

/* The dma-bufs of one offset are one dma-buf, or lead to no other offset. */
static void check_owner_names(struct shared_bos *shared, struct shared_bo *run, size_t count)
{
	(void)shared;
	for (size_t i = 1; i < count; i++) {
		if (compare_names(&run[0].owner_name, &run[i].owner_name))
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

static uint64_t count_handles(const struct shared_bos *shared, const struct bo_name *wanted)
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
	struct bo_name wanted = name_inode(run);
	uint64_t files = IMPORT_REFERENCES * count_handles(shared, &wanted);

	for (size_t i = 0; i < count; i++) {
		wanted = name_offset(&run[i]);
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
		run[i].has_no_other = dmabufs_are_known(&holders) && dmabufs_are_counted(&holders);
	if (dmabufs_are_known(&holders))
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

void object_rules_apply(struct shared_bos *shared)
{
	for (size_t i = 0; i < shared->count; i++)
		shared->list[i].owner_name = name_offset(&shared->list[i]);
	note_named(shared);
	group(shared, name_inode);
	for_each_group(shared, set_owner_name);
	for_each_group(shared, check_holders);
	group(shared, name_offset);
	for_each_group(shared, check_owner_names);
	group(shared, name_owner);
	for_each_group(shared, share_object);
	sort(shared, object_rules_compare);
}

static int compare_objects(const void *a, const void *b)
{
	const struct named_object *one = a, *other = b;

	return compare_names(&one->name, &other->name) ?: ORDER(one->bo, other->bo);
}

int object_rules_name_objects(struct shared_bos *shared)
{
	struct named_object *objects = calloc(2 * shared->count + 1, sizeof(*objects));
	size_t count = 0;

	if (!objects)
		return -ENOMEM;
	for (size_t i = 0; i < shared->count; i++) {
		const struct shared_bo *bo = &shared->list[i];

		if (!bo->object || bo->problem)
			continue;
		objects[count++] = (struct named_object){ name_offset(bo), bo };
		objects[count++] = (struct named_object){ name_inode(bo), bo };
	}
	qsort(objects, count, sizeof(*objects), compare_objects);
	shared->objects = objects;
	shared->num_named = count;
	return 0;
}

const struct shared_bo *object_rules_find(const struct shared_bos *shared,
					  const struct bo_name *name)
{
	const struct named_object *at = shared->objects;
	size_t first = lower_bound(name, at, shared->num_named, sizeof(*at), compare_names);

	return first < shared->num_named && !compare_names(&at[first].name, name) ? at[first].bo
										  : NULL;
}
