// SPDX-License-Identifier: GPL-2.0-only
/* A libcuda.so.1 without a GPU, for a test of the simulator's calls: the device's memory is memory
 * of the process under other addresses. A copy moves bytes only when an event after it is asked for
 * the second time, so a fence that signals too early shows. Calls without a context, and copies
 * beyond allocated or registered memory, are errors. The names are those of the CUDA driver API. */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORTED      __attribute__((visibility("default")))
#define INVALID_VALUE 1
#define OUT_OF_MEMORY 2
#define NO_CONTEXT    201
#define NOT_READY     600

/* Device addresses have this bit, so a plain access to them faults. */
#define DEVICE_BIT (1ull << 62)
#define RANGES_MAX 65536

/* Allocated, or registered. */
struct range {
	uint64_t from, size;
};

struct copy {
	struct copy *next;
	void *to;
	const void *from;
	size_t size;
};

struct stream {
	struct copy *first, **last;
};

struct event {
	struct stream *stream;
	unsigned int asked;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct range allocated[RANGES_MAX], registered[RANGES_MAX];
static __thread bool has_context;

EXPORTED int cuInit(unsigned int flags);
EXPORTED int cuDeviceGet(int *device, int index);
EXPORTED int cuDeviceGetName(char *name, int size, int device);
EXPORTED int cuDevicePrimaryCtxRetain(void **context, int device);
EXPORTED int cuCtxSetCurrent(void *context);
EXPORTED int cuCtxSynchronize(void);
EXPORTED int cuMemAlloc_v2(unsigned long long *memory, size_t size);
EXPORTED int cuMemFree_v2(unsigned long long memory);
EXPORTED int cuMemsetD8_v2(unsigned long long memory, unsigned char byte, size_t size);
EXPORTED int cuMemHostRegister_v2(void *memory, size_t size, unsigned int flags);
EXPORTED int cuMemHostUnregister(void *memory);
EXPORTED int cuMemcpyHtoDAsync_v2(unsigned long long to, const void *from, size_t size,
				  void *stream);
EXPORTED int cuMemcpyDtoHAsync_v2(void *to, unsigned long long from, size_t size, void *stream);
EXPORTED int cuStreamCreate(void **stream, unsigned int flags);
EXPORTED int cuStreamSynchronize(void *stream);
EXPORTED int cuEventCreate(void **event, unsigned int flags);
EXPORTED int cuEventDestroy_v2(void *event);
EXPORTED int cuEventRecord(void *event, void *stream);
EXPORTED int cuEventQuery(void *event);

static bool is_inside(const struct range *ranges, uint64_t from, uint64_t size)
{
	for (size_t i = 0; i < RANGES_MAX; i++) {
		if (ranges[i].size && from >= ranges[i].from &&
		    from + size <= ranges[i].from + ranges[i].size)
			return true;
	}
	return false;
}

static int add(struct range *ranges, uint64_t from, uint64_t size)
{
	size_t i = 0;

	while (i < RANGES_MAX && ranges[i].size)
		i++;
	if (i == RANGES_MAX)
		return OUT_OF_MEMORY;
	ranges[i] = (struct range){ from, size };
	return 0;
}

static int take(struct range *ranges, uint64_t from)
{
	for (size_t i = 0; i < RANGES_MAX; i++) {
		if (ranges[i].size && ranges[i].from == from) {
			ranges[i].size = 0;
			return 0;
		}
	}
	return INVALID_VALUE;
}

static void *at(unsigned long long memory)
{
	return (void *)(uintptr_t)(memory & ~DEVICE_BIT);
}

static uint64_t number(const void *memory)
{
	return (uintptr_t)memory;
}

/* Runs @function with the lock, if the thread has a context. */
#define LOCKED(result)                             \
	({                                         \
		int ret_ = NO_CONTEXT;             \
                                                   \
		(void)pthread_mutex_lock(&lock);   \
		if (has_context)                   \
			ret_ = (result);           \
		(void)pthread_mutex_unlock(&lock); \
		ret_;                              \
	})

int cuInit(unsigned int flags)
{
	return flags ? INVALID_VALUE : 0;
}

int cuDeviceGet(int *device, int index)
{
	*device = index;
	return index ? INVALID_VALUE : 0;
}

int cuDeviceGetName(char *name, int size, int device)
{
	(void)device;
	(void)snprintf(name, (size_t)size, "a stub without a GPU");
	return 0;
}

int cuDevicePrimaryCtxRetain(void **context, int device)
{
	(void)device;
	*context = &lock;
	return 0;
}

int cuCtxSetCurrent(void *context)
{
	has_context = context == &lock;
	return has_context ? 0 : INVALID_VALUE;
}

int cuCtxSynchronize(void)
{
	return LOCKED(0);
}

int cuMemAlloc_v2(unsigned long long *memory, size_t size)
{
	void *bytes = malloc(size);

	if (!bytes)
		return OUT_OF_MEMORY;
	*memory = number(bytes) | DEVICE_BIT;
	return LOCKED(add(allocated, *memory, size));
}

int cuMemFree_v2(unsigned long long memory)
{
	int ret = LOCKED(take(allocated, memory));

	if (!ret)
		free(at(memory));
	return ret;
}

int cuMemsetD8_v2(unsigned long long memory, unsigned char byte, size_t size)
{
	if (!LOCKED(is_inside(allocated, memory, size)))
		return INVALID_VALUE;
	memset(at(memory), byte, size);
	return 0;
}

int cuMemHostRegister_v2(void *memory, size_t size, unsigned int flags)
{
	(void)flags;
	return LOCKED(add(registered, number(memory), size));
}

int cuMemHostUnregister(void *memory)
{
	return LOCKED(take(registered, number(memory)));
}

static int enqueue(struct stream *stream, unsigned long long device, const void *host,
		   struct copy copy)
{
	struct copy *queued = malloc(sizeof(*queued));

	if (!is_inside(allocated, device, copy.size) ||
	    !is_inside(registered, number(host), copy.size)) {
		free(queued);
		return INVALID_VALUE;
	}
	*queued = copy;
	*stream->last = queued;
	stream->last = &queued->next;
	return 0;
}

int cuMemcpyHtoDAsync_v2(unsigned long long to, const void *from, size_t size, void *stream)
{
	return LOCKED(enqueue(stream, to, from, (struct copy){ NULL, at(to), from, size }));
}

int cuMemcpyDtoHAsync_v2(void *to, unsigned long long from, size_t size, void *stream)
{
	return LOCKED(enqueue(stream, from, to, (struct copy){ NULL, to, at(from), size }));
}

int cuStreamCreate(void **stream, unsigned int flags)
{
	struct stream *made = calloc(1, sizeof(*made));

	(void)flags;
	made->last = &made->first;
	*stream = made;
	return 0;
}

static int run(struct stream *stream)
{
	struct copy *copy;

	while ((copy = stream->first)) {
		memcpy(copy->to, copy->from, copy->size);
		stream->first = copy->next;
		free(copy);
	}
	stream->last = &stream->first;
	return 0;
}

int cuStreamSynchronize(void *stream)
{
	return LOCKED(run(stream));
}

int cuEventCreate(void **event, unsigned int flags)
{
	(void)flags;
	*event = calloc(1, sizeof(struct event));
	return *event ? 0 : OUT_OF_MEMORY;
}

int cuEventDestroy_v2(void *event)
{
	free(event);
	return 0;
}

int cuEventRecord(void *event, void *stream)
{
	((struct event *)event)->stream = stream;
	return LOCKED(0);
}

static int query(struct event *event)
{
	return event->asked++ ? run(event->stream) : NOT_READY;
}

int cuEventQuery(void *event)
{
	return LOCKED(query(event));
}
