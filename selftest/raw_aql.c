// SPDX-License-Identifier: GPL-2.0-only
/* AQL queues on plain ioctls, their signals and kernels. */
#include "raw_aql.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define PROPERTIES  "/sys/devices/virtual/kfd/kfd/topology/nodes/%d/properties"
#define CODE_OFFSET 256u
#define GFX10_1     100100u

_Static_assert(sizeof(struct raw_signal) == 64, "amd_signal_t");
_Static_assert(sizeof(struct raw_barrier) == sizeof(struct raw_packet), "64 bytes");

/* What the sizes depend on. The driver of newer kernels states the last two itself. */
enum { SIMDS, SIMDS_PER_CU, ARRAYS, ARRAYS_PER_ENGINE, XCCS, STACK, AREA, PROPERTIES_COUNT };
static const char *const names[PROPERTIES_COUNT] = {
	"simd_count", "simd_per_cu",    "array_count", "simd_arrays_per_engine",
	"num_xcc",    "ctl_stack_size", "cwsr_size",
};

static int read_properties(const struct raw_gpu *gpu, uint32_t *numbers)
{
	char path[128];
	int ret;

	(void)snprintf(path, sizeof(path), PROPERTIES, gpu->node);
	ret = raw_read_properties(path, names, PROPERTIES_COUNT, numbers);
	for (int i = 0; ret == 0 && i <= XCCS; i++)
		ret = numbers[i] ? 0 : -EPROTO;
	return ret;
}

static uint32_t count_waves(const struct raw_gpu *gpu, const uint32_t *numbers, uint32_t cus)
{
	uint32_t limit = numbers[ARRAYS] / numbers[ARRAYS_PER_ENGINE] * 512;

	if (gpu->gfx_target_version >= GFX10_1)
		return cus * 32;
	return cus * 40 < limit ? cus * 40 : limit;
}

static uint32_t find_stack(const struct raw_gpu *gpu, uint32_t waves)
{
	uint32_t a_wave = gpu->gfx_target_version >= GFX10_1 ? 12 : 8;
	uint32_t size = (40 + waves * a_wave + 8 + 4095) / 4096 * 4096;

	if (gpu->gfx_target_version / 10000 == 10 && size > 0x7000)
		return 0x7000;
	return size;
}

/* Registers and LDS of a CU. */
static uint32_t bytes_of_cu(uint32_t gfx)
{
	static const struct {
		uint32_t gfx, vgprs;
	} larger[] = { { 90008, 0x80000 },  { 90010, 0x80000 },  { 90400, 0x80000 },
		       { 90401, 0x80000 },  { 90402, 0x80000 },  { 90500, 0x80000 },
		       { 110000, 0x60000 }, { 110001, 0x60000 }, { 110501, 0x60000 },
		       { 120000, 0x60000 }, { 120001, 0x60000 } };
	uint32_t vgprs = 0x40000, sgprs = 0x4000, lds = gfx == 90500 ? 0x28000 : 0x10000;

	for (size_t i = 0; i < sizeof(larger) / sizeof(larger[0]); i++)
		if (larger[i].gfx == gfx)
			vgprs = larger[i].vgprs;
	return vgprs + sgprs + lds + 0x1000;
}

int raw_aql_find_sizes(const struct raw_gpu *gpu, struct raw_aql_sizes *ret_sizes)
{
	uint32_t numbers[PROPERTIES_COUNT] = { [XCCS] = 1 }, cus, waves;
	int ret = read_properties(gpu, numbers);

	if (ret < 0)
		return ret;
	cus = numbers[SIMDS] / numbers[SIMDS_PER_CU] / numbers[XCCS];
	waves = count_waves(gpu, numbers, cus);
	ret_sizes->ctl_stack = numbers[STACK] ? numbers[STACK] : find_stack(gpu, waves);
	ret_sizes->save_area =
		numbers[AREA] ? numbers[AREA]
			      : find_stack(gpu, waves) + cus * bytes_of_cu(gpu->gfx_target_version);
	/* 32 bytes of each wave are for debuggers. */
	ret_sizes->total =
		((ret_sizes->save_area + waves * 32) * numbers[XCCS] + 4095) / 4096 * 4096;
	return 0;
}

int raw_aql_create_on(const struct raw_process *process, const struct raw_gpu *gpu,
		      struct kfd_ioctl_create_queue_args *args)
{
	struct raw_aql_sizes sizes;
	int ret = raw_aql_find_sizes(gpu, &sizes);

	args->ctl_stack_size = sizes.ctl_stack;
	args->gpu_id = gpu->gpu_id;
	args->queue_type = KFD_IOC_QUEUE_TYPE_COMPUTE_AQL;
	args->queue_percentage = 100;
	return ret ? ret : raw_ioctl(process->kfd, AMDKFD_IOC_CREATE_QUEUE, args);
}

void raw_signal_init(struct raw_signal *signal, int64_t value)
{
	*signal = (struct raw_signal){ .kind = 1, .value = value };
}

struct raw_packet raw_kernel_place(const struct raw_kernel *kernel, void *to)
{
	uint32_t *descriptor = to;

	memcpy(descriptor, kernel->descriptor, sizeof(kernel->descriptor));
	/* where the code begins, from the descriptor */
	descriptor[4] = CODE_OFFSET;
	descriptor[5] = 0;
	memcpy((char *)to + CODE_OFFSET, kernel->code, kernel->dwords * 4);
	return (struct raw_packet){
		.header = RAW_AQL_DISPATCH | RAW_AQL_SYSTEM_SCOPES,
		.setup = 1,
		.workgroup = { 64, 1, 1 },
		.grid = { 64, 1, 1 },
		.group_bytes = kernel->descriptor[0],
		.kernel = (uintptr_t)to,
	};
}
