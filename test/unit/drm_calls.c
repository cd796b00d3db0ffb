// SPDX-License-Identifier: GPL-2.0-only
/* Functions of libdrm_amdgpu that call those of the real library. */
#include "drm_calls.h"

struct drm_calls gpu;

static pthread_mutex_t maps_lock = PTHREAD_MUTEX_INITIALIZER;

/* The machine must be known before the first device is opened. */
static void __attribute__((constructor)) choose_machine(void)
{
	(void)setenv("AMDGPU_SIM_MACHINE", "eight", 1);
}

bool is_inode(int fd, ino_t inode)
{
	struct stat stat;

	return !system_call(SYS_newfstatat, fd, "", &stat, AT_EMPTY_PATH) && stat.st_ino == inode;
}

void sim_write(const char *file, const char *text)
{
	assert_int_equal(amdgpu_sim_write(file, text), 0);
}

int drm_calls_begin(void **state)
{
	memset(&gpu, 0, sizeof(gpu));
	gpu.rings = 0x3;
	gpu.another_fd = -1;
	sim_write("violations", "0");
	sim_write("fence_hang", "0");
	return unit_begin(state);
}

/* Whether the simulated GPUs have nothing left of the plugin. */
static bool nothing_is_left(void)
{
	char text[4096], *rest = text, *line;
	bool clean = amdgpu_sim_read("objects", text, sizeof(text)) >= 0;

	while (clean && (line = strsep(&rest, "\n")) && *line) {
		if (strtol(strchr(line, ' '), NULL, 10)) {
			printf("left behind: %s\n", line);
			clean = false;
		}
	}
	return clean;
}

int drm_calls_end(void **state)
{
	char violations[4096];
	int ret;

	sim_write("fence_hang", "0");
	if (gpu.another_fd >= 0)
		(void)close(gpu.another_fd);
	for (size_t i = 0; i < sizeof(gpu.render_fds) / sizeof(gpu.render_fds[0]); i++) {
		if (gpu.render_fds[i] > 0)
			(void)close(gpu.render_fds[i]);
	}
	ret = unit_end(state);
	if (gpu.bos)
		printf("%d BOs of libdrm are not freed\n", gpu.bos);
	if (gpu.violations)
		printf("%u violations of libdrm's rules\n", gpu.violations);
	if (amdgpu_sim_read("violations", violations, sizeof(violations)) < 0 || atoi(violations)) {
		printf("violations: %s", violations);
		return -1;
	}
	return gpu.bos || gpu.violations || !nothing_is_left() ? -1 : ret;
}

int new_dmabuf(uint32_t number, uint64_t size)
{
	union drm_amdgpu_gem_create args = {
		.in = { .bo_size = size,
			.domains = AMDGPU_GEM_DOMAIN_VRAM,
			.domain_flags = AMDGPU_GEM_CREATE_CPU_ACCESS_REQUIRED },
	};
	int *render_fd = &gpu.render_fds[number], fd;
	struct drm_gem_close close_args;
	char path[64];

	(void)snprintf(path, sizeof(path), "/dev/dri/renderD%u", FIRST_MINOR + number);
	if (*render_fd <= 0)
		*render_fd = open(path, O_RDWR | O_CLOEXEC);
	assert_int_equal(drmIoctl(*render_fd, DRM_IOCTL_AMDGPU_GEM_CREATE, &args), 0);
	assert_int_equal(
		drmPrimeHandleToFD(*render_fd, args.out.handle, DRM_CLOEXEC | DRM_RDWR, &fd), 0);
	close_args = (struct drm_gem_close){ .handle = args.out.handle };
	assert_int_equal(drmIoctl(*render_fd, DRM_IOCTL_GEM_CLOSE, &close_args), 0);
	return fd;
}

/* The library's function of the same name. */
#define REAL(name) ((__typeof__(&name))real_function(#name))

static void *real_function(const char *name)
{
	void *function = dlsym(RTLD_NEXT, name);

	if (!function)
		abort();
	return function;
}

/* Counts a BO if it was made. */
static int made(int ret)
{
	const int bos = ret ? 0 : ++gpu.bos;

	if (bos > gpu.most_bos)
		gpu.most_bos = bos;
	return ret;
}

/* Only one thread at a time may use the library's list of devices. */
static bool enter_list(void)
{
	gpu.violations += atomic_fetch_add(&gpu.in_list, 1) != 0;
	(void)sched_yield();
	return true;
}

static void leave_list(const bool *entered)
{
	gpu.in_list -= *entered;
}

#define IN_LIST __attribute__((cleanup(leave_list), unused)) bool entered = enter_list()

int amdgpu_device_initialize(int fd, uint32_t *major_version, uint32_t *minor_version,
			     amdgpu_device_handle *device_handle)
{
	IN_LIST;

	gpu.opens++;
	if (gpu.open_errno)
		return -gpu.open_errno;
	return REAL(amdgpu_device_initialize)(fd, major_version, minor_version, device_handle);
}

int amdgpu_device_deinitialize(amdgpu_device_handle device)
{
	IN_LIST;

	return REAL(amdgpu_device_deinitialize)(device);
}

int amdgpu_device_get_fd(amdgpu_device_handle device)
{
	if (!gpu.is_another)
		return REAL(amdgpu_device_get_fd)(device);
	if (gpu.another_fd < 0)
		gpu.another_fd = open("/dev/dri/renderD135", O_RDWR | O_CLOEXEC);
	return gpu.another_fd;
}

int amdgpu_query_hw_ip_info(amdgpu_device_handle device, unsigned int type,
			    unsigned int ip_instance, struct drm_amdgpu_info_hw_ip *info)
{
	int ret;

	gpu.violations += type != AMDGPU_HW_IP_DMA || ip_instance;
	ret = REAL(amdgpu_query_hw_ip_info)(device, type, ip_instance, info);
	if (!ret)
		info->available_rings = gpu.rings;
	if (!ret && gpu.sdma_version)
		info->hw_ip_version_major = gpu.sdma_version;
	return ret;
}

int amdgpu_bo_import(amdgpu_device_handle device, enum amdgpu_bo_handle_type type, uint32_t handle,
		     struct amdgpu_bo_import_result *output)
{
	return made(REAL(amdgpu_bo_import)(device, type, handle, output));
}

int amdgpu_create_bo_from_user_mem(amdgpu_device_handle device, void *memory, uint64_t size,
				   amdgpu_bo_handle *buf_handle)
{
	gpu.user_memory += size;
	gpu.last_user_memory = (uintptr_t)memory;
	gpu.last_user_memory_size = size;
	return made(REAL(amdgpu_create_bo_from_user_mem)(device, memory, size, buf_handle));
}

int amdgpu_bo_alloc(amdgpu_device_handle device, struct amdgpu_bo_alloc_request *request,
		    amdgpu_bo_handle *buf_handle)
{
	return made(REAL(amdgpu_bo_alloc)(device, request, buf_handle));
}

int amdgpu_bo_free(amdgpu_bo_handle bo)
{
	gpu.bos--;
	return REAL(amdgpu_bo_free)(bo);
}

static bool counts_differ(void)
{
	return gpu.sdma_version && gpu.sdma_version < 4;
}

static bool reads_packets(void)
{
	return counts_differ() || gpu.counts_copies;
}

/* The entry of @bo, or a free one for NULL. */
static struct gpu_map *find_map(amdgpu_bo_handle bo)
{
	for (size_t i = 0; i < MAPS; i++) {
		if (gpu.maps[i].bo == bo)
			return &gpu.maps[i];
	}
	abort();
}

int amdgpu_bo_cpu_map(amdgpu_bo_handle bo, void **cpu)
{
	int ret = REAL(amdgpu_bo_cpu_map)(bo, cpu);

	(void)pthread_mutex_lock(&maps_lock);
	if (!ret && reads_packets())
		find_map(bo)->memory = *cpu;
	(void)pthread_mutex_unlock(&maps_lock);
	return ret;
}

int amdgpu_va_range_alloc(amdgpu_device_handle device, enum amdgpu_gpu_va_range type, uint64_t size,
			  uint64_t alignment, uint64_t required, uint64_t *va,
			  amdgpu_va_handle *va_range_handle, uint64_t flags)
{
	int ret = REAL(amdgpu_va_range_alloc)(device, type, size, alignment, required, va,
					      va_range_handle, flags);

	gpu.small_page_addresses += !ret && size >= HUGE_PAGE_SIZE && *va % HUGE_PAGE_SIZE;
	return ret;
}

int amdgpu_bo_va_op(amdgpu_bo_handle bo, uint64_t offset, uint64_t size, uint64_t address,
		    uint64_t flags, uint32_t operation)
{
	bool map = operation == AMDGPU_VA_OP_MAP;

	(void)pthread_mutex_lock(&maps_lock);
	if (reads_packets())
		*find_map(map ? NULL : bo) =
			map ? (struct gpu_map){ bo, address, size, NULL } : (struct gpu_map){ 0 };
	(void)pthread_mutex_unlock(&maps_lock);
	return REAL(amdgpu_bo_va_op)(bo, offset, size, address, flags, operation);
}

/* The ring of the simulated GPU that stands for this one of gpu.rings. */
static uint32_t real_ring(uint32_t ring)
{
	return (uint32_t)__builtin_popcount(gpu.rings & ((1u << ring) - 1)) % 2;
}

static void read_copy(uint32_t *dwords)
{
	uint32_t from = dwords[3], to = dwords[5];

	gpu.copies++;
	gpu.unaligned_copies += from % 4096 != to % 4096;
	/* The simulated engine wants the byte counts less one. */
	dwords[1] -= counts_differ();
}

static void read_packets(const struct amdgpu_cs_ib_info *ib)
{
	uint32_t *dwords = NULL;

	(void)pthread_mutex_lock(&maps_lock);
	for (size_t i = 0; i < MAPS; i++) {
		const struct gpu_map *map = &gpu.maps[i];

		if (map->memory && ib->ib_mc_address - map->va < map->size)
			dwords = (uint32_t *)((uint8_t *)map->memory +
					      (ib->ib_mc_address - map->va));
	}
	(void)pthread_mutex_unlock(&maps_lock);
	assert_non_null(dwords);
	for (uint32_t at = 0; at < ib->size; at += dwords[at] ? PACKET_DWORDS : 1) {
		if (dwords[at] == COPY_PACKET)
			read_copy(dwords + at);
	}
}

int amdgpu_cs_submit(amdgpu_context_handle context, uint64_t flags,
		     struct amdgpu_cs_request *requests, uint32_t number_of_requests)
{
	uint32_t ring = requests->ring;
	int ret;

	gpu.violations += !(gpu.rings & 1u << ring) || number_of_requests != 1;
	gpu.submissions++;
	gpu.ring_submissions[ring % RINGS]++;
	if (reads_packets())
		read_packets(requests->ibs);
	requests->ring = real_ring(ring);
	ret = REAL(amdgpu_cs_submit)(context, flags, requests, number_of_requests);
	requests->ring = ring;
	while (!ret && gpu.polls_before_return && requests->seq_no == 1 && !gpu.polls)
		(void)sched_yield();
	return ret;
}

int amdgpu_cs_query_fence_status(struct amdgpu_cs_fence *fence, uint64_t timeout_ns, uint64_t flags,
				 uint32_t *expired)
{
	struct amdgpu_cs_fence real = *fence;
	int ret;

	gpu.time_is_absolute = flags & AMDGPU_QUERY_FENCE_TIMEOUT_IS_ABSOLUTE;
	gpu.timeout_ns = timeout_ns;
	real.ring = real_ring(fence->ring);
	if (gpu.ends_before_poll)
		(void)REAL(amdgpu_cs_query_fence_status)(&real, AMDGPU_TIMEOUT_INFINITE, 0,
							 expired);
	ret = REAL(amdgpu_cs_query_fence_status)(&real, timeout_ns, flags, expired);
	if (gpu.polls_before_return && !gpu.polls)
		*expired = 0;
	gpu.polls++;
	return ret;
}

int amdgpu_cs_query_reset_state2(amdgpu_context_handle context, uint64_t *flags)
{
	int ret = REAL(amdgpu_cs_query_reset_state2)(context, flags);

	*flags |= gpu.context_flags;
	return ret;
}
