// SPDX-License-Identifier: GPL-2.0-only
/* Drives the copy engine of one GPU through libdrm_amdgpu: staging memory that is registered once,
 * one context, and one command buffer per slot. transfer.c chooses the bytes to copy. */
#include "content/sdma.h"

#include <amdgpu.h>
#include <amdgpu_drm.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "amdgpu_plugin_util.h"
#include "content/content.h"
#include "content/sdma_packet.h"
#include "content/slots.h"
#include "kernel/kfd.h"
#include "kernel/render_node.h"

/* The time between two polls of a fence, as a fraction of the time waited so far: a short copy
 * waits little, and a long copy needs few polls. */
#define POLL_FRACTION 8
#define POLL_NS_MIN   20000
#define POLL_NS_MAX   5000000

/* The last page fault in the page tables of a file, or all zero. Linux 6.8; older kernels answer
 * EINVAL. Not in the headers of older systems (AMDGPU_INFO_GPUVM_FAULT). */
#define INFO_VM_FAULT 0x23

/* available_rings has one bit per ring. */
#define RINGS_MAX 32

/* Copies of a ring end in the order of their submission. Their fences are numbered from 1. */
struct ring {
	/* Guards the fields below. */
	pthread_mutex_t lock;
	pthread_cond_t polled;
	/* The last fence known to have signaled. */
	uint64_t ended;
	/* The fence whose time is measured, and the start of its time. */
	uint64_t timed;
	double timed_since;
	/* One thread polls for all threads that wait. */
	bool polling;
};

struct slot {
	unsigned int ring;
	/* The command buffer. */
	struct sdma_bo ib;
	uint32_t *dwords;
	uint64_t fence;
	bool busy;
	const struct sdma_bo *memory;
	/* One per slot: a submission looks up all pages of what it names (amdgpu_cs.c). */
	struct sdma_bo staging;
};

struct sdma {
	amdgpu_device_handle device;
	amdgpu_context_handle context;
	struct packet_format format;
	size_t slot_size;
	size_t ib_size;
	/* The rings that the driver offers for copies, one bit each. */
	uint32_t available_rings;
	struct ring rings[RINGS_MAX];
	char *staging;
	size_t staging_size;
	/* The engine may still write to the staging memory. */
	bool hung;
	unsigned int num_slots;
	struct slot *slots;
};

/* libdrm turns most failures into -errno, but passes on the -1 of PRIME calls. */
static int libdrm_errno(int ret)
{
	return ret == -1 && errno ? -errno : ret;
}

/* The BO that the dma-buf leads to. The driver tells no mmap offset of a BO that the CPU cannot map
 * (EPERM). */
static int check_offset(struct sdma *gpu, amdgpu_bo_handle bo, uint64_t mmap_offset)
{
	union drm_amdgpu_gem_mmap map = { 0 };
	int ret = amdgpu_bo_export(bo, amdgpu_bo_handle_type_kms, &map.in.handle);

	if (!ret)
		ret = xioctl(amdgpu_device_get_fd(gpu->device), DRM_IOCTL_AMDGPU_GEM_MMAP, &map);
	if (ret < 0)
		return ret == -EPERM ? 0 : ret;
	return map.out.addr_ptr == mmap_offset ? 0 : -ESTALE;
}

/* Maps the BO at a GPU address that libdrm chooses, @lead bytes after a huge page if it is large.
 * Frees the BO on error. */
static int wrap_bo(struct sdma *gpu, amdgpu_bo_handle handle, uint64_t size, uint64_t lead,
		   struct sdma_bo *ret_bo)
{
	const uint64_t whole = round_up(size, KFD_GPU_PAGE);
	const uint64_t unit = whole < SDMA_HUGE_PAGE ? KFD_GPU_PAGE : SDMA_HUGE_PAGE;
	amdgpu_va_handle range;
	uint64_t va;
	int ret = amdgpu_va_range_alloc(gpu->device, amdgpu_gpu_va_range_general,
					lead % unit + whole, unit, 0, &va, &range, 0);

	if (!ret) {
		va += lead % unit;
		ret = amdgpu_bo_va_op(handle, 0, whole, va, 0, AMDGPU_VA_OP_MAP);
		if (ret < 0)
			(void)amdgpu_va_range_free(range);
	}
	if (ret < 0) {
		(void)amdgpu_bo_free(handle);
		return ret;
	}
	*ret_bo = (struct sdma_bo){ handle, range, va, whole };
	return 0;
}

int sdma_bo_import(struct sdma *gpu, const struct content_bo *bo, struct sdma_bo *ret_bo)
{
	struct amdgpu_bo_import_result import;
	int ret;

	ret = libdrm_errno(amdgpu_bo_import(gpu->device, amdgpu_bo_handle_type_dma_buf_fd,
					    (uint32_t)bo->dmabuf_fd, &import));
	if (ret < 0)
		return ret;
	if (import.alloc_size < bo->size)
		ret = -EINVAL;
	else if (bo->mmap_offset)
		ret = check_offset(gpu, import.buf_handle, bo->mmap_offset);
	if (ret < 0) {
		(void)amdgpu_bo_free(import.buf_handle);
		return ret;
	}
	return wrap_bo(gpu, import.buf_handle, bo->size, 0, ret_bo);
}

void sdma_bo_release(struct sdma_bo *bo)
{
	if (!bo->bo)
		return;
	(void)amdgpu_bo_va_op(bo->bo, 0, bo->size, bo->va, 0, AMDGPU_VA_OP_UNMAP);
	(void)amdgpu_va_range_free(bo->va_range);
	(void)amdgpu_bo_free(bo->bo);
	*bo = (struct sdma_bo){ 0 };
}

/* Reads the engine's packets and rings. The number of engines is no substitute for the rings: some
 * engines belong to KFD, others to partitions. -ENODATA: no ring is for command submission. */
static int find_engine(struct sdma *gpu)
{
	struct drm_amdgpu_info_hw_ip info = { 0 };
	int ret = amdgpu_query_hw_ip_info(gpu->device, AMDGPU_HW_IP_DMA, 0, &info);

	if (!ret)
		ret = sdma_packet_find_format(info.hw_ip_version_major, info.hw_ip_version_minor,
					      &gpu->format);
	if (ret < 0)
		return ret;
	gpu->available_rings = info.available_rings;
	return gpu->available_rings ? 0 : -ENODATA;
}

/* Distributes the slots over the rings in turn. */
static unsigned int choose_ring(uint32_t rings, unsigned int slot)
{
	unsigned int ring = 0;

	for (slot %= (unsigned int)__builtin_popcount(rings);; ring++) {
		if (rings & 1u << ring && !slot--)
			return ring;
	}
}

/* libdrm shares one handle among all users of a device. It aborts the process if one user looks the
 * handle up while the last other user releases it. Transfers of several tasks run at the same time,
 * also on one GPU, so this lock orders both calls. */
static pthread_mutex_t libdrm_devices = PTHREAD_MUTEX_INITIALIZER;

static int get_device(int fd, amdgpu_device_handle *ret_device)
{
	uint32_t major, minor;

	HOLD(&libdrm_devices);
	return libdrm_errno(amdgpu_device_initialize(fd, &major, &minor, ret_device));
}

static void put_device(amdgpu_device_handle device)
{
	HOLD(&libdrm_devices);
	(void)amdgpu_device_deinitialize(device);
}

static int open_device(struct sdma *gpu, uint32_t render_minor)
{
	_cleanup_close_ int fd = -1;
	struct stat own, shared;
	int ret = render_node_open(render_minor, 0, &fd);

	if (ret < 0)
		return ret;
	ret = get_device(fd, &gpu->device);
	if (ret < 0)
		return ret;

	/* libdrm treats two GPUs whose primary nodes it cannot find as one, and then every call
	 * reaches the other GPU. */
	if (fstat(fd, &own) < 0 || fstat(amdgpu_device_get_fd(gpu->device), &shared) < 0)
		return -errno;
	if (shared.st_rdev != own.st_rdev)
		return -ENODEV;

	ret = find_engine(gpu);
	return ret < 0 ? ret : amdgpu_cs_ctx_create(gpu->device, &gpu->context);
}

int sdma_register(struct sdma *gpu, char *memory, size_t size, struct sdma_bo *ret_bo)
{
	amdgpu_bo_handle handle;
	int ret = amdgpu_create_bo_from_user_mem(gpu->device, memory, size, &handle);

	/* The place in a huge page is that in memory, so that the GPU sees huge pages, too. */
	return ret < 0 ? ret : wrap_bo(gpu, handle, size, (uintptr_t)memory, ret_bo);
}

static int make_staging(struct sdma *gpu)
{
	int ret;

	gpu->staging_size = slots_round_up(gpu->num_slots * gpu->slot_size);
	gpu->staging = slots_map(gpu->staging_size);
	ret = gpu->staging ? 0 : -ENOMEM;
	for (unsigned int i = 0; !ret && i < gpu->num_slots; i++) {
		ret = sdma_register(gpu, sdma_slot_memory(gpu, i), gpu->slot_size,
				    &gpu->slots[i].staging);
		sdma_set_memory(gpu, i, &gpu->slots[i].staging);
	}
	return ret;
}

/* Space for all pieces of a slot, for the pieces that the packet's maximum splits, and for padding.
 */
static size_t ib_bytes(const struct sdma *gpu)
{
	size_t packets = SDMA_SLOT_PIECES(gpu->slot_size) + gpu->slot_size / gpu->format.copy_max;
	size_t bytes = (packets * PACKET_COPY_DWORDS + PACKET_PAD_DWORDS) * sizeof(uint32_t);

	return round_up(bytes, KFD_GPU_PAGE);
}

static int make_ib(struct sdma *gpu, struct slot *slot)
{
	struct amdgpu_bo_alloc_request request = {
		.alloc_size = gpu->ib_size,
		.phys_alignment = KFD_GPU_PAGE,
		.preferred_heap = AMDGPU_GEM_DOMAIN_GTT,
	};
	amdgpu_bo_handle handle;
	void *address = NULL;
	int ret = amdgpu_bo_alloc(gpu->device, &request, &handle);

	if (!ret)
		ret = wrap_bo(gpu, handle, gpu->ib_size, 0, &slot->ib);
	if (!ret)
		ret = amdgpu_bo_cpu_map(handle, &address);
	if (ret < 0)
		return ret;
	slot->dwords = address;
	return 0;
}

static int set_up(struct sdma *gpu, uint32_t render_minor)
{
	int ret;

	ret = open_device(gpu, render_minor);
	if (ret < 0)
		return ret;
	gpu->ib_size = ib_bytes(gpu);
	for (unsigned int i = 0; i < gpu->num_slots; i++) {
		gpu->slots[i].ring = choose_ring(gpu->available_rings, i);
		ret = make_ib(gpu, &gpu->slots[i]);
		if (ret < 0)
			return ret;
	}
	return 0;
}

int sdma_open_bare(uint32_t render_minor, unsigned int slots, size_t slot_size,
		   struct sdma **ret_gpu)
{
	struct sdma *gpu = calloc(1, sizeof(*gpu));
	int ret;

	if (!gpu)
		return -ENOMEM;
	gpu->slot_size = slot_size;
	gpu->num_slots = slots;
	gpu->slots = calloc(slots + 1, sizeof(*gpu->slots));
	for (unsigned int i = 0; i < RINGS_MAX; i++) {
		(void)pthread_mutex_init(&gpu->rings[i].lock, NULL);
		(void)pthread_cond_init(&gpu->rings[i].polled, NULL);
	}
	ret = gpu->slots ? set_up(gpu, render_minor) : -ENOMEM;
	if (ret < 0) {
		sdma_close(gpu);
		return ret;
	}
	*ret_gpu = gpu;
	return 0;
}

int sdma_open(uint32_t render_minor, unsigned int slots, size_t slot_size, struct sdma **ret_gpu)
{
	struct sdma *gpu = NULL;
	int ret = sdma_open_bare(render_minor, slots, round_up(slot_size, (uint64_t)getpagesize()),
				 &gpu);

	if (!ret)
		ret = make_staging(gpu);
	if (ret < 0) {
		sdma_close(gpu);
		return ret;
	}
	*ret_gpu = gpu;
	return 0;
}

void sdma_stop(struct sdma *gpu)
{
	if (gpu->context)
		(void)amdgpu_cs_ctx_free(gpu->context);
	gpu->context = NULL;
}

void sdma_close(struct sdma *gpu)
{
	if (!gpu)
		return;
	sdma_stop(gpu);
	for (unsigned int i = 0; gpu->slots && i < gpu->num_slots; i++) {
		struct slot *slot = &gpu->slots[i];

		gpu->hung |= slot->busy;
		if (slot->dwords)
			(void)amdgpu_bo_cpu_unmap(slot->ib.bo);
		sdma_bo_release(&slot->ib);
		sdma_bo_release(&slot->staging);
	}
	if (gpu->device)
		put_device(gpu->device);
	if (gpu->staging && !gpu->hung)
		(void)munmap(gpu->staging, gpu->staging_size);
	for (unsigned int i = 0; i < RINGS_MAX; i++) {
		(void)pthread_mutex_destroy(&gpu->rings[i].lock);
		(void)pthread_cond_destroy(&gpu->rings[i].polled);
	}
	free(gpu->slots);
	free(gpu);
}

void sdma_set_memory(struct sdma *gpu, unsigned int slot, const struct sdma_bo *memory)
{
	gpu->slots[slot].memory = memory;
}

void *sdma_slot_memory(struct sdma *gpu, unsigned int slot)
{
	return gpu->staging + slot * gpu->slot_size;
}

bool sdma_is_busy(const struct sdma *gpu, unsigned int slot)
{
	return gpu->slots[slot].busy;
}

/* Writes the slot's command buffer; returns its length in dwords. */
static size_t fill_ib(struct sdma *gpu, unsigned int slot, enum sdma_direction direction,
		      const struct sdma_piece *pieces, size_t num_pieces)
{
	uint32_t *dwords = gpu->slots[slot].dwords;
	size_t used = 0;

	for (size_t i = 0; i < num_pieces; i++) {
		const struct sdma_piece *piece = &pieces[i];
		uint64_t in_bo = piece->bo->va + piece->offset;
		uint64_t in_slot = gpu->slots[slot].memory->va + piece->slot_offset;
		bool save = direction == SDMA_BO_TO_SLOT;

		used += sdma_packet_emit_copy(&gpu->format, dwords + used, save ? in_bo : in_slot,
					      save ? in_slot : in_bo, piece->size);
	}
	while (used % PACKET_PAD_DWORDS)
		dwords[used++] = PACKET_NOP;
	return used;
}

/* The engine may only access BOs that the submission lists. */
static int make_bo_list(struct sdma *gpu, unsigned int slot, const struct sdma_piece *pieces,
			size_t num_pieces, amdgpu_bo_list_handle *ret_list)
{
	_cleanup_free_ amdgpu_bo_handle *bos = calloc(num_pieces + 2, sizeof(*bos));
	uint32_t count = 0;

	if (!bos)
		return -ENOMEM;
	bos[count++] = gpu->slots[slot].ib.bo;
	bos[count++] = gpu->slots[slot].memory->bo;
	for (size_t i = 0; i < num_pieces; i++)
		bos[count++] = pieces[i].bo->bo;
	return amdgpu_bo_list_create(gpu->device, count, bos, NULL, ret_list);
}

/* Called with the lock. The time of a copy starts when it is the oldest one in its ring. The thread
 * that submitted the copy may record that, or the thread that polls. */
static void start_timer(struct ring *ring)
{
	if (ring->timed == ring->ended + 1)
		return;
	ring->timed = ring->ended + 1;
	ring->timed_since = now_seconds();
}

static void start_timer_if_first(struct ring *ring, uint64_t fence)
{
	HOLD(&ring->lock);
	if (ring->ended + 1 == fence)
		start_timer(ring);
}

int sdma_submit(struct sdma *gpu, unsigned int slot_index, enum sdma_direction direction,
		const struct sdma_piece *pieces, size_t num_pieces)
{
	struct slot *slot = &gpu->slots[slot_index];
	struct amdgpu_cs_ib_info ib = { .ib_mc_address = slot->ib.va };
	struct amdgpu_cs_request request = {
		.ip_type = AMDGPU_HW_IP_DMA, .ring = slot->ring, .number_of_ibs = 1, .ibs = &ib
	};
	size_t room = gpu->ib_size / sizeof(uint32_t) - PACKET_PAD_DWORDS;
	size_t needed = 0;
	int ret;

	for (size_t i = 0; i < num_pieces; i++)
		needed += sdma_packet_copy_dwords(&gpu->format, pieces[i].size);
	if (needed > room)
		return -E2BIG;

	ib.size = (uint32_t)fill_ib(gpu, slot_index, direction, pieces, num_pieces);
	ret = make_bo_list(gpu, slot_index, pieces, num_pieces, &request.resources);
	if (ret < 0)
		return ret;
	ret = amdgpu_cs_submit(gpu->context, 0, &request, 1);
	(void)amdgpu_bo_list_destroy(request.resources);
	if (ret < 0)
		return ret;
	slot->fence = request.seq_no;
	slot->busy = true;
	start_timer_if_first(&gpu->rings[slot->ring], slot->fence);
	return 0;
}

static void sleep_before_poll(double waited_s)
{
	double nanoseconds = waited_s * 1e9 / POLL_FRACTION;
	struct timespec pause = { .tv_nsec = nanoseconds < POLL_NS_MIN   ? POLL_NS_MIN
					     : nanoseconds > POLL_NS_MAX ? POLL_NS_MAX
									 : (long)nanoseconds };

	(void)nanosleep(&pause, NULL);
}

/* Polls the oldest fence of the ring, and sleeps if it has not signaled. Called with the lock,
 * which this function releases meanwhile. This process may have been stopped itself, so only a poll
 * that starts after the timeout can report -ETIME. */
static int poll_fence(struct sdma *gpu, struct ring *ring, uint64_t timeout_s)
{
	struct amdgpu_cs_fence fence = {
		.context = gpu->context,
		.ip_type = AMDGPU_HW_IP_DMA,
		.ring = (uint32_t)(ring - gpu->rings),
		.fence = ring->ended + 1,
	};
	uint32_t expired = 0;
	double waited;
	int ret;

	start_timer(ring);
	waited = now_seconds() - ring->timed_since;
	ring->polling = true;
	(void)pthread_mutex_unlock(&ring->lock);
	ret = amdgpu_cs_query_fence_status(&fence, 0, AMDGPU_QUERY_FENCE_TIMEOUT_IS_ABSOLUTE,
					   &expired);
	if (!ret && !expired && waited > (double)timeout_s)
		ret = -ETIME;
	else if (!ret && !expired)
		sleep_before_poll(waited);
	(void)pthread_mutex_lock(&ring->lock);
	ring->polling = false;
	if (!ret && expired)
		ring->ended = fence.fence;
	(void)pthread_cond_broadcast(&ring->polled);
	return ret;
}

/* Polls instead of waiting in the kernel: the kernel would compare the timeout with its own clock,
 * and a restored task may live in a time namespace with another clock. */
static int wait_for_fence(struct sdma *gpu, struct ring *ring, uint64_t fence, uint64_t timeout_s)
{
	int ret = 0;

	HOLD(&ring->lock);
	while (!ret && ring->ended < fence) {
		if (ring->polling)
			(void)pthread_cond_wait(&ring->polled, &ring->lock);
		else
			ret = poll_fence(gpu, ring, timeout_s);
	}
	return ret;
}

int sdma_wait(struct sdma *gpu, unsigned int slot_index, uint64_t timeout_s)
{
	struct slot *slot = &gpu->slots[slot_index];
	uint64_t flags = 0;
	int ret;

	if (!slot->busy)
		return 0;
	ret = wait_for_fence(gpu, &gpu->rings[slot->ring], slot->fence, timeout_s);
	if (ret < 0)
		return ret;
	slot->busy = false;

	/* After a fault the fence signals too, but the copy may be incomplete. Memory errors are
	 * left to memory_errors.h: a new context reports all since the driver was loaded. */
	ret = amdgpu_cs_query_reset_state2(gpu->context, &flags);
	if (ret < 0)
		return ret;
	return (flags & RENDER_NODE_SPOILED) ? -EIO : 0;
}

int sdma_check_faults(struct sdma *gpu)
{
	uint64_t fault[2] = { 0 };
	int ret = amdgpu_query_info(gpu->device, INFO_VM_FAULT, sizeof(fault), fault);

	if (ret < 0)
		return ret == -EINVAL ? 0 : ret;
	return fault[0] || fault[1] ? -EFAULT : 0;
}
