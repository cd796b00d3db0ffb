// SPDX-License-Identifier: GPL-2.0-only
/* Command buffers whose file, context or buffers go away before they run. The calls are raw ioctls,
 * because libdrm has one device for all files of a process. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <amdgpu_drm.h>
#include <xf86drm.h>

#include "sim_test.h"

#define NODE "/dev/dri/renderD128"

#define IB_VA  0x100000ull
#define SRC_VA 0x200000ull
#define DST_VA 0x300000ull
#define BYTES  4096u

/* Expects exactly @count violations since the last call, and forgets them. */
static void expect_violations(long count)
{
	assert_int_equal(sim_number("violations", NULL), count);
	sim_write("violations", "0");
}

/* An open file that can copy a page of its own onto a page that all files share. */
struct client {
	int fd;
	uint32_t context, list, handles[3];
	uint32_t *ib, *src;
};

static int dst_dmabuf;
static volatile uint32_t *dst;

static uint32_t create(int fd)
{
	union drm_amdgpu_gem_create args = { .in = { .bo_size = BYTES,
						     .domains = AMDGPU_GEM_DOMAIN_GTT } };

	assert_int_equal(drmIoctl(fd, DRM_IOCTL_AMDGPU_GEM_CREATE, &args), 0);
	return args.out.handle;
}

static void *map_cpu(int fd, uint32_t handle)
{
	union drm_amdgpu_gem_mmap args = { .in = { .handle = handle } };
	void *memory;

	assert_int_equal(drmIoctl(fd, DRM_IOCTL_AMDGPU_GEM_MMAP, &args), 0);
	memory =
		mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)args.out.addr_ptr);
	assert_true(memory != MAP_FAILED);
	return memory;
}

static int place(const struct client *client, uint32_t operation, uint32_t handle, uint64_t va)
{
	struct drm_amdgpu_gem_va args = { .handle = handle,
					  .operation = operation,
					  .flags = AMDGPU_VM_PAGE_READABLE |
						   AMDGPU_VM_PAGE_WRITEABLE,
					  .va_address = va,
					  .map_size = BYTES };

	return drmIoctl(client->fd, DRM_IOCTL_AMDGPU_GEM_VA, &args);
}

static void context_new(struct client *client)
{
	union drm_amdgpu_ctx args = { .in = { .op = AMDGPU_CTX_OP_ALLOC_CTX } };

	assert_int_equal(drmIoctl(client->fd, DRM_IOCTL_AMDGPU_CTX, &args), 0);
	client->context = args.out.alloc.ctx_id;
}

static void context_free(const struct client *client)
{
	union drm_amdgpu_ctx args = { .in = { .op = AMDGPU_CTX_OP_FREE_CTX,
					      .ctx_id = client->context } };

	assert_int_equal(drmIoctl(client->fd, DRM_IOCTL_AMDGPU_CTX, &args), 0);
}

static void client_open(struct client *client, uint32_t value)
{
	struct drm_amdgpu_bo_list_entry entries[3] = { { .bo_handle = 0 } };
	union drm_amdgpu_bo_list list = { .in = { .bo_number = 3,
						  .bo_info_size = sizeof(entries[0]),
						  .bo_info_ptr = (uint64_t)entries } };
	const uint32_t copy[] = { 1, BYTES - 1, 0, SRC_VA, 0, DST_VA, 0 };
	int i;

	client->fd = open(NODE, O_RDWR | O_CLOEXEC);
	assert_true(client->fd >= 0);
	context_new(client);
	client->handles[0] = create(client->fd);
	client->handles[1] = create(client->fd);
	assert_int_equal(drmPrimeFDToHandle(client->fd, dst_dmabuf, &client->handles[2]), 0);
	client->ib = map_cpu(client->fd, client->handles[0]);
	client->src = map_cpu(client->fd, client->handles[1]);
	for (i = 0; i < 3; i++) {
		assert_int_equal(place(client, AMDGPU_VA_OP_MAP, client->handles[i],
				       IB_VA + (uint64_t)i * (SRC_VA - IB_VA)),
				 0);
		entries[i].bo_handle = client->handles[i];
	}
	assert_int_equal(drmIoctl(client->fd, DRM_IOCTL_AMDGPU_BO_LIST, &list), 0);
	client->list = list.out.list_handle;
	memset(client->ib, 0, 32);
	memcpy(client->ib, copy, sizeof(copy));
	for (i = 0; i < (int)BYTES / 4; i++)
		client->src[i] = value;
}

static void client_close(struct client *client)
{
	munmap(client->ib, BYTES);
	munmap(client->src, BYTES);
	close(client->fd);
}

static uint64_t submit(const struct client *client)
{
	struct drm_amdgpu_cs_chunk_ib ib = { .va_start = IB_VA,
					     .ib_bytes = 32,
					     .ip_type = AMDGPU_HW_IP_DMA };
	struct drm_amdgpu_cs_chunk chunk = { .chunk_id = AMDGPU_CHUNK_ID_IB,
					     .length_dw = sizeof(ib) / 4,
					     .chunk_data = (uint64_t)&ib };
	uint64_t pointer = (uint64_t)&chunk;
	union drm_amdgpu_cs args = { .in = { .ctx_id = client->context,
					     .bo_list_handle = client->list,
					     .num_chunks = 1,
					     .chunks = (uint64_t)&pointer } };

	assert_int_equal(drmIoctl(client->fd, DRM_IOCTL_AMDGPU_CS, &args), 0);
	return args.out.handle;
}

static int wait_for(const struct client *client, uint64_t sequence)
{
	union drm_amdgpu_wait_cs args = { .in = { .handle = sequence,
						  .timeout = ~0ull,
						  .ip_type = AMDGPU_HW_IP_DMA,
						  .ctx_id = client->context } };

	return drmIoctl(client->fd, DRM_IOCTL_AMDGPU_WAIT_CS, &args) < 0 ? -errno : 0;
}

static void hang(int on)
{
	sim_write("fence_hang", on ? "1" : "0");
}

/* Returns after the engine has finished all work submitted before. */
static void expect_after_all(uint32_t value)
{
	struct client last;

	assert_int_equal(dst[0], value);
	client_open(&last, 77);
	assert_int_equal(wait_for(&last, submit(&last)), 0);
	assert_int_equal(dst[0], 77);
	client_close(&last);
}

static int begin_with_target(void **state)
{
	int fd = open(NODE, O_RDWR | O_CLOEXEC);
	uint32_t handle;

	assert_true(fd >= 0);
	handle = create(fd);
	assert_int_equal(drmPrimeHandleToFD(fd, handle, DRM_CLOEXEC, &dst_dmabuf), 0);
	dst = map_cpu(fd, handle);
	(void)close(fd);
	return begin(state);
}

static int end_with_target(void **state)
{
	(void)munmap((void *)(uintptr_t)dst, BYTES);
	(void)close(dst_dmabuf);
	return end(state);
}

#define TEST(name) TEST_WITH(name, begin_with_target, end_with_target)

TEST(what_is_pending_does_not_run_after_its_file_is_closed)
{
	struct client client;

	client_open(&client, 1);
	dst[0] = 100;
	hang(1);
	(void)submit(&client);
	(void)submit(&client);
	client_close(&client);
	assert_int_equal(dst[0], 100);
	hang(0);
	expect_after_all(100);
	expect_violations(0);
}

/* Closing a file does not wait even if the engine hangs with the work of another file. */
TEST(closing_a_file_leaves_the_work_of_others)
{
	struct client first, second;
	uint64_t sequence;

	client_open(&first, 1);
	client_open(&second, 2);
	dst[0] = 100;
	hang(1);
	sequence = submit(&first);
	(void)submit(&second);
	client_close(&second);
	assert_int_equal(dst[0], 100);
	hang(0);
	assert_int_equal(wait_for(&first, sequence), 0);
	expect_after_all(1);
	client_close(&first);
	expect_violations(0);
}

static pid_t waiter;

static void *wait_in_thread(void *client)
{
	__atomic_store_n(&waiter, gettid(), __ATOMIC_SEQ_CST);
	return (void *)(long)wait_for(client, 1);
}

/* Waits until the thread of wait_in_thread() sleeps in the call. */
static void await_waiter(void)
{
	char path[64], state = 'R';

	while (state != 'S') {
		pid_t tid = __atomic_load_n(&waiter, __ATOMIC_SEQ_CST);
		FILE *file;

		(void)snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
		file = tid ? fopen(path, "re") : NULL;
		if (!file)
			continue;
		assert_int_equal(fscanf(file, "%*d (%*[^)]) %c", &state), 1);
		(void)fclose(file);
	}
}

/* A thread that waits for the work gets an error. A new context may get the number of the old one.
 */
TEST(a_freed_context_takes_its_work_along)
{
	struct client client;
	uint32_t freed;
	pthread_t thread;
	void *result;
	uint64_t sequence;

	client_open(&client, 1);
	dst[0] = 100;
	hang(1);
	(void)submit(&client);
	waiter = 0;
	assert_int_equal(pthread_create(&thread, NULL, wait_in_thread, &client), 0);
	await_waiter();
	freed = client.context;
	context_free(&client);
	assert_int_equal(pthread_join(thread, &result), 0);
	assert_int_equal((long)result, -ECANCELED);
	context_new(&client);
	assert_int_equal(client.context, freed);
	assert_int_equal(dst[0], 100);
	client.src[0] = 5;
	sequence = submit(&client);
	assert_int_equal(sequence, 1);
	hang(0);
	assert_int_equal(wait_for(&client, sequence), 0);
	expect_after_all(5);
	client_close(&client);
	expect_violations(0);
}

TEST(taking_a_buffer_from_pending_work_is_a_violation)
{
	struct drm_gem_close args;
	struct client client;
	uint64_t sequence;

	client_open(&client, 1);
	hang(1);
	sequence = submit(&client);
	assert_int_equal(place(&client, AMDGPU_VA_OP_UNMAP, client.handles[2], DST_VA), 0);
	hang(0);
	assert_int_equal(wait_for(&client, sequence), -ECANCELED);
	expect_violations(1);
	client_close(&client);
	client_open(&client, 1);
	hang(1);
	sequence = submit(&client);
	args = (struct drm_gem_close){ .handle = client.handles[1] };
	assert_int_equal(drmIoctl(client.fd, DRM_IOCTL_GEM_CLOSE, &args), 0);
	hang(0);
	assert_int_equal(wait_for(&client, sequence), -ECANCELED);
	expect_violations(1);
	client_close(&client);
}

TEST(closing_does_not_wait_for_a_slow_engine)
{
	struct timespec start, end;
	struct client client;

	client_open(&client, 1);
	dst[0] = 100;
	sim_write("engine_bytes_per_s", "1000"); /* 4 s for the first, more for the others */
	(void)submit(&client);
	(void)submit(&client);
	(void)submit(&client);
	clock_gettime(CLOCK_MONOTONIC, &start);
	client_close(&client);
	clock_gettime(CLOCK_MONOTONIC, &end);
	sim_write("engine_bytes_per_s", "0");
	assert_true(end.tv_sec - start.tv_sec < 4);
	expect_violations(0);
}
