// SPDX-License-Identifier: GPL-2.0-only
/* Sorts BOs by mmap offset, by inode and by address, since a process may have a hundred thousand
 * BOs and as many mappings. */
#include "preflight/bo_index.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "amdgpu_plugin_topology.h"
#include "amdgpu_plugin_util.h"
#include "kernel/kfd.h"
#include "session/dump_session.h"

const struct topology_node *bo_index_gpu_of(const struct dumped_process *process,
					    uint32_t user_gpu_id)
{
	const struct kfd_device_bucket *device =
		kfd_state_find_device(&process->state, user_gpu_id);

	return device ? topology_find_actual(&process->session->topology, device->actual_gpu_id)
		      : NULL;
}

static int compare(const void *a, const void *b)
{
	const struct bo_index_entry *one = a, *other = b;

	return ORDER(one->device, other->device) ?: ORDER(one->offset, other->offset)
						 ?: ORDER(one->index, other->index);
}

static int compare_inodes(const void *a, const void *b)
{
	const struct bo_index_entry *one = *(const struct bo_index_entry *const *)a;
	const struct bo_index_entry *other = *(const struct bo_index_entry *const *)b;

	return ORDER(one->inode, other->inode) ?: ORDER(one->index, other->index);
}

static int compare_addresses(const void *a, const void *b)
{
	const struct bo_index_entry *one = *(const struct bo_index_entry *const *)a;
	const struct bo_index_entry *other = *(const struct bo_index_entry *const *)b;

	return ORDER(one->addr, other->addr) ?: ORDER(one->index, other->index);
}

static int add_entry(struct bo_index *index, const struct kfd_bo_bucket *bo, uint32_t bo_number,
		     uint64_t device)
{
	struct stat file;

	if (fstat((int)bo->dmabuf_fd, &file) < 0)
		return -errno;
	index->entries[index->count++] = (struct bo_index_entry){
		.device = device,
		.index = bo_number,
		.offset = bo->offset,
		.size = bo->size,
		.inode = file.st_ino,
		.addr = bo->addr,
	};
	return 0;
}

static int add_all(struct dumped_process *process)
{
	int ret = 0;

	for (uint32_t i = 0; !ret && i < process->state.num_bos; i++) {
		const struct kfd_bo_bucket *bo = &process->state.bos[i];
		const struct topology_node *gpu = bo_index_gpu_of(process, bo->gpu_id);

		if (gpu && bo->alloc_flags & KFD_BO_WITH_CONTENTS)
			ret = add_entry(&process->bo_index, bo, i, topology_pci_device(gpu));
	}
	return ret;
}

static void sort_all(struct bo_index *index)
{
	qsort(index->entries, index->count, sizeof(*index->entries), compare);
	for (size_t i = 0; i < index->count; i++)
		index->by_inode[i] = index->by_addr[i] = &index->entries[i];
	qsort(index->by_inode, index->count, sizeof(*index->by_inode), compare_inodes);
	qsort(index->by_addr, index->count, sizeof(*index->by_addr), compare_addresses);
}

int bo_index_init(struct dumped_process *process)
{
	const size_t room = (size_t)process->state.num_bos + 1;
	struct bo_index *index = &process->bo_index;
	int ret;

	bo_index_done(index);
	index->entries = calloc(room, sizeof(*index->entries));
	index->by_inode = calloc(room, sizeof(*index->by_inode));
	index->by_addr = calloc(room, sizeof(*index->by_addr));
	ret = index->entries && index->by_inode && index->by_addr ? add_all(process) : -ENOMEM;
	if (!ret)
		sort_all(index);
	return ret;
}

void bo_index_done(struct bo_index *index)
{
	free(index->entries);
	free(index->by_inode);
	free(index->by_addr);
	*index = (struct bo_index){ 0 };
}

/* Entries overlap only if they are one object. So the entry is the last that begins no later than
 * @offset, or an equal entry before that. */
const struct bo_index_entry *bo_index_find_offset(const struct bo_index *index, uint64_t device,
						  uint64_t offset)
{
	const struct bo_index_entry wanted = { .device = device,
					       .index = UINT32_MAX,
					       .offset = offset };
	const struct bo_index_entry *at = index->entries;
	size_t first = lower_bound(&wanted, at, index->count, sizeof(*at), compare);

	if (!first || at[first - 1].device != device ||
	    offset - at[first - 1].offset >= at[first - 1].size)
		return NULL;
	first--;
	while (first && at[first - 1].device == device && at[first - 1].offset == at[first].offset)
		first--;
	return &at[first];
}

const struct bo_index_entry *bo_index_find_inode(const struct bo_index *index, uint64_t inode)
{
	const struct bo_index_entry wanted = { .inode = inode }, *key = &wanted;
	size_t first =
		lower_bound(&key, index->by_inode, index->count, sizeof(key), compare_inodes);

	return first < index->count && index->by_inode[first]->inode == inode
		       ? index->by_inode[first]
		       : NULL;
}

const struct bo_index_entry *const *bo_index_find_address(const struct bo_index *index,
							  uint64_t addr, size_t *ret_count)
{
	const struct bo_index_entry wanted = { .addr = addr }, *key = &wanted;
	size_t first, end;

	first = lower_bound(&key, index->by_addr, index->count, sizeof(key), compare_addresses);
	end = first;
	while (end < index->count && index->by_addr[end]->addr == addr)
		end++;
	*ret_count = end - first;
	return &index->by_addr[first];
}
