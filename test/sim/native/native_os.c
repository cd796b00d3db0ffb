// SPDX-License-Identifier: GPL-2.0-only
/* The general half of sim_os.h, built on the C library: memory, time, waiting, threads and the
 * program's memory, which is this process's own. Buffers, files and processes have other files. */
#include <fcntl.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "native.h"
#include "native_cuda.h"

#define NS_PER_S    1000000000ull
#define LOWEST_USER 4096u  /* no program maps memory below */
#define PAGES       16384u /* doorbells and signal pages of all future processes */
#define PAGES_BYTES (PAGES * SIM_PAGE_SIZE)

static struct {
	pthread_mutex_t lock;
	int fd;
	struct native_id id;
	char *memory;
	u8 used[PAGES];
} pages = { .lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1 };

static int pages_init(void)
{
	void *memory;
	int fd;

	if (pages.memory)
		return 0;
	fd = native_fd_memory("amdgpu_sim.pages", PAGES_BYTES);
	if (fd < 0)
		return fd;
	memory = NATIVE_REAL(mmap)(NULL, PAGES_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (memory == MAP_FAILED)
		return -ENOMEM;
	(void)native_fd_identify(fd, &pages.id);
	pages.fd = fd;
	pages.memory = memory;
	return 0;
}

/* Returns the first free one, so that allocations made together lie together. */
void *sim_os_page_alloc(void)
{
	char *page = NULL;
	u32 i;

	(void)pthread_mutex_lock(&pages.lock);
	for (i = 0; pages_init() == 0 && i < PAGES && !page; i++) {
		if (pages.used[i])
			continue;
		pages.used[i] = 1;
		page = pages.memory + i * SIM_PAGE_SIZE;
	}
	(void)pthread_mutex_unlock(&pages.lock);
	return page;
}

void sim_os_page_free(void *page)
{
	(void)pthread_mutex_lock(&pages.lock);
	pages.used[((char *)page - pages.memory) / SIM_PAGE_SIZE] = 0;
	(void)pthread_mutex_unlock(&pages.lock);
}

int native_page_find(const void *page, u64 *ret_offset)
{
	const char *at = page;

	if (at < pages.memory || at >= pages.memory + PAGES_BYTES)
		return -EINVAL;
	*ret_offset = (u64)(at - pages.memory);
	return pages.fd;
}

bool native_page_is_file(const struct native_id *id)
{
	return pages.memory && native_id_equal(id, &pages.id);
}

u64 sim_os_now_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (u64)now.tv_sec * NS_PER_S + (u64)now.tv_nsec;
}

static struct timespec timespec_of(u64 ns)
{
	return (struct timespec){ .tv_sec = (time_t)(ns / NS_PER_S),
				  .tv_nsec = (long)(ns % NS_PER_S) };
}

void sim_os_sleep_us(u32 us)
{
	struct timespec left = timespec_of(us * 1000ull);

	while (clock_nanosleep(CLOCK_MONOTONIC, 0, &left, &left) == EINTR)
		;
}

/* Waits for a wake-up after @seen; false: @deadline_ns came first. */
static bool sleep_for_wake(struct sim_wait *wait, u64 seen, u64 deadline_ns)
{
	struct timespec deadline = timespec_of(deadline_ns);
	int ret = 0;

	(void)pthread_mutex_lock(&wait->mutex);
	while (wait->wakes == seen && ret != ETIMEDOUT) {
		if (deadline_ns == SIM_FOREVER)
			ret = pthread_cond_wait(&wait->cond, &wait->mutex);
		else
			ret = pthread_cond_timedwait(&wait->cond, &wait->mutex, &deadline);
	}
	(void)pthread_mutex_unlock(&wait->mutex);
	return ret != ETIMEDOUT;
}

/* Signals do not end the wait: their handlers run, and the call continues as if the kernel had
 * restarted it. */
int sim_os_wait(struct sim_wait *wait, bool (*done)(void *arg), void *arg, u64 deadline_ns)
{
	bool in_time = true;
	u64 seen;

	for (;;) {
		(void)pthread_mutex_lock(&wait->mutex);
		seen = wait->wakes;
		(void)pthread_mutex_unlock(&wait->mutex);
		if (done(arg))
			return 0;
		if (!in_time)
			return -ETIME;
		in_time = sleep_for_wake(wait, seen, deadline_ns);
	}
}

void sim_os_wake(struct sim_wait *wait)
{
	(void)pthread_mutex_lock(&wait->mutex);
	wait->wakes++;
	(void)pthread_cond_broadcast(&wait->cond);
	(void)pthread_mutex_unlock(&wait->mutex);
}

/* A bad pointer faults on access. Only a pointer below LOWEST_USER returns an error, as in the
 * kernel. */
int sim_os_copy_from_user(void *dst, u64 src, u64 size_bytes)
{
	if (size_bytes && src < LOWEST_USER)
		return -EFAULT;
	memcpy(dst, (const void *)(uintptr_t)src, size_bytes);
	return 0;
}

int sim_os_copy_to_user(u64 dst, const void *src, u64 size_bytes)
{
	if (size_bytes && dst < LOWEST_USER)
		return -EFAULT;
	memcpy((void *)(uintptr_t)dst, src, size_bytes);
	return 0;
}

/* Checks that the whole range is mapped. Write access shows only when the engine writes: reading
 * /proc/self/maps for each command buffer would take longer than the copy. */
int sim_os_mm_check(u64 addr, u64 size_bytes)
{
	if (!sim_os_is_owner())
		return -ESRCH;
	if (addr + size_bytes < addr)
		return -EFAULT;
	return msync((void *)(uintptr_t)addr, size_bytes, MS_ASYNC) < 0 ? -EFAULT : 0;
}

int sim_os_bo_pin_user(struct sim_bo *bo)
{
	return native_cuda_register(native_bo_of(bo));
}

bool sim_os_mm_has_file(u64 addr)
{
	unsigned long long start, end, inode = 0;
	bool found = false;
	char line[512];
	FILE *file;

	if (!sim_os_is_owner())
		return false;
	file = NATIVE_REAL(fopen)("/proc/self/maps", "re");
	while (file && !found && fgets(line, sizeof(line), file))
		found = sscanf(line, "%llx-%llx %*s %*s %*s %llu", &start, &end, &inode) == 3 &&
			end > addr;
	if (file)
		(void)fclose(file);
	return found && inode;
}

struct thread {
	void (*function)(void *arg);
	void *arg;
	char name[16];
	sem_t runs;
};

static void *thread_main(void *arg)
{
	struct thread *starter = arg, thread = *starter;

	(void)pthread_setname_np(pthread_self(), thread.name);
	/* deadlines need microseconds, finer than the kernel's default timer slack */
	(void)prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
	(void)sem_post(&starter->runs);
	thread.function(thread.arg);
	return NULL;
}

/* Its signals are the program's. It runs when this returns: a program that forks while a
 * thread begins leaves its child with the locks that a sanitizer, which allocates then,
 * held at that moment. */
void native_threads_start(void (*function)(void *arg), void *arg, const char *name)
{
	struct thread thread = { .function = function, .arg = arg };
	sigset_t all, old;
	pthread_t id;

	(void)snprintf(thread.name, sizeof(thread.name), "%s", name);
	(void)sem_init(&thread.runs, 0, 0);
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &old);
	if (pthread_create(&id, NULL, thread_main, &thread))
		abort();
	(void)pthread_detach(id);
	while (sem_wait(&thread.runs) < 0)
		;
	(void)sem_destroy(&thread.runs);
	(void)pthread_sigmask(SIG_SETMASK, &old, NULL);
}

void sim_os_job_copied(struct sim_job *job)
{
	if (!native_cuda_finish(job))
		sim_job_finish(job, 0);
}

static void run_ring(void *arg)
{
	struct native_ring *ring = arg;

	/* An engine waits for no processor. Without CAP_SYS_NICE it does. */
	(void)setpriority(PRIO_PROCESS, 0, -20);
	for (;;) {
		struct sim_job *job;

		(void)pthread_mutex_lock(&ring->lock);
		while (!ring->first)
			(void)pthread_cond_wait(&ring->cond, &ring->lock);
		job = ring->first;
		ring->first = job->next_on_ring;
		(void)pthread_mutex_unlock(&ring->lock);
		sim_job_run(job);
	}
}

void sim_os_job_start(struct sim_job *job)
{
	struct native *native = native_get();
	struct native_ring *ring = &native->rings[job->render->gpu->index][job->ring];

	job->next_on_ring = NULL;
	(void)pthread_mutex_lock(&ring->lock);
	if (ring->first)
		ring->last->next_on_ring = job;
	else
		ring->first = job;
	ring->last = job;
	if (!ring->started)
		native_threads_start(run_ring, ring, "amdgpu_sim ring");
	ring->started = true;
	(void)pthread_cond_signal(&ring->cond);
	(void)pthread_mutex_unlock(&ring->lock);
}
