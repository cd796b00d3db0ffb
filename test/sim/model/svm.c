// SPDX-License-Identifier: GPL-2.0-only
/* SVM ranges: their addresses and attributes, and the memory that queues reach through them.
 * Nothing is migrated: the pages are those of the process. */
#include "process.h"

#define UNDEFINED           0xffffffffu
#define DEFAULT_FLAGS       0x3u /* host access, coherent */
#define DEFAULT_GRANULARITY 9u
#define FLAG_GPU_READ_ONLY  8u
#define WINDOW_BYTES        (1ull << 47)

static struct sim_svm_range *range_new(u64 first, u64 pages)
{
	struct sim_svm_range *range = calloc(1, sizeof(*range));

	if (!range)
		return NULL;
	range->first = first;
	range->pages = pages;
	range->preferred_loc = UNDEFINED;
	range->prefetch_loc = UNDEFINED;
	range->flags = DEFAULT_FLAGS;
	range->granularity = DEFAULT_GRANULARITY;
	memset(range->access, KFD_IOCTL_SVM_ATTR_NO_ACCESS, sizeof(range->access));
	return range;
}

/* Not an object of its own: it has no reference count and no charge, and borrows the address space,
 * which outlives the last run of a queue. */
void sim_svm_init(struct sim_pdd *pdd)
{
	pdd->svm_window = (struct sim_bo){
		.gpu = pdd->gpu,
		.kind = SIM_BO_USERPTR,
		.size = WINDOW_BYTES,
	};
}

int sim_svm_reach(void *arg, u64 addr, u64 size, bool write, struct sim_reach *ret_reach)
{
	struct sim_pdd *pdd = arg;
	struct sim_process *process = pdd->process;
	u64 page = addr / SIM_PAGE_SIZE;
	struct sim_svm_range *range;
	int ret = -EFAULT;

	sim_lock(&process->svm_lock);
	for (range = process->svm; range; range = range->next)
		if (range->first <= page && page < range->first + range->pages)
			break;
	if (range && range->access[pdd->index] != KFD_IOCTL_SVM_ATTR_NO_ACCESS) {
		ret = write && range->flags & FLAG_GPU_READ_ONLY ? -EACCES : 0;
		ret_reach->bytes = min(size, (range->first + range->pages) * SIM_PAGE_SIZE - addr);
	}
	sim_unlock(&process->svm_lock);
	ret_reach->bo = &pdd->svm_window;
	ret_reach->offset = addr;
	return ret;
}

static void free_list(struct sim_svm_range *range)
{
	while (range) {
		struct sim_svm_range *next = range->next;

		free(range);
		range = next;
	}
}

void sim_svm_done(struct sim_process *process)
{
	free_list(process->svm);
	free_list(process->svm_pending);
	process->svm = NULL;
	process->svm_pending = NULL;
}

u32 sim_svm_count(struct sim_process *process)
{
	struct sim_svm_range *range;
	u32 count = 0;

	sim_lock(&process->svm_lock);
	for (range = process->svm; range; range = range->next)
		count++;
	sim_unlock(&process->svm_lock);
	return count;
}

bool sim_svm_overlaps(struct sim_process *process, u64 addr, u64 size)
{
	u64 first = addr / SIM_PAGE_SIZE, end = (addr + size + SIM_PAGE_SIZE - 1) / SIM_PAGE_SIZE;
	struct sim_svm_range *range;
	bool found = false;

	sim_lock(&process->svm_lock);
	for (range = process->svm; range && !found; range = range->next)
		found = range->first < end && first < range->first + range->pages;
	sim_unlock(&process->svm_lock);
	return found;
}

bool sim_svm_covers(struct sim_process *process, struct sim_pdd *pdd, u64 addr, u64 size)
{
	u64 at = addr / SIM_PAGE_SIZE, end = (addr + size + SIM_PAGE_SIZE - 1) / SIM_PAGE_SIZE;
	struct sim_svm_range *range;

	sim_lock(&process->svm_lock);
	for (range = process->svm; range && at < end; range = range->next)
		if (range->first <= at && at < range->first + range->pages &&
		    range->access[pdd->index] != KFD_IOCTL_SVM_ATTR_NO_ACCESS)
			at = range->first + range->pages;
	sim_unlock(&process->svm_lock);
	return at >= end;
}

/* Splits a range at @page, if @page is inside one. */
static int split_at(struct sim_process *process, u64 page)
{
	struct sim_svm_range *range, *tail;

	for (range = process->svm; range; range = range->next) {
		if (page <= range->first || page >= range->first + range->pages)
			continue;
		tail = range_new(page, range->first + range->pages - page);
		if (!tail)
			return -ENOMEM;
		tail->preferred_loc = range->preferred_loc;
		tail->prefetch_loc = range->prefetch_loc;
		tail->flags = range->flags;
		tail->granularity = range->granularity;
		memcpy(tail->access, range->access, sizeof(tail->access));
		tail->next = range->next;
		range->next = tail;
		range->pages = page - range->first;
		return 0;
	}
	return 0;
}

/* Fills the holes of [first, end) with new ranges. */
static int fill_holes(struct sim_process *process, u64 first, u64 end)
{
	struct sim_svm_range **link = &process->svm;

	while (first < end) {
		struct sim_svm_range *range = *link, *filler;
		u64 stop;

		if (range && range->first <= first) {
			first = max(first, range->first + range->pages);
			link = &range->next;
			continue;
		}
		stop = range ? min(end, range->first) : end;
		filler = range_new(first, stop - first);
		if (!filler)
			return -ENOMEM;
		filler->next = range;
		*link = filler;
		link = &filler->next;
		first = stop;
	}
	return 0;
}

static void apply(struct sim_process *process, struct sim_svm_range *range,
		  const struct kfd_ioctl_svm_attribute *attr)
{
	struct sim_pdd *pdd;

	switch (attr->type) {
	case KFD_IOCTL_SVM_ATTR_PREFERRED_LOC:
		range->preferred_loc = attr->value;
		break;
	case KFD_IOCTL_SVM_ATTR_PREFETCH_LOC:
		range->prefetch_loc = attr->value;
		break;
	case KFD_IOCTL_SVM_ATTR_SET_FLAGS:
		range->flags |= attr->value;
		break;
	case KFD_IOCTL_SVM_ATTR_CLR_FLAGS:
		range->flags &= ~attr->value;
		break;
	case KFD_IOCTL_SVM_ATTR_GRANULARITY:
		range->granularity = min(attr->value, 63u);
		break;
	default:
		pdd = sim_process_pdd(process, attr->value);
		if (pdd)
			range->access[pdd->index] = (u8)attr->type;
	}
}

static int check_attr(struct sim_process *process, const struct kfd_ioctl_svm_attribute *attr)
{
	switch (attr->type) {
	case KFD_IOCTL_SVM_ATTR_PREFERRED_LOC:
	case KFD_IOCTL_SVM_ATTR_PREFETCH_LOC:
		if (attr->value == 0 || attr->value == UNDEFINED)
			return 0;
		return sim_process_pdd(process, attr->value) ? 0 : -EINVAL;
	case KFD_IOCTL_SVM_ATTR_ACCESS:
	case KFD_IOCTL_SVM_ATTR_ACCESS_IN_PLACE:
	case KFD_IOCTL_SVM_ATTR_NO_ACCESS:
		return sim_process_pdd(process, attr->value) ? 0 : -EINVAL;
	case KFD_IOCTL_SVM_ATTR_SET_FLAGS:
	case KFD_IOCTL_SVM_ATTR_CLR_FLAGS:
	case KFD_IOCTL_SVM_ATTR_GRANULARITY:
		return 0;
	default:
		return -EINVAL;
	}
}

int sim_svm_set(struct sim_process *process, u64 addr, u64 size,
		const struct kfd_ioctl_svm_attribute *attrs, u32 count)
{
	u64 first = addr / SIM_PAGE_SIZE, end = (addr + size) / SIM_PAGE_SIZE;
	struct sim_svm_range *range;
	u32 i;
	int ret;

	for (i = 0; i < count; i++)
		if (check_attr(process, &attrs[i]) < 0)
			return -EINVAL;
	/* the kernel requires mappings that its page fault handler can use */
	ret = sim_os_mm_check(addr, size);
	if (ret < 0)
		return ret;
	sim_lock(&process->svm_lock);
	ret = split_at(process, first);
	if (ret == 0)
		ret = split_at(process, end);
	if (ret == 0)
		ret = fill_holes(process, first, end);
	for (range = process->svm; ret == 0 && range; range = range->next)
		for (i = 0; range->first >= first && range->first < end && i < count; i++)
			apply(process, range, &attrs[i]);
	sim_unlock(&process->svm_lock);
	return ret;
}

void sim_svm_unmapped(struct sim_process *process, u64 start, u64 end)
{
	u64 first = start / SIM_PAGE_SIZE, stop = end / SIM_PAGE_SIZE;
	struct sim_svm_range **link;

	if (!process->svm)
		return;
	sim_lock(&process->svm_lock);
	(void)split_at(process, first);
	(void)split_at(process, stop);
	link = &process->svm;
	while (*link) {
		struct sim_svm_range *range = *link;

		if (range->first < first || range->first >= stop) {
			link = &range->next;
			continue;
		}
		*link = range->next;
		free(range);
	}
	sim_unlock(&process->svm_lock);
}

SIM_KFD_HANDLER(sim_kfd_svm)
{
	struct kfd_ioctl_svm_args *io = args;

	if (SIM_KNOB(process->sim, no_svm))
		return -EPERM;
	/* kfd_chardev.c: kfd_ioctl_svm() (Linux 7.3) */
	if (process->is_context)
		return -EOPNOTSUPP;
	if (!io->start_addr || !io->size || (io->start_addr | io->size) % SIM_PAGE_SIZE)
		return -EINVAL;
	if (io->nattr > (size - sizeof(*io)) / sizeof(io->attrs[0]))
		return -EINVAL;
	return io->op == KFD_IOCTL_SVM_OP_SET_ATTR
		       ? sim_svm_set(process, io->start_addr, io->size, io->attrs, io->nattr)
		       : -EINVAL;
}
