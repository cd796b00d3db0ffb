// SPDX-License-Identifier: GPL-2.0-only
/*
 * What becomes of command buffers whose file, context or buffers go away before they have run. Raw
 * ioctls, as libdrm shares one device between the files of a process. */
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>

#include <amdgpu_drm.h>
#include <xf86drm.h>

#include "accept.h"

#define IB_VA  0x100000ull
#define SRC_VA 0x200000ull
#define DST_VA 0x300000ull
#define BYTES  4096u

/* An open file that can copy one page of its own onto the page that all share. */
struct client {
	int fd;
	uint32_t context, list, handles[3];
	uint32_t *ib, *src;
};

static const char *node;
static int dst_dmabuf;
static volatile uint32_t *dst;

static uint32_t create(int fd)
{
	union drm_amdgpu_gem_create args = { .in = { .bo_size = BYTES,
						     .domains = AMDGPU_GEM_DOMAIN_GTT } };

	CHECK_INT(drmIoctl(fd, DRM_IOCTL_AMDGPU_GEM_CREATE, &args), 0);
	return args.out.handle;
}

static void *map_cpu(int fd, uint32_t handle)
{
	union drm_amdgpu_gem_mmap args = { .in = { .handle = handle } };
	void *memory;

	CHECK_INT(drmIoctl(fd, DRM_IOCTL_AMDGPU_GEM_MMAP, &args), 0);
	memory =
		mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)args.out.addr_ptr);
	CHECK(memory != MAP_FAILED);
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

	CHECK_INT(drmIoctl(client->fd, DRM_IOCTL_AMDGPU_CTX, &args), 0);
	client->context = args.out.alloc.ctx_id;
}

static void context_free(const struct client *client)
{
	union drm_amdgpu_ctx args = { .in = { .op = AMDGPU_CTX_OP_FREE_CTX,
					      .ctx_id = client->context } };

	CHECK_INT(drmIoctl(client->fd, DRM_IOCTL_AMDGPU_CTX, &args), 0);
}

static void client_open(struct client *client, uint32_t value)
{
	struct drm_amdgpu_bo_list_entry entries[3] = { { .bo_handle = 0 } };
	union drm_amdgpu_bo_list list = { .in = { .bo_number = 3,
						  .bo_info_size = sizeof(entries[0]),
						  .bo_info_ptr = (uint64_t)entries } };
	int i;

	client->fd = open(node, O_RDWR | O_CLOEXEC);
	CHECK(client->fd >= 0);
	context_new(client);
	client->handles[0] = create(client->fd);
	client->handles[1] = create(client->fd);
	CHECK_INT(drmPrimeFDToHandle(client->fd, dst_dmabuf, &client->handles[2]), 0);
	client->ib = map_cpu(client->fd, client->handles[0]);
	client->src = map_cpu(client->fd, client->handles[1]);
	for (i = 0; i < 3; i++) {
		CHECK_INT(place(client, AMDGPU_VA_OP_MAP, client->handles[i],
				IB_VA + (uint64_t)i * (SRC_VA - IB_VA)),
			  0);
		entries[i].bo_handle = client->handles[i];
	}
	CHECK_INT(drmIoctl(client->fd, DRM_IOCTL_AMDGPU_BO_LIST, &list), 0);
	client->list = list.out.list_handle;
	memset(client->ib, 0, 32);
	put_copy(client->ib, DST_VA, SRC_VA, BYTES);
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

	CHECK_INT(drmIoctl(client->fd, DRM_IOCTL_AMDGPU_CS, &args), 0);
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

/* Everything that was given to the engine before has had its turn when this returns. */
static void expect_after_all(uint32_t value)
{
	struct client last;

	CHECK_INT(dst[0], value);
	client_open(&last, 77);
	CHECK_INT(wait_for(&last, submit(&last)), 0);
	CHECK_INT(dst[0], 77);
	client_close(&last);
}

static void test_close(void)
{
	struct client client;

	client_open(&client, 1);
	dst[0] = 100;
	hang(1);
	(void)submit(&client);
	(void)submit(&client);
	client_close(&client);
	CHECK_INT(dst[0], 100);
	hang(0);
	expect_after_all(100);
	expect_violations(0);
}

/* Closing does not wait for a hang of somebody else either, and takes nobody else's work away. */
static void test_close_behind(void)
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
	CHECK_INT(dst[0], 100);
	hang(0);
	CHECK_INT(wait_for(&first, sequence), 0);
	expect_after_all(1);
	client_close(&first);
	expect_violations(0);
}

static void *wait_in_thread(void *client)
{
	return (void *)(long)wait_for(client, 1);
}

/* A freed context takes its own work along; whoever waits for that is told. */
static void test_context(void)
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
	CHECK_INT(pthread_create(&thread, NULL, wait_in_thread, &client), 0);
	usleep(200000);
	freed = client.context;
	context_free(&client);
	CHECK_INT(pthread_join(thread, &result), 0);
	CHECK_INT((long)result, -ECANCELED);
	context_new(&client);
	CHECK_INT(client.context, freed);
	CHECK_INT(dst[0], 100);
	client.src[0] = 5;
	sequence = submit(&client);
	CHECK_INT(sequence, 1);
	hang(0);
	CHECK_INT(wait_for(&client, sequence), 0);
	expect_after_all(5);
	client_close(&client);
	expect_violations(0);
}

/* Who takes a buffer away from work that is still to be done is at fault. */
static void test_unmap(void)
{
	struct drm_gem_close args;
	struct client client;
	uint64_t sequence;

	client_open(&client, 1);
	hang(1);
	sequence = submit(&client);
	CHECK_INT(place(&client, AMDGPU_VA_OP_UNMAP, client.handles[2], DST_VA), 0);
	hang(0);
	CHECK_INT(wait_for(&client, sequence), -ECANCELED);
	expect_violations(1);
	client_close(&client);
	client_open(&client, 1);
	hang(1);
	sequence = submit(&client);
	args = (struct drm_gem_close){ .handle = client.handles[1] };
	CHECK_INT(drmIoctl(client.fd, DRM_IOCTL_GEM_CLOSE, &args), 0);
	hang(0);
	CHECK_INT(wait_for(&client, sequence), -ECANCELED);
	expect_violations(1);
	client_close(&client);
}

/* Nobody waits for a slow engine to come to the end of work that nobody wants. */
static void test_slow(void)
{
	struct timespec start, end;
	struct client client;

	client_open(&client, 1);
	dst[0] = 100;
	sim_write("engine_bytes_per_s", "1000"); /* 4 s for the first, and more for the others */
	(void)submit(&client);
	(void)submit(&client);
	(void)submit(&client);
	clock_gettime(CLOCK_MONOTONIC, &start);
	client_close(&client);
	clock_gettime(CLOCK_MONOTONIC, &end);
	sim_write("engine_bytes_per_s", "0");
	CHECK(end.tv_sec - start.tv_sec < 4);
	expect_violations(0);
}

int main(int argc, char **argv)
{
	uint32_t handle;
	int fd;

	node = argc > 1 ? argv[1] : "/dev/dri/renderD128";
	sim_write("violations", "0");
	fd = open(node, O_RDWR);
	CHECK(fd >= 0);
	handle = create(fd);
	dst = map_cpu(fd, handle);
	CHECK_INT(drmPrimeHandleToFD(fd, handle, DRM_CLOEXEC, &dst_dmabuf), 0);
	test_close();
	test_close_behind();
	test_context();
	test_unmap();
	test_slow();
	printf("drm_close: ok\n");
	return 0;
}
