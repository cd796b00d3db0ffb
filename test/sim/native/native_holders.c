// SPDX-License-Identifier: GPL-2.0-only
/* Counts what holds a dma-buf, for its fdinfo. The library sees where descriptors come from, but
 * not each way in which they go. So a buffer has a list of descriptors that were its dma-buf once,
 * and a count looks at each of them again. */
#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include "native.h"
#include "violation.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool incomplete; /* under the lock: the program may have descriptors that no list has */

static bool is_listed(const struct native_descriptors *list, int fd)
{
	u32 i;

	for (i = 0; i < list->count; i++)
		if (list->numbers[i] == fd)
			return true;
	return false;
}

/* Under the lock, as the next two. */
static void add(struct native_descriptors *list, int fd)
{
	if (is_listed(list, fd))
		return;
	if (list->count == list->room) {
		list->room = list->room ? 2 * list->room : 4;
		list->numbers = realloc(list->numbers, list->room * sizeof(*list->numbers));
		if (!list->numbers)
			abort();
	}
	list->numbers[list->count++] = fd;
}

/* Descriptors of the library itself lie above the program's. They do not count. */
static struct native_bo *find_bo(struct native *native, int fd)
{
	struct native_id id;

	if (fd < 0 || fd >= native_fd_lowest_kept() || native_fd_identify(fd, &id) < 0)
		return NULL;
	return native_bo_by_id(native, &id);
}

static void note(struct native *native, int fd)
{
	struct native_bo *bo = find_bo(native, fd);

	if (!bo)
		return;
	add(&bo->descriptors, fd);
	native_bo_put(bo);
}

void native_holders_note(int fd)
{
	int saved = errno;
	struct native *native = native_peek();

	if (!native)
		return;
	(void)pthread_mutex_lock(&lock);
	note(native, fd);
	(void)pthread_mutex_unlock(&lock);
	errno = saved;
}

void native_holders_forget(void)
{
	(void)pthread_mutex_lock(&lock);
	incomplete = true;
	(void)pthread_mutex_unlock(&lock);
}

static void for_each_descriptor(struct native *native,
				void (*function)(struct native *native, int fd))
{
	DIR *stream = NATIVE_REAL(opendir)("/proc/self/fd");
	struct dirent *entry;

	while (stream && (entry = readdir(stream))) {
		if (entry->d_name[0] != '.')
			function(native, atoi(entry->d_name));
	}
	if (stream)
		(void)closedir(stream);
}

/* Under the lock. Of several dma-bufs of a buffer, descriptors of the others stay listed. */
static u32 count_descriptors(struct native *native, const struct sim_dmabuf *dmabuf)
{
	struct native_descriptors *list = &dmabuf->bo->descriptors;
	struct native_id id;
	u32 count = 0, i = 0;

	if (incomplete)
		for_each_descriptor(native, note);
	incomplete = false;
	while (i < list->count) {
		int fd = list->numbers[i];

		if (native_fd_identify(fd, &id) < 0 || !native_id_equal(&id, &dmabuf->bo->id)) {
			list->numbers[i] = list->numbers[--list->count];
			continue;
		}
		count += native_dmabuf_number(fd) == dmabuf->number;
		i++;
	}
	return count;
}

/* amdgpu_amdkfd_gpuvm.c: kfd_mem_export_dmabuf(), import_obj_create() (6.12): each buffer of KFD
 * holds its dma-buf. */
void sim_os_dmabuf_count_mem(struct sim_dmabuf *dmabuf, int change)
{
	(void)__atomic_add_fetch(&dmabuf->mems, (u32)change, __ATOMIC_RELAXED);
}

static void for_each_mem_of(struct sim_process *process,
			    void (*function)(const struct sim_mem *mem, void *arg), void *arg)
{
	const struct sim_mem *mem;
	u32 pdd, id;

	sim_lock(&process->lock);
	for (pdd = 0; pdd < process->num_pdds; pdd++)
		for (id = 0; (mem = sim_ids_next(&process->pdds[pdd]->mems, &id)); id++)
			function(mem, arg);
	sim_unlock(&process->lock);
}

static void for_each_mem(struct native *native,
			 void (*function)(const struct sim_mem *mem, void *arg), void *arg)
{
	struct native_process *process;
	u32 task, number;

	for (task = 0; task < NATIVE_TASKS; task++) {
		process = native_process_get(native, task);
		if (process) {
			for_each_mem_of(&process->process, function, arg);
			native_process_put(process);
		}
		for (number = 0; (process = native_context_next(native, task, &number)); number++) {
			for_each_mem_of(&process->process, function, arg);
			native_process_put(process);
		}
	}
}

struct mem_count {
	const struct sim_dmabuf *dmabuf;
	u32 count;
};

static void count_mem(const struct sim_mem *mem, void *arg)
{
	struct mem_count *wanted = arg;

	wanted->count += mem->dmabuf && mem->dmabuf->bo == wanted->dmabuf->bo &&
			 mem->dmabuf->number == wanted->dmabuf->number;
}

/* A descriptor does not lead to a dma-buf with a number, so its holders are searched. */
static u32 count_mems(struct native *native, const struct sim_dmabuf *dmabuf)
{
	struct mem_count wanted = { .dmabuf = dmabuf };

	if (!dmabuf->number)
		return __atomic_load_n(&dmabuf->bo->dmabuf.mems, __ATOMIC_RELAXED);
	for_each_mem(native, count_mem, &wanted);
	return wanted.count;
}

bool native_holders_count(int fd, u64 *ret_size, u32 *ret_references)
{
	struct native *native = native_get();
	struct sim_dmabuf dmabuf = { .number = native_dmabuf_number(fd) };
	struct native_id id;

	if (native_fd_identify(fd, &id) < 0)
		return false;
	dmabuf.bo = native_bo_by_id(native, &id);
	if (!dmabuf.bo)
		return false;
	*ret_size = dmabuf.bo->bo.size;
	(void)pthread_mutex_lock(&lock);
	*ret_references = count_descriptors(native, &dmabuf);
	(void)pthread_mutex_unlock(&lock);
	*ret_references += count_mems(native, &dmabuf);
	if (!dmabuf.number)
		*ret_references += native_bo_count_prime(dmabuf.bo) +
				   sim_ipc_holds(&native->sim, &dmabuf.bo->dmabuf);
	native_bo_put(dmabuf.bo);
	return true;
}

static u32 num_dmabufs; /* under the lock */

static void check(struct native *native, int fd)
{
	struct native_bo *bo = find_bo(native, fd);

	num_dmabufs += fd > 2 && fd < native_fd_lowest_kept() && native_dmabuf_is_any(fd);
	if (!bo)
		return;
	if (!incomplete && !is_listed(&bo->descriptors, fd))
		sim_violation(&native->sim, "simulator: descriptor %d of a dma-buf is not listed",
			      fd);
	native_bo_put(bo);
}

static void see_mem(const struct sim_mem *mem, void *arg)
{
	u64 *mems = arg;

	(*mems)++;
	if (mem->dmabuf)
		mem->dmabuf->seen++;
}

/* Compares the number of holders of each buffer's dma-buf with those that there are. Buffers of a
 * process that has ended while its file is open are not found; then the check is left out. */
static void check_mems(struct native *native)
{
	static pthread_mutex_t checking = PTHREAD_MUTEX_INITIALIZER;
	struct native_bo *bo;
	u64 mems = 0;
	u32 i;

	/* not the lock above, which ioctls take in turn with that of their process */
	(void)pthread_mutex_lock(&checking);
	for_each_mem(native, see_mem, &mems);
	(void)pthread_mutex_lock(&native->lock);
	for (i = 0; i < NATIVE_BUCKETS; i++) {
		for (bo = native->by_id[i]; bo; bo = bo->next_by_id) {
			if (bo->dmabuf.seen != bo->dmabuf.mems &&
			    mems == (u64)native->sim.counts[SIM_COUNT_KFD_BOS])
				sim_violation(&native->sim,
					      "simulator: a dma-buf has %u holders in KFD, not %u",
					      bo->dmabuf.seen, bo->dmabuf.mems);
			bo->dmabuf.seen = 0;
		}
	}
	(void)pthread_mutex_unlock(&native->lock);
	(void)pthread_mutex_unlock(&checking);
}

u32 native_holders_count_descriptors(struct native *native)
{
	u32 count;

	(void)pthread_mutex_lock(&lock);
	num_dmabufs = 0;
	for_each_descriptor(native, check);
	count = num_dmabufs;
	(void)pthread_mutex_unlock(&lock);
	check_mems(native);
	return count;
}
