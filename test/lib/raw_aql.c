// SPDX-License-Identifier: GPL-2.0-only
/* AQL queues on plain ioctls, their signals and kernels. */
#include "raw_aql.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "gcn_listing.h"

#define PROPERTIES  "/sys/devices/virtual/kfd/kfd/topology/nodes/%d/properties"
#define CODE_OFFSET 256u

_Static_assert(sizeof(struct raw_signal) == 64, "amd_signal_t");

static int read_properties(const struct raw_gpu *gpu, const char *const *names, uint32_t *numbers,
			   int count)
{
	char path[128], key[64];
	long value;
	FILE *file;

	(void)snprintf(path, sizeof(path), PROPERTIES, gpu->node);
	file = fopen(path, "re");
	if (!file)
		return -errno;
	while (fscanf(file, "%63s %ld", key, &value) == 2)
		for (int i = 0; i < count; i++)
			if (strcmp(key, names[i]) == 0)
				numbers[i] = (uint32_t)value;
	(void)fclose(file);
	return 0;
}

int raw_ctl_stack_size(const struct raw_gpu *gpu, uint32_t *ret_size)
{
	static const char *const names[] = { "simd_count", "simd_per_cu", "array_count",
					     "simd_arrays_per_engine", "num_xcc" };
	uint32_t numbers[5] = { 0, 0, 0, 0, 1 }, waves, limit;
	int ret = read_properties(gpu, names, numbers, 5);

	for (int i = 0; !ret && i < 5; i++)
		if (!numbers[i])
			ret = -EPROTO;
	if (ret < 0)
		return ret;
	waves = numbers[0] / numbers[1] / numbers[4] * 40;
	limit = numbers[2] / numbers[3] * 512;
	waves = waves < limit ? waves : limit;
	*ret_size = (40 + waves * 8 + 8 + 4095) / 4096 * 4096;
	return 0;
}

int raw_aql_create_on(const struct raw_process *process, const struct raw_gpu *gpu,
		      struct kfd_ioctl_create_queue_args *args)
{
	int ret = raw_ctl_stack_size(gpu, &args->ctl_stack_size);

	args->gpu_id = gpu->gpu_id;
	args->queue_type = KFD_IOC_QUEUE_TYPE_COMPUTE_AQL;
	args->queue_percentage = 100;
	return ret ? ret : raw_ioctl(process->kfd, AMDKFD_IOC_CREATE_QUEUE, args);
}

void raw_signal_init(struct raw_signal *signal, int64_t value)
{
	*signal = (struct raw_signal){ .kind = 1, .value = value };
}

int raw_kernel_load(const char *name, void *to, struct raw_packet *ret_packet)
{
	struct listed_kernel kernel;

	if (listing_read(name, &kernel) < 0 || CODE_OFFSET + kernel.dwords * 4 > RAW_KERNEL_BYTES)
		return -ENOENT;
	/* where the code begins, from the descriptor */
	kernel.descriptor[4] = CODE_OFFSET;
	kernel.descriptor[5] = 0;
	memcpy(to, kernel.descriptor, sizeof(kernel.descriptor));
	memcpy((char *)to + CODE_OFFSET, kernel.code, kernel.dwords * 4);
	*ret_packet = (struct raw_packet){
		.header = RAW_AQL_DISPATCH | RAW_AQL_SYSTEM_SCOPES,
		.setup = 1,
		.workgroup = { 64, 1, 1 },
		.grid = { 64, 1, 1 },
		.group_bytes = kernel.descriptor[0],
		.kernel = (uintptr_t)to,
	};
	return 0;
}
