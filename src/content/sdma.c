// SPDX-License-Identifier: GPL-2.0-only
/* The copy engine of one GPU, by way of libdrm_amdgpu: staging memory registered once, one context,
 * one command buffer a slot. What is copied and where it goes is the content unit's business. */
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

#include "amdgpu_plugin_util.h"
#include "content/sdma_packet.h"
#include "kernel/render_node.h"

#define GPU_PAGE 4096u

/* libdrm's list of names has 16 KiB, and grows by a few lines a year. */
#define NAMES_SIZE_MAX (1 << 20)

/* What the kernel can map as one page, so that a slot costs the GPU few entries
 * of its page table. */
#define HUGE_PAGE (2u << 20)

/* Between two looks at a fence: a part of the time that it has taken so far, so that many short
 * copies are not held up, nor many looks taken at a long one. */
#define PAUSE_PART   8
#define PAUSE_NS_MIN 20000
#define PAUSE_NS_MAX 5000000

/* The kernel has a few more for some engines (AMDGPU_HW_IP_INSTANCE_MAX_COUNT); which
 * there are is asked. */
#define RINGS_MAX 32

/* Copies of a ring end in the order in which they began, and have numbers from 1. */
struct ring {
	/* Guards what follows. */
	pthread_mutex_t lock;
	pthread_cond_t looked;
	/* The last copy known to have ended; one after it, and since when it is waited for. */
	uint64_t ended;
	uint64_t awaited;
	double since;
	/* Somebody is looking, for all who wait. */
	bool looking;
};

struct slot {
	unsigned int ring;
	amdgpu_bo_handle ib;
	amdgpu_va_handle ib_range;
	uint64_t ib_va;
	uint32_t *dwords;
	uint64_t fence;
	bool busy;
};

struct sdma {
	amdgpu_device_handle device;
	amdgpu_context_handle context;
	struct packet_format format;
	size_t slot_size;
	size_t ib_size;
	/* The rings of the copy engine that may be used, a bit each. */
	uint32_t available_rings;
	struct ring rings[RINGS_MAX];
	char *staging;
	struct sdma_bo staging_bo;
	/* The engine may still write to the staging memory. */
	bool hung;
	unsigned int num_slots;
	struct slot *slots;
};

/* Maps @bo at an address of libdrm's choice. */
static int map_bo(struct sdma *gpu, amdgpu_bo_handle bo, uint64_t size, amdgpu_va_handle *ret_range,
		  uint64_t *ret_va)
{
	amdgpu_va_handle range;
	uint64_t va;
	int ret;

	ret = amdgpu_va_range_alloc(gpu->device, amdgpu_gpu_va_range_general, size, GPU_PAGE, 0,
				    &va, &range, 0);
	if (ret < 0)
		return ret;
	ret = amdgpu_bo_va_op(bo, 0, size, va, 0, AMDGPU_VA_OP_MAP);
	if (ret < 0) {
		(void)amdgpu_va_range_free(range);
		return ret;
	}
	*ret_range = range;
	*ret_va = va;
	return 0;
}

static void unmap_bo(amdgpu_bo_handle bo, uint64_t size, amdgpu_va_handle range, uint64_t va)
{
	(void)amdgpu_bo_va_op(bo, 0, size, va, 0, AMDGPU_VA_OP_UNMAP);
	(void)amdgpu_va_range_free(range);
}

/* libdrm turns most failures into -errno, but lets a -1 of PRIME calls through. */
static int from_libdrm(int ret)
{
	return ret == -1 && errno ? -errno : ret;
}

static int adopt(struct sdma *gpu, amdgpu_bo_handle handle, uint64_t size, struct sdma_bo *ret_bo)
{
	struct sdma_bo bo = { .bo = handle };
	amdgpu_va_handle range;
	int ret;

	size = (size + GPU_PAGE - 1) / GPU_PAGE * GPU_PAGE;
	bo.size = size;
	ret = map_bo(gpu, handle, size, &range, &bo.va);
	if (ret < 0) {
		(void)amdgpu_bo_free(handle);
		return ret;
	}
	bo.va_range = range;
	*ret_bo = bo;
	return 0;
}

int sdma_bo_import(struct sdma *gpu, int dmabuf_fd, uint64_t size, struct sdma_bo *ret_bo)
{
	struct amdgpu_bo_import_result import;
	int ret;

	ret = from_libdrm(amdgpu_bo_import(gpu->device, amdgpu_bo_handle_type_dma_buf_fd,
					   (uint32_t)dmabuf_fd, &import));
	if (ret < 0)
		return ret;
	if (import.alloc_size < size) {
		(void)amdgpu_bo_free(import.buf_handle);
		return -EINVAL;
	}
	return adopt(gpu, import.buf_handle, size, ret_bo);
}

void sdma_bo_release(struct sdma_bo *bo)
{
	if (!bo->bo)
		return;
	unmap_bo(bo->bo, bo->size, bo->va_range, bo->va);
	(void)amdgpu_bo_free(bo->bo);
	*bo = (struct sdma_bo){ 0 };
}

/* Not the number of engines: of those, some belong to KFD and some to partitions. */
static int find_rings(struct sdma *gpu)
{
	struct drm_amdgpu_info_hw_ip info = { 0 };
	int ret = amdgpu_query_hw_ip_info(gpu->device, AMDGPU_HW_IP_DMA, 0, &info);

	if (ret < 0)
		return ret;
	gpu->available_rings = info.available_rings;
	return gpu->available_rings ? 0 : -ENODEV;
}

/* The ring of a slot: they take turns. */
static unsigned int choose_ring(uint32_t rings, unsigned int slot)
{
	unsigned int ring = 0;

	for (slot %= (unsigned int)__builtin_popcount(rings);; ring++) {
		if (rings & 1u << ring && !slot--)
			return ring;
	}
}

/* libdrm shares one handle among all who open a device, and aborts the process if one of them finds
 * it while the last other is giving it up. Tasks of a restore have their contents filled in side by
 * side, also on one GPU. */
static pthread_mutex_t libdrm_devices = PTHREAD_MUTEX_INITIALIZER;

static int get_device(int fd, amdgpu_device_handle *ret_device)
{
	uint32_t major, minor;
	int ret;

	(void)pthread_mutex_lock(&libdrm_devices);
	ret = from_libdrm(amdgpu_device_initialize(fd, &major, &minor, ret_device));
	(void)pthread_mutex_unlock(&libdrm_devices);
	return ret;
}

static void put_device(amdgpu_device_handle device)
{
	(void)pthread_mutex_lock(&libdrm_devices);
	(void)amdgpu_device_deinitialize(device);
	(void)pthread_mutex_unlock(&libdrm_devices);
}

/* libdrm reads lines of its list of names until it ends, and takes memory for each. A task that
 * fills its own GPUs sees the files of its container, where the name may be of a pipe, or of
 * zeros. A file that cannot be had is none to libdrm, too. */
static int check_names(const char *path)
{
	struct stat names;

	if (stat(path, &names) < 0)
		return errno == ENOMEM ? -ENOMEM : 0;
	return S_ISREG(names.st_mode) && names.st_size <= NAMES_SIZE_MAX ? 0 : -EMEDIUMTYPE;
}

/* Where libdrm's builds have it: distributions', AMD's, one's own. */
int sdma_check_names(void)
{
	static const char *const paths[] = {
		"/usr/share/libdrm/amdgpu.ids",
		"/opt/amdgpu/share/libdrm/amdgpu.ids",
		"/usr/local/share/libdrm/amdgpu.ids",
	};
	int ret = 0;

	for (size_t i = 0; !ret && i < ARRAY_SIZE(paths); i++)
		ret = check_names(paths[i]);
	return ret;
}

static int open_device(struct sdma *gpu, uint32_t render_minor)
{
	_cleanup_close_ int fd = -1;
	struct amdgpu_gpu_info info;
	struct stat ours, theirs;
	int ret = render_node_open(render_minor, 0, &fd);

	if (ret < 0)
		return ret;
	ret = get_device(fd, &gpu->device);
	if (ret < 0)
		return ret;

	/* libdrm takes two GPUs whose primary node it cannot find for one, and then every call goes
	 * to the other GPU. */
	if (fstat(fd, &ours) < 0 || fstat(amdgpu_device_get_fd(gpu->device), &theirs) < 0)
		return -errno;
	if (theirs.st_rdev != ours.st_rdev)
		return -ENODEV;

	ret = amdgpu_query_gpu_info(gpu->device, &info);
	if (ret < 0)
		return ret;
	ret = sdma_packet_find_format(info.family_id, &gpu->format);
	if (!ret)
		ret = find_rings(gpu);
	return ret < 0 ? ret : amdgpu_cs_ctx_create(gpu->device, &gpu->context);
}

/* Memory that begins where a huge page can. Private and anonymous: the kernel refuses other memory
 * as a user pointer made by libdrm. */
static char *map_aligned(size_t size)
{
	size_t room = size < HUGE_PAGE ? size : size + HUGE_PAGE - GPU_PAGE;
	char *memory = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	size_t head;

	if (memory == MAP_FAILED)
		return NULL;
	if (room == size)
		return memory;
	head = -(uintptr_t)memory % HUGE_PAGE;
	if (head)
		(void)munmap(memory, head);
	if (room - head - size)
		(void)munmap(memory + head + size, room - head - size);
	/* cppcheck-suppress deallocret ; what goes back is what is around it */
	return memory + head;
}

static int make_staging(struct sdma *gpu)
{
	size_t size = gpu->num_slots * gpu->slot_size;
	amdgpu_bo_handle handle;
	int ret;

	gpu->staging = map_aligned(size);
	if (!gpu->staging)
		return -ENOMEM;
	/* A child of CRIU's that copied the page would leave the GPU with the other copy. */
	(void)madvise(gpu->staging, size, MADV_DONTFORK);
	(void)madvise(gpu->staging, size, MADV_HUGEPAGE);
	ret = amdgpu_create_bo_from_user_mem(gpu->device, gpu->staging, size, &handle);
	return ret < 0 ? ret : adopt(gpu, handle, size, &gpu->staging_bo);
}

/* Room for as many pieces as a slot may have, for those split at the packet's
 * maximum, and for padding. */
static size_t ib_bytes(const struct sdma *gpu)
{
	size_t packets = SDMA_SLOT_PIECES(gpu->slot_size) + gpu->slot_size / gpu->format.copy_max;
	size_t bytes = (packets * PACKET_COPY_DWORDS + PACKET_PAD_DWORDS) * sizeof(uint32_t);

	return (bytes + GPU_PAGE - 1) / GPU_PAGE * GPU_PAGE;
}

static int make_ib(struct sdma *gpu, struct slot *slot)
{
	struct amdgpu_bo_alloc_request request = {
		.alloc_size = gpu->ib_size,
		.phys_alignment = GPU_PAGE,
		.preferred_heap = AMDGPU_GEM_DOMAIN_GTT,
	};
	void *address;
	int ret;

	ret = amdgpu_bo_alloc(gpu->device, &request, &slot->ib);
	if (ret < 0)
		return ret;
	ret = map_bo(gpu, slot->ib, gpu->ib_size, &slot->ib_range, &slot->ib_va);
	if (ret < 0)
		return ret;
	ret = amdgpu_bo_cpu_map(slot->ib, &address);
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
	ret = make_staging(gpu);
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

int sdma_open(uint32_t render_minor, unsigned int slots, size_t slot_size, struct sdma **ret_gpu)
{
	struct sdma *gpu = calloc(1, sizeof(*gpu));
	int ret;

	if (!gpu)
		return -ENOMEM;
	gpu->slot_size = slot_size;
	gpu->num_slots = slots;
	gpu->slots = calloc(slots, sizeof(*gpu->slots));
	for (unsigned int i = 0; i < RINGS_MAX; i++) {
		(void)pthread_mutex_init(&gpu->rings[i].lock, NULL);
		(void)pthread_cond_init(&gpu->rings[i].looked, NULL);
	}
	ret = gpu->slots ? set_up(gpu, render_minor) : -ENOMEM;
	if (ret < 0) {
		sdma_close(gpu);
		return ret;
	}
	*ret_gpu = gpu;
	return 0;
}

static void free_ib(const struct sdma *gpu, struct slot *slot)
{
	if (slot->dwords)
		(void)amdgpu_bo_cpu_unmap(slot->ib);
	if (slot->ib_range)
		unmap_bo(slot->ib, gpu->ib_size, slot->ib_range, slot->ib_va);
	if (slot->ib)
		(void)amdgpu_bo_free(slot->ib);
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
		gpu->hung |= gpu->slots[i].busy;
		free_ib(gpu, &gpu->slots[i]);
	}
	sdma_bo_release(&gpu->staging_bo);
	if (gpu->device)
		put_device(gpu->device);
	if (gpu->staging && !gpu->hung)
		(void)munmap(gpu->staging, gpu->num_slots * gpu->slot_size);
	for (unsigned int i = 0; i < RINGS_MAX; i++) {
		(void)pthread_mutex_destroy(&gpu->rings[i].lock);
		(void)pthread_cond_destroy(&gpu->rings[i].looked);
	}
	free(gpu->slots);
	free(gpu);
}

void *sdma_slot_memory(struct sdma *gpu, unsigned int slot)
{
	return gpu->staging + slot * gpu->slot_size;
}

/* Writes the slot's command buffer; returns its length in dwords. */
static size_t fill_ib(struct sdma *gpu, unsigned int slot, enum sdma_direction direction,
		      const struct sdma_piece *pieces, size_t num_pieces)
{
	uint64_t slot_va = gpu->staging_bo.va + slot * gpu->slot_size;
	uint32_t *dwords = gpu->slots[slot].dwords;
	size_t used = 0;

	for (size_t i = 0; i < num_pieces; i++) {
		const struct sdma_piece *piece = &pieces[i];
		uint64_t in_bo = piece->bo->va + piece->offset;
		uint64_t in_slot = slot_va + piece->slot_offset;
		bool save = direction == SDMA_BO_TO_SLOT;

		used += sdma_packet_emit_copy(&gpu->format, dwords + used, save ? in_bo : in_slot,
					      save ? in_slot : in_bo, piece->size);
	}
	while (used % PACKET_PAD_DWORDS)
		dwords[used++] = PACKET_NOP;
	return used;
}

/* The engine may only touch BOs of the list that goes with the command buffer. */
static int make_bo_list(struct sdma *gpu, unsigned int slot, const struct sdma_piece *pieces,
			size_t num_pieces, amdgpu_bo_list_handle *ret_list)
{
	_cleanup_free_ amdgpu_bo_handle *bos = calloc(num_pieces + 2, sizeof(*bos));
	uint32_t count = 0;

	if (!bos)
		return -ENOMEM;
	bos[count++] = gpu->slots[slot].ib;
	bos[count++] = gpu->staging_bo.bo;
	for (size_t i = 0; i < num_pieces; i++)
		bos[count++] = pieces[i].bo->bo;
	return amdgpu_bo_list_create(gpu->device, count, bos, NULL, ret_list);
}

/* Called with the lock. A copy has its time from when it is first in its ring: known by whoever
 * notes it first, the thread that has submitted it or one that looks. */
static void await_first(struct ring *ring)
{
	if (ring->awaited == ring->ended + 1)
		return;
	ring->awaited = ring->ended + 1;
	ring->since = now_seconds();
}

static void note_start(struct ring *ring, uint64_t fence)
{
	(void)pthread_mutex_lock(&ring->lock);
	if (ring->ended + 1 == fence)
		await_first(ring);
	(void)pthread_mutex_unlock(&ring->lock);
}

int sdma_submit(struct sdma *gpu, unsigned int slot_index, enum sdma_direction direction,
		const struct sdma_piece *pieces, size_t num_pieces)
{
	struct slot *slot = &gpu->slots[slot_index];
	struct amdgpu_cs_ib_info ib = { .ib_mc_address = slot->ib_va };
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
	note_start(&gpu->rings[slot->ring], slot->fence);
	return 0;
}

static void pause_after(double waited_s)
{
	double nanoseconds = waited_s * 1e9 / PAUSE_PART;
	struct timespec pause = { .tv_nsec = nanoseconds < PAUSE_NS_MIN   ? PAUSE_NS_MIN
					     : nanoseconds > PAUSE_NS_MAX ? PAUSE_NS_MAX
									  : (long)nanoseconds };

	(void)nanosleep(&pause, NULL);
}

/* Looks at the next copy of the ring to end, or pauses; called with the lock, which it gives up
 * meanwhile. Only a look that began too late can tell that a copy takes too long: this process may
 * have stood still itself. */
static int look(struct sdma *gpu, struct ring *ring, uint64_t timeout_s)
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

	await_first(ring);
	waited = now_seconds() - ring->since;
	ring->looking = true;
	(void)pthread_mutex_unlock(&ring->lock);
	ret = amdgpu_cs_query_fence_status(&fence, 0, AMDGPU_QUERY_FENCE_TIMEOUT_IS_ABSOLUTE,
					   &expired);
	if (!ret && !expired && waited > (double)timeout_s)
		ret = -ETIME;
	else if (!ret && !expired)
		pause_after(waited);
	(void)pthread_mutex_lock(&ring->lock);
	ring->looking = false;
	if (!ret && expired)
		ring->ended = fence.fence;
	(void)pthread_cond_broadcast(&ring->looked);
	return ret;
}

/* Waiting is done here and not by the kernel: it takes times of its own clock, and a task that is
 * being restored lives in a time namespace with another one. */
static int wait_for_fence(struct sdma *gpu, struct ring *ring, uint64_t fence, uint64_t timeout_s)
{
	int ret = 0;

	(void)pthread_mutex_lock(&ring->lock);
	while (!ret && ring->ended < fence) {
		if (ring->looking)
			(void)pthread_cond_wait(&ring->looked, &ring->lock);
		else
			ret = look(gpu, ring, timeout_s);
	}
	(void)pthread_mutex_unlock(&ring->lock);
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

	/* After a fault the fence signals all the same, with nothing or half of it copied. */
	ret = amdgpu_cs_query_reset_state2(gpu->context, &flags);
	if (ret < 0)
		return ret;
	return (flags & AMDGPU_CTX_QUERY2_FLAGS_RESET) ? -EIO : 0;
}
