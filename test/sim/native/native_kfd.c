// SPDX-License-Identifier: GPL-2.0-only
/* KFD processes and their memory: this process, from its first open of /dev/kfd until it exits or
 * requests the end, and the processes that it plays. Also handles mmap() of /dev/kfd. */
#include <sys/mman.h>
#include <unistd.h>

#include "native.h"

#define IDLE_MIN_US 50u
#define IDLE_MAX_US 2000u

/* Polls doorbells while some queue may run. The longer no doorbell rings, the less often this
 * thread polls. */
static void run_engine(void *arg)
{
	u32 idle_us = IDLE_MIN_US;
	struct sim *sim = arg;

	for (;;) {
		(void)sim_os_wait(&sim->engine_wait, sim_engine_has_work, sim, SIM_FOREVER);
		if (sim_engine_pass(sim)) {
			idle_us = IDLE_MIN_US;
			continue;
		}
		sim_os_sleep_us(idle_us);
		idle_us = min(idle_us * 2, IDLE_MAX_US);
	}
}

static void context_remove(struct native *native, const struct native_process *context)
{
	struct native_process **link = &native->contexts;

	(void)pthread_mutex_lock(&native->lock);
	while (*link && *link != context)
		link = &(*link)->next_context;
	if (*link)
		*link = context->next_context;
	(void)pthread_mutex_unlock(&native->lock);
}

void native_process_put(struct native_process *process)
{
	if (__atomic_sub_fetch(&process->refs, 1, __ATOMIC_ACQ_REL) != 0)
		return;
	if (process->process.is_context)
		context_remove(native_get(), process);
	sim_process_done(&process->process);
	free(process);
}

/* A reference, unless the last one has gone. */
static bool try_get(struct native_process *process)
{
	u32 refs = __atomic_load_n(&process->refs, __ATOMIC_RELAXED);

	while (refs && !__atomic_compare_exchange_n(&process->refs, &refs, refs + 1, false,
						    __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
	return refs;
}

struct native_process *native_process_get(struct native *native, u32 task)
{
	struct native_process *process;

	(void)pthread_mutex_lock(&native->lock);
	process = native->processes[task];
	if (process)
		(void)__atomic_add_fetch(&process->refs, 1, __ATOMIC_RELAXED);
	(void)pthread_mutex_unlock(&native->lock);
	return process;
}

static struct native_process *process_get(struct native *native)
{
	return native_process_get(native, native->task);
}

struct native_process *native_context_next(struct native *native, u32 task, u32 *number)
{
	struct native_process *context;

	(void)pthread_mutex_lock(&native->lock);
	context = native->contexts;
	while (context && (context->task != task || context->number < *number || !try_get(context)))
		context = context->next_context;
	if (context)
		*number = context->number;
	(void)pthread_mutex_unlock(&native->lock);
	return context;
}

/* The lowest number that is free among those of its task (kfd_process.c: kfd_process_alloc_id(),
 * Linux 7.3). The list is in this order. */
static void context_enter(struct native *native, struct native_process *context)
{
	struct native_process **link = &native->contexts;

	(void)pthread_mutex_lock(&native->lock);
	for (; *link; link = &(*link)->next_context) {
		if ((*link)->task != context->task)
			continue;
		if ((*link)->number != context->number)
			break;
		context->number++;
	}
	context->next_context = *link;
	*link = context;
	(void)pthread_mutex_unlock(&native->lock);
}

/* The file has a process of its own from now on (kfd_chardev.c: kfd_ioctl_create_process(), Linux
 * 7.3). It ends with the file. */
static int context_new(struct native_file *file)
{
	struct native_process *context = calloc(1, sizeof(*context)), *first = file->process;
	int ret;

	if (!context)
		return -ENOMEM;
	context->refs = 1;
	context->task = first->task;
	ret = sim_process_init(&context->process, first->process.sim);
	if (ret < 0) {
		free(context);
		return ret;
	}
	context->process.is_context = true;
	context_enter(native_get(), context);
	file->process = context;
	native_process_put(first);
	return 0;
}

static int process_new(struct native *native)
{
	struct native_process *process = calloc(1, sizeof(*process));
	int ret;

	if (!process)
		return -ENOMEM;
	process->refs = 1; /* the address space's */
	process->task = native->task;
	ret = sim_process_init(&process->process, &native->sim);
	if (ret < 0) {
		free(process);
		return ret;
	}
	(void)pthread_mutex_lock(&native->lock);
	native->processes[native->task] = process;
	if (!native->engine_started) {
		native_threads_start(run_engine, &native->sim, "amdgpu_sim eng");
		native_resume_serve(native);
	}
	native->engine_started = true;
	(void)pthread_mutex_unlock(&native->lock);
	return 0;
}

int native_process_open(struct native *native, struct native_process **ret_process)
{
	static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;
	struct native_process *process;
	int ret = 0;

	(void)pthread_mutex_lock(&opening);
	process = process_get(native);
	if (!process)
		ret = process_new(native);
	if (ret == 0 && !process)
		process = process_get(native);
	(void)pthread_mutex_unlock(&opening);
	if (ret == 0)
		*ret_process = process;
	return ret;
}

static bool none_resumes(void *arg)
{
	struct native *native = arg;

	return __atomic_load_n(&native->resuming, __ATOMIC_ACQUIRE) == 0;
}

void native_process_settle(struct native *native)
{
	(void)sim_os_wait(&native->resumed, none_resumes, native, SIM_FOREVER);
}

static void process_exit(struct native *native, u32 task)
{
	struct native_process *process, *context;
	u32 number;

	for (number = 0; (context = native_context_next(native, task, &number)); number++) {
		sim_process_mm_gone(&context->process);
		native_process_put(context);
	}
	(void)pthread_mutex_lock(&native->lock);
	process = native->processes[task];
	native->processes[task] = NULL;
	native->num_kfd_maps = 0;
	(void)pthread_mutex_unlock(&native->lock);
	if (!process)
		return;
	sim_process_mm_gone(&process->process);
	native_process_settle(native);
	native_process_put(process);
}

/* When this function returns, only state that an open file holds is left. */
void native_process_exit(struct native *native)
{
	u32 task;

	for (task = 0; task < NATIVE_TASKS; task++)
		process_exit(native, task);
}

struct sim_process *sim_os_process_find(u32 pid)
{
	struct native_process *process = NULL;

	if ((pid_t)pid == native_real_pid())
		process = process_get(native_get());
	return process ? &process->process : NULL;
}

void sim_os_process_put(struct sim_process *process)
{
	native_process_put(native_process_of(process));
}

u32 sim_os_process_pid(struct sim_process *process)
{
	struct native *native = native_get();
	u32 task = native_process_of(process)->task;

	if (task)
		return (u32)native->others[task - 1].own_pid;
	return (u32)(native->own_pid ? native->own_pid : native->pid);
}

bool sim_os_is_owner(void)
{
	return native_get()->pid == native_real_pid();
}

static void resume(void *arg)
{
	struct native_process *process = arg;
	struct native *native = native_get();

	sim_criu_resume_work(&process->process);
	native_process_put(process);
	(void)__atomic_sub_fetch(&native->resuming, 1, __ATOMIC_RELEASE);
	sim_os_wake(&native->resumed);
}

void sim_os_resume_start(struct sim_process *sim_process)
{
	struct native_process *process = native_process_of(sim_process);

	(void)__atomic_add_fetch(&process->refs, 1, __ATOMIC_RELAXED);
	(void)__atomic_add_fetch(&native_get()->resuming, 1, __ATOMIC_RELAXED);
	native_threads_start(resume, process, "amdgpu_sim res");
}

long native_kfd_ioctl(struct native_file *file, u32 request, void *argument)
{
	const struct kfd_ioctl_criu_args *args = argument;
	long ret;

	if ((request & 0xff) == _IOC_NR(AMDKFD_IOC_CRIU_OP) && args &&
	    args->op == KFD_CRIU_OP_RESUME && (pid_t)args->pid != native_real_pid())
		return native_resume_elsewhere(native_get(), (pid_t)args->pid);
	ret = sim_kfd_ioctl(&file->process->process, request, (u64)(uintptr_t)argument);
	return ret == SIM_KFD_NEW_CONTEXT ? context_new(file) : ret;
}

/* Records the offset that mmap() was given, because /proc/PID/maps shows another one. */
static void note_map(struct native *native, u64 start, u64 size, u64 offset)
{
	struct native_kfd_map *grown, map = { start, size, offset };
	u32 i = 0;

	(void)pthread_mutex_lock(&native->lock);
	while (i < native->num_kfd_maps && native->kfd_maps[i].start != start)
		i++;
	if (i == native->num_kfd_maps) {
		grown = realloc(native->kfd_maps, (i + 1) * sizeof(*grown));
		if (!grown)
			abort();
		native->kfd_maps = grown;
		native->num_kfd_maps++;
	}
	native->kfd_maps[i] = map;
	(void)pthread_mutex_unlock(&native->lock);
}

/* The offset that the program passed to mmap() of /dev/kfd; false: no such mapping is known. */
bool native_kfd_find_map(struct native *native, u64 addr, u64 *ret_offset)
{
	bool found = false;
	u32 i;

	(void)pthread_mutex_lock(&native->lock);
	for (i = 0; i < native->num_kfd_maps && !found; i++) {
		const struct native_kfd_map *map = &native->kfd_maps[i];

		found = addr >= map->start && addr - map->start < map->size;
		if (found)
			*ret_offset = map->offset + (addr - map->start);
	}
	(void)pthread_mutex_unlock(&native->lock);
	return found;
}

static int map_pages(const struct sim_kfd_map *map, char *to, int prot)
{
	u64 offset;
	u32 i;

	for (i = 0; i < map->count; i++) {
		int fd = native_page_find(map->page[i], &offset);

		if (fd < 0)
			return fd;
		if (NATIVE_REAL(mmap)(to + i * SIM_PAGE_SIZE, SIM_PAGE_SIZE, prot,
				      MAP_SHARED | MAP_FIXED, fd, (off_t)offset) == MAP_FAILED)
			return -errno;
	}
	return 0;
}

void *native_kfd_mmap(struct native_file *file, void *addr, size_t size, int prot, int flags,
		      u64 offset, int *ret_error)
{
	struct sim_kfd_map map;
	void *mapping;

	*ret_error = sim_os_is_owner() ? 0 : -EBADF;
	if (*ret_error == 0)
		*ret_error = sim_kfd_mmap(&file->process->process, offset, size, &map);
	if (*ret_error < 0)
		return MAP_FAILED;
	mapping = NATIVE_REAL(mmap)(
		addr, size, PROT_NONE,
		(flags & ~(MAP_SHARED | MAP_SHARED_VALIDATE)) | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	*ret_error = mapping == MAP_FAILED ? -errno : map_pages(&map, mapping, prot);
	if (*ret_error == 0) {
		note_map(native_get(), (u64)(uintptr_t)mapping, size, offset);
		return mapping;
	}
	if (mapping != MAP_FAILED)
		(void)NATIVE_REAL(munmap)(mapping, size);
	return MAP_FAILED;
}
