// SPDX-License-Identifier: GPL-2.0-only
/* Carries out copies on a CUDA device. The prototypes restate those of the CUDA driver API that the
 * library's documentation gives; the build needs nothing of CUDA. */
#include "native_cuda.h"

#include <dlfcn.h>
#include <semaphore.h>
#include <time.h>

#include "abi_drm.h"

#define CUDA_STREAM_NON_BLOCKING  1u
#define CUDA_EVENT_DISABLE_TIMING 2u
#define CUDA_NOT_READY            600
#define POLL_NS                   5000
#define EVENTS_MAX                64

typedef int cuda_device;
typedef unsigned long long cuda_memory;

/* Functions of the library, with the suffixes of their current versions. */
#define CUDA_FUNCTIONS(X)                                                                    \
	X(init, cuInit, (unsigned int))                                                      \
	X(device_get, cuDeviceGet, (cuda_device *, int))                                     \
	X(device_get_name, cuDeviceGetName, (char *, int, cuda_device))                      \
	X(retain_context, cuDevicePrimaryCtxRetain, (void **, cuda_device))                  \
	X(set_context, cuCtxSetCurrent, (void *))                                            \
	X(alloc, cuMemAlloc_v2, (cuda_memory *, size_t))                                     \
	X(free, cuMemFree_v2, (cuda_memory))                                                 \
	X(set_bytes, cuMemsetD8_v2, (cuda_memory, unsigned char, size_t))                    \
	X(register_host, cuMemHostRegister_v2, (void *, size_t, unsigned int))               \
	X(unregister_host, cuMemHostUnregister, (void *))                                    \
	X(copy_to_device, cuMemcpyHtoDAsync_v2, (cuda_memory, const void *, size_t, void *)) \
	X(copy_to_host, cuMemcpyDtoHAsync_v2, (void *, cuda_memory, size_t, void *))         \
	X(create_stream, cuStreamCreate, (void **, unsigned int))                            \
	X(synchronize_stream, cuStreamSynchronize, (void *))                                 \
	X(synchronize_context, cuCtxSynchronize, (void))                                     \
	X(create_event, cuEventCreate, (void **, unsigned int))                              \
	X(destroy_event, cuEventDestroy_v2, (void *))                                        \
	X(record_event, cuEventRecord, (void *, void *))                                     \
	X(query_event, cuEventQuery, (void *))

/* The end of a job's copies. */
struct cuda_fence {
	struct cuda_fence *next;
	struct sim_job *job;
	void *event;
};

/* The stream of one thread, and the thread that waits for its events. */
struct cuda_ring {
	void *stream;
	pthread_mutex_t lock;
	struct cuda_fence *first, **last;
	/* Events that no job uses. Making and destroying one takes about as long as a small copy.
	 */
	void *idle_events[EVENTS_MAX];
	unsigned int num_idle_events;
	sem_t added;
	bool has_finisher;
};

static struct {
	bool started;
#define FUNCTION(name, symbol, arguments) int(*name) arguments;
	CUDA_FUNCTIONS(FUNCTION)
#undef FUNCTION
	void *context;
	char device_name[128];
} cuda;

static __thread struct cuda_ring *own_ring;
static __thread bool is_starting;

static int complain(const char *what, int error)
{
	(void)fprintf(stderr, "amdgpu_sim: CUDA: cannot %s: error %d\n", what, error);
	return -EIO;
}

#define CALL(what, function, ...)                        \
	({                                               \
		int error_ = cuda.function(__VA_ARGS__); \
                                                         \
		error_ ? complain(what, error_) : 0;     \
	})

static int load_functions(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);

	if (!library)
		return -ENODEV;
#define LOAD(name, symbol, arguments)                                          \
	cuda.name = (__typeof__(cuda.name))(uintptr_t)dlsym(library, #symbol); \
	if (!cuda.name)                                                        \
		return -ENODEV;
	CUDA_FUNCTIONS(LOAD)
#undef LOAD
	return 0;
}

static int start(void)
{
	cuda_device device;
	int ret = load_functions();

	if (ret < 0)
		return ret;
	if (cuda.init(0) || cuda.device_get(&device, 0))
		return -ENODEV;
	ret = CALL("ask for its name", device_get_name, cuda.device_name,
		   (int)sizeof(cuda.device_name), device);
	if (ret == 0)
		ret = CALL("make a context", retain_context, &cuda.context, device);
	return ret;
}

int native_cuda_start(void)
{
	int ret;

	if (cuda.started)
		return 0;
	is_starting = true;
	ret = start();
	is_starting = false;
	cuda.started = ret == 0;
	return ret;
}

bool native_cuda_is_starting(void)
{
	return is_starting;
}

const char *native_cuda_name(void)
{
	return cuda.started ? cuda.device_name : NULL;
}

/* Each thread that calls the library needs the context. */
static int enter(void)
{
	return CALL("use the context", set_context, cuda.context);
}

static struct cuda_ring *ring_new(void)
{
	struct cuda_ring *ring = calloc(1, sizeof(*ring));

	if (!ring)
		return NULL;
	(void)pthread_mutex_init(&ring->lock, NULL);
	(void)sem_init(&ring->added, 0, 0);
	ring->last = &ring->first;
	if (enter() == 0 &&
	    CALL("make a stream", create_stream, &ring->stream, CUDA_STREAM_NON_BLOCKING) == 0)
		return ring;
	free(ring);
	return NULL;
}

/* That of the calling thread, which keeps it. */
static struct cuda_ring *ring_of_thread(void)
{
	if (!own_ring)
		own_ring = ring_new();
	return own_ring;
}

int native_cuda_bo_init(struct native_bo *bo)
{
	int ret;

	if (!cuda.started || !bo->bo.kfd_flags || !(bo->bo.domains & AMDGPU_GEM_DOMAIN_VRAM))
		return 0;
	ret = enter();
	return ret < 0 ? ret : CALL("allocate", alloc, &bo->device_memory, bo->bo.size);
}

void native_cuda_bo_done(struct native_bo *bo)
{
	if ((!bo->device_memory && !bo->registered) || enter() < 0)
		return;
	if (bo->registered)
		(void)CALL("unregister memory", unregister_host,
			   (void *)(uintptr_t)bo->bo.user_addr);
	if (bo->device_memory)
		(void)CALL("free", free, bo->device_memory);
}

int native_cuda_scribble(struct native *native, u8 byte)
{
	struct native_bo *bo;
	int ret = cuda.started ? enter() : -ENODEV;
	u32 i;

	(void)pthread_mutex_lock(&native->lock);
	for (i = 0; i < NATIVE_BUCKETS; i++)
		for (bo = native->by_id[i]; bo && ret == 0; bo = bo->next_by_id)
			if (bo->device_memory)
				ret = CALL("set memory", set_bytes, bo->device_memory, byte,
					   bo->bo.size);
	(void)pthread_mutex_unlock(&native->lock);
	return ret < 0 ? ret : CALL("wait for the device", synchronize_context);
}

int native_cuda_register(struct native_bo *user)
{
	int ret = cuda.started ? enter() : 0;

	if (ret < 0 || !cuda.started)
		return ret;
	ret = CALL("register memory", register_host, (void *)(uintptr_t)user->bo.user_addr,
		   user->bo.size, 0);
	user->registered = ret == 0;
	return ret;
}

static void *user_at(const struct native_bo *user, u64 offset)
{
	return (void *)(uintptr_t)(user->bo.user_addr + offset);
}

int native_cuda_copy_to_user(struct native_bo *user, u64 user_offset, struct native_bo *bo,
			     u64 offset, u64 size)
{
	struct cuda_ring *ring = ring_of_thread();

	return ring ? CALL("copy to memory", copy_to_host, user_at(user, user_offset),
			   bo->device_memory + offset, size, ring->stream)
		    : -EIO;
}

int native_cuda_copy_from_user(struct native_bo *bo, u64 offset, struct native_bo *user,
			       u64 user_offset, u64 size)
{
	struct cuda_ring *ring = ring_of_thread();

	return ring ? CALL("copy from memory", copy_to_device, bo->device_memory + offset,
			   user_at(user, user_offset), size, ring->stream)
		    : -EIO;
}

int native_cuda_read(struct native_bo *bo, u64 offset, void *data, u64 size)
{
	struct cuda_ring *ring = ring_of_thread();
	int ret = ring ? CALL("read", copy_to_host, data, bo->device_memory + offset, size,
			      ring->stream)
		       : -EIO;

	return ret < 0 ? ret : CALL("wait for a read", synchronize_stream, ring->stream);
}

int native_cuda_write(struct native_bo *bo, u64 offset, const void *data, u64 size)
{
	struct cuda_ring *ring = ring_of_thread();
	int ret = ring ? CALL("write", copy_to_device, bo->device_memory + offset, data, size,
			      ring->stream)
		       : -EIO;

	return ret < 0 ? ret : CALL("wait for a write", synchronize_stream, ring->stream);
}

/* NULL: it cannot be made. */
static void *take_event(struct cuda_ring *ring)
{
	void *event = NULL;

	(void)pthread_mutex_lock(&ring->lock);
	if (ring->num_idle_events)
		event = ring->idle_events[--ring->num_idle_events];
	(void)pthread_mutex_unlock(&ring->lock);
	if (!event)
		(void)CALL("make an event", create_event, &event, CUDA_EVENT_DISABLE_TIMING);
	return event;
}

static void give_event(struct cuda_ring *ring, void *event)
{
	bool is_kept;

	(void)pthread_mutex_lock(&ring->lock);
	is_kept = ring->num_idle_events < EVENTS_MAX;
	if (is_kept)
		ring->idle_events[ring->num_idle_events++] = event;
	(void)pthread_mutex_unlock(&ring->lock);
	if (!is_kept)
		(void)cuda.destroy_event(event);
}

static int await_event(void *event)
{
	const struct timespec pause = { .tv_nsec = POLL_NS };
	int error;

	while ((error = cuda.query_event(event)) == CUDA_NOT_READY)
		(void)nanosleep(&pause, NULL);
	return error ? complain("copy", error) : 0;
}

static struct cuda_fence *take_fence(struct cuda_ring *ring)
{
	struct cuda_fence *fence;

	while (sem_wait(&ring->added) < 0)
		;
	(void)pthread_mutex_lock(&ring->lock);
	fence = ring->first;
	ring->first = fence->next;
	if (!ring->first)
		ring->last = &ring->first;
	(void)pthread_mutex_unlock(&ring->lock);
	return fence;
}

static void finish_jobs(void *argument)
{
	struct cuda_ring *ring = argument;

	for (;;) {
		struct cuda_fence *fence = take_fence(ring);
		int ret = enter();

		if (ret == 0 && fence->event)
			ret = await_event(fence->event);
		if (fence->event && ret == 0)
			give_event(ring, fence->event);
		else if (fence->event)
			(void)cuda.destroy_event(fence->event);
		sim_job_finish(fence->job, fence->event ? ret : -EIO);
		free(fence);
	}
}

static void *record_event(struct cuda_ring *ring)
{
	void *event = take_event(ring);

	if (!event || CALL("record an event", record_event, event, ring->stream) == 0)
		return event;
	(void)cuda.destroy_event(event);
	return NULL;
}

bool native_cuda_finish(struct sim_job *job)
{
	struct cuda_ring *ring = cuda.started ? ring_of_thread() : NULL;
	struct cuda_fence *fence = ring ? calloc(1, sizeof(*fence)) : NULL;

	if (!fence)
		return false;
	fence->job = job;
	fence->event = record_event(ring);
	(void)pthread_mutex_lock(&ring->lock);
	*ring->last = fence;
	ring->last = &fence->next;
	(void)pthread_mutex_unlock(&ring->lock);
	(void)sem_post(&ring->added);
	if (!ring->has_finisher)
		native_threads_start(finish_jobs, ring, "amdgpu_sim cuda");
	ring->has_finisher = true;
	return true;
}
