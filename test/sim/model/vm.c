// SPDX-License-Identifier: GPL-2.0-only
/* A sorted array of mappings, and the translation of each access through it. gem.c and kfd_memory.c
 * check the flags and ranges of a client. */
#include "vm.h"
#include "abi_drm.h"

void sim_vm_init(struct sim_vm *vm, struct sim *sim)
{
	memset(vm, 0, sizeof(*vm));
	vm->sim = sim;
	sim_lock_init(&vm->lock);
}

static void count_of_bo(const struct sim_mapping *mapping, u32 change)
{
	if (mapping->origin == SIM_VM_GEM)
		(void)__atomic_add_fetch(&mapping->bo->gem_mappings, change, __ATOMIC_RELAXED);
}

static void mapping_free(struct sim_vm *vm, struct sim_mapping *mapping)
{
	count_of_bo(mapping, (u32)-1);
	sim_os_bo_put(mapping->bo);
	free(mapping);
	sim_count(vm->sim, SIM_COUNT_MAPPINGS, -1);
}

void sim_vm_done(struct sim_vm *vm)
{
	u32 i;

	for (i = 0; i < vm->count; i++)
		mapping_free(vm, vm->mappings[i]);
	free(vm->mappings);
	vm->mappings = NULL;
	vm->count = 0;
}

/* Index of the first mapping that ends above @addr. */
static u32 find_index(const struct sim_vm *vm, u64 addr)
{
	u32 low = 0, high = vm->count;

	while (low < high) {
		u32 middle = low + (high - low) / 2;

		if (vm->mappings[middle]->end <= addr)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static int make_room(struct sim_vm *vm)
{
	u32 capacity = vm->capacity ? vm->capacity * 2 : 64;
	struct sim_mapping **mappings;

	if (vm->count < vm->capacity)
		return 0;
	mappings = realloc(vm->mappings, capacity * sizeof(*mappings));
	if (!mappings)
		return -ENOMEM;
	vm->mappings = mappings;
	vm->capacity = capacity;
	return 0;
}

static int insert(struct sim_vm *vm, const struct sim_mapping *wanted)
{
	u32 index = find_index(vm, wanted->start);
	struct sim_mapping *mapping;

	if (index < vm->count && vm->mappings[index]->start < wanted->end)
		return -EINVAL;
	if (make_room(vm) < 0)
		return -ENOMEM;
	mapping = calloc(1, sizeof(*mapping));
	if (!mapping)
		return -ENOMEM;
	*mapping = *wanted;
	sim_os_bo_get(mapping->bo);
	count_of_bo(mapping, 1);
	memmove(vm->mappings + index + 1, vm->mappings + index,
		(vm->count - index) * sizeof(*vm->mappings));
	vm->mappings[index] = mapping;
	vm->count++;
	sim_count(vm->sim, SIM_COUNT_MAPPINGS, 1);
	return 0;
}

/* Takes the mapping out of the array. The caller frees it without the lock. */
static struct sim_mapping *take(struct sim_vm *vm, u32 index)
{
	struct sim_mapping *mapping = vm->mappings[index];

	vm->count--;
	memmove(vm->mappings + index, vm->mappings + index + 1,
		(vm->count - index) * sizeof(*vm->mappings));
	return mapping;
}

int sim_vm_map(struct sim_vm *vm, const struct sim_mapping *mapping)
{
	int ret;

	sim_lock(&vm->lock);
	ret = insert(vm, mapping);
	sim_unlock(&vm->lock);
	/* amdgpu_dma_buf.c: amdgpu_dma_buf_map() (6.1 to 7.3), for a peer */
	if (ret == 0 && mapping->bo->origin &&
	    mapping->bo->origin->domains & AMDGPU_GEM_DOMAIN_VRAM)
		sim_bo_touch(mapping->bo->origin);
	return ret;
}

/* amdgpu_vm.c: amdgpu_vm_bo_unmap() (6.12, 7.3) does not ask whether GEM_VA or KFD has made it */
int sim_vm_unmap(struct sim_vm *vm, struct sim_bo *bo, u64 start, enum sim_vm_origin *ret_origin)
{
	struct sim_mapping *mapping = NULL;
	u32 index;

	sim_lock(&vm->lock);
	index = find_index(vm, start);
	if (index < vm->count && vm->mappings[index]->start == start &&
	    vm->mappings[index]->bo == bo)
		mapping = take(vm, index);
	sim_unlock(&vm->lock);
	if (!mapping)
		return -ENOENT;
	*ret_origin = mapping->origin;
	mapping_free(vm, mapping);
	return 0;
}

/* Adds again the parts of a removed mapping that are outside of [start, end). */
static int keep_rest(struct sim_vm *vm, const struct sim_mapping *old, u64 start, u64 end)
{
	struct sim_mapping rest = *old;
	int ret = 0;

	if (old->start < start) {
		rest.end = start;
		ret = insert(vm, &rest);
	}
	if (ret == 0 && old->end > end) {
		rest = *old;
		rest.start = end;
		rest.offset += end - old->start;
		ret = insert(vm, &rest);
	}
	return ret;
}

int sim_vm_clear(struct sim_vm *vm, u64 start, u64 end)
{
	int ret = 0;

	while (ret == 0) {
		struct sim_mapping *mapping = NULL;
		u32 index;

		sim_lock(&vm->lock);
		index = find_index(vm, start);
		if (index < vm->count && vm->mappings[index]->start < end) {
			mapping = take(vm, index);
			ret = keep_rest(vm, mapping, start, end);
		}
		sim_unlock(&vm->lock);
		if (!mapping)
			break;
		mapping_free(vm, mapping);
	}
	return ret;
}

static struct sim_mapping *take_of_bo(struct sim_vm *vm, const struct sim_bo *bo)
{
	struct sim_mapping *mapping = NULL;
	u32 i;

	/* usually there is none, and the search takes long */
	if (!__atomic_load_n(&bo->gem_mappings, __ATOMIC_RELAXED))
		return NULL;
	sim_lock(&vm->lock);
	for (i = 0; i < vm->count && !mapping; i++)
		if (vm->mappings[i]->bo == bo && vm->mappings[i]->origin == SIM_VM_GEM)
			mapping = take(vm, i);
	sim_unlock(&vm->lock);
	return mapping;
}

void sim_vm_unmap_bo(struct sim_vm *vm, struct sim_bo *bo)
{
	struct sim_mapping *mapping;

	while ((mapping = take_of_bo(vm, bo)))
		mapping_free(vm, mapping);
}

int sim_vm_find(struct sim_vm *vm, u64 addr, struct sim_mapping *ret_mapping)
{
	int ret = -EFAULT;
	u32 index;

	sim_lock(&vm->lock);
	index = find_index(vm, addr);
	if (index < vm->count && vm->mappings[index]->start <= addr) {
		*ret_mapping = *vm->mappings[index];
		sim_os_bo_get(ret_mapping->bo);
		ret = 0;
	}
	sim_unlock(&vm->lock);
	return ret;
}

u32 sim_vm_list(struct sim_vm *vm, const struct sim_bo *bo, struct sim_mapping *list, u32 capacity)
{
	u32 found = 0, i;

	sim_lock(&vm->lock);
	for (i = 0; i < vm->count; i++) {
		if (vm->mappings[i]->bo != bo)
			continue;
		if (found < capacity)
			list[found] = *vm->mappings[i];
		found++;
	}
	sim_unlock(&vm->lock);
	return found;
}

static bool is_listed(const struct sim_client *client, const struct sim_bo *bo)
{
	u32 low = 0, high = client->num_listed;

	if (!client->listed)
		return true;
	while (low < high) {
		u32 middle = low + (high - low) / 2;

		if (client->listed[middle] == bo)
			return true;
		if (client->listed[middle] < bo)
			low = middle + 1;
		else
			high = middle;
	}
	return false;
}

/* The memory of an access: the buffer, the offset in it and the number of bytes. */
struct target {
	struct sim_bo *bo;
	u64 offset, bytes;
	bool borrowed;
};

static void target_put(struct target *target)
{
	if (!target->borrowed)
		sim_os_bo_put(target->bo);
}

static void report_not_allowed(const struct sim_client *client, u64 addr, bool write)
{
	sim_violation(client->sim, "%s: address 0x%llx may not be %s", client->who, addr,
		      write ? "written" : "read");
}

static int translate_unmapped(const struct sim_client *client, u64 addr, u64 size, bool write,
			      struct target *ret_target)
{
	struct sim_reach reach;
	int ret = -EFAULT;

	if (client->reach)
		ret = client->reach(client->reach_arg, addr, size, write, &reach);
	if (ret == -EACCES) {
		report_not_allowed(client, addr, write);
		return -EFAULT;
	}
	if (ret < 0) {
		sim_violation(client->sim,
			      "%s: address 0x%llx is not mapped (%llu"
			      " bytes left)",
			      client->who, addr, size);
		return -EFAULT;
	}
	*ret_target = (struct target){ reach.bo, reach.offset, reach.bytes, .borrowed = true };
	return 0;
}

static int translate(const struct sim_client *client, u64 addr, u64 size, u32 access,
		     struct target *ret_target)
{
	bool write = (access & AMDGPU_VM_PAGE_WRITEABLE) != 0;
	struct sim_mapping mapping;

	if (sim_vm_find(client->vm, addr, &mapping) < 0)
		return translate_unmapped(client, addr, size, write, ret_target);
	if ((mapping.flags & access) != access || mapping.bo->kind == SIM_BO_IO) {
		report_not_allowed(client, addr, write);
		goto refuse;
	}
	if (!is_listed(client, mapping.bo)) {
		sim_violation(client->sim, "%s: the buffer at 0x%llx is not in the BO list",
			      client->who, addr);
		goto refuse;
	}
	ret_target->bo = mapping.bo;
	ret_target->offset = mapping.offset + (addr - mapping.start);
	ret_target->bytes = min(size, mapping.end - addr);
	ret_target->borrowed = false;
	return 0;

refuse:
	sim_os_bo_put(mapping.bo);
	return -EFAULT;
}

static int report_lost_pages(const struct sim_client *client, u64 addr, int ret)
{
	/* a process that is ending makes no fault */
	if (ret < 0 && ret != -ESRCH)
		sim_violation(client->sim, "%s: pages behind address 0x%llx cannot be had (%d)",
			      client->who, addr, ret);
	return ret;
}

/* Reads to @to, or writes from @from. */
static int move(const struct sim_client *client, u64 addr, u8 *to, const u8 *from, u64 size)
{
	const u32 access = to ? AMDGPU_VM_PAGE_READABLE : AMDGPU_VM_PAGE_WRITEABLE;
	u64 done = 0;

	while (done < size) {
		struct target target;
		int ret = translate(client, addr + done, size - done, access, &target);

		if (ret < 0)
			return ret;
		if (to)
			ret = sim_bo_read(target.bo, target.offset, to + done, target.bytes);
		else
			ret = sim_bo_write(target.bo, target.offset, from + done, target.bytes);
		target_put(&target);
		ret = report_lost_pages(client, addr + done, ret);
		if (ret < 0)
			return ret;
		done += target.bytes;
	}
	return 0;
}

int sim_client_read(const struct sim_client *client, u64 addr, void *data, u64 size)
{
	return move(client, addr, data, NULL, size);
}

int sim_client_write(const struct sim_client *client, u64 addr, const void *data, u64 size)
{
	return move(client, addr, NULL, data, size);
}

int sim_client_copy(const struct sim_client *client, u64 dst_addr, u64 src_addr, u64 size)
{
	while (size) {
		struct target src, dst;
		u64 bytes;
		int ret;

		ret = translate(client, src_addr, size, AMDGPU_VM_PAGE_READABLE, &src);
		if (ret < 0)
			return ret;
		ret = translate(client, dst_addr, size, AMDGPU_VM_PAGE_WRITEABLE, &dst);
		if (ret < 0) {
			target_put(&src);
			return ret;
		}
		bytes = min(src.bytes, dst.bytes);
		if (!client->skip_copies)
			ret = sim_bo_copy(dst.bo, dst.offset, src.bo, src.offset, bytes);
		ret = report_lost_pages(client, dst_addr, ret);
		target_put(&src);
		target_put(&dst);
		if (ret < 0)
			return ret;
		src_addr += bytes;
		dst_addr += bytes;
		size -= bytes;
	}
	return 0;
}

/* As sim_bo_exchange(). */
static int exchange(const struct sim_client *client, u64 addr, u32 bytes, u64 *expected,
		    u64 desired)
{
	struct target dst;
	int ret;

	ret = translate(client, addr, bytes, AMDGPU_VM_PAGE_READABLE | AMDGPU_VM_PAGE_WRITEABLE,
			&dst);
	if (ret < 0)
		return ret;
	ret = report_lost_pages(client, addr,
				sim_bo_exchange(dst.bo, dst.offset, bytes, expected, desired));
	target_put(&dst);
	return ret;
}

int sim_client_add(const struct sim_client *client, u64 addr, u32 bytes, u64 value)
{
	u64 seen = 0, before;
	int ret;

	ret = sim_client_read(client, addr, &seen, bytes);
	do {
		before = seen;
		if (ret == 0)
			ret = exchange(client, addr, bytes, &seen, before + value);
	} while (ret == 0 && seen != before);
	return ret;
}
