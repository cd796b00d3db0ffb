// SPDX-License-Identifier: GPL-2.0-only
/* Reads the GPUs of the machine's tree, and the properties that the model needs of each. */
#include <unistd.h>

#include "native.h"

#define HEAP_FB_PUBLIC  1u
#define HEAP_FB_PRIVATE 2u

static FILE *open_file(const struct native *native, u32 node, const char *name)
{
	char path[PATH_MAX + 128];

	(void)snprintf(path, sizeof(path), "%s/sys/class/kfd/kfd/topology/nodes/%u/%s",
		       native->root, node, name);
	return NATIVE_REAL(fopen)(path, "re");
}

/* Returns 0 if the file has no such property. */
static u64 property(FILE *file, const char *wanted)
{
	char line[128], name[64];
	u64 value;

	rewind(file);
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "%63s %llu", name, &value) == 2 && strcmp(name, wanted) == 0)
			return value;
	return 0;
}

static u64 vram_of(const struct native *native, u32 node)
{
	u64 heap, size = 0;
	char name[40];
	FILE *file;
	u32 bank;

	for (bank = 0; !size; bank++) {
		(void)snprintf(name, sizeof(name), "mem_banks/%u/properties", bank);
		file = open_file(native, node, name);
		if (!file)
			return 0;
		heap = property(file, "heap_type");
		if (heap == HEAP_FB_PUBLIC || heap == HEAP_FB_PRIVATE)
			size = property(file, "size_in_bytes");
		(void)fclose(file);
	}
	return size;
}

static const struct {
	const char *name;
	u32 offset;
} gpu_properties[] = {
	{ "drm_render_minor", __builtin_offsetof(struct sim_gpu, render_minor) },
	{ "device_id", __builtin_offsetof(struct sim_gpu, device_id) },
	{ "gfx_target_version", __builtin_offsetof(struct sim_gpu, gfx_target_version) },
	{ "num_xcc", __builtin_offsetof(struct sim_gpu, num_xcc) },
	{ "simd_count", __builtin_offsetof(struct sim_gpu, simd_count) },
	{ "simd_per_cu", __builtin_offsetof(struct sim_gpu, simd_per_cu) },
	{ "array_count", __builtin_offsetof(struct sim_gpu, array_count) },
	{ "simd_arrays_per_engine", __builtin_offsetof(struct sim_gpu, arrays_per_engine) },
	{ "cu_per_simd_array", __builtin_offsetof(struct sim_gpu, cu_per_array) },
	{ "num_sdma_engines", __builtin_offsetof(struct sim_gpu, num_sdma_engines) },
	{ "num_sdma_xgmi_engines", __builtin_offsetof(struct sim_gpu, num_sdma_xgmi_engines) },
	{ "num_sdma_queues_per_engine", __builtin_offsetof(struct sim_gpu, queues_per_engine) },
};

/* kfd_topology.c stores the number of a partition in the lowest bits of location_id, and
 * amdgpu_xcp.c gives the render nodes of all partitions the offsets of the first. Functions of one
 * slot of other GPUs are devices of their own. */
static void find_device(struct sim *sim, struct sim_gpu *gpu, FILE *file)
{
	u64 location_id = property(file, "location_id");
	u64 partition_bits = sim_gpu_has_partitions(gpu) ? 7 : 0;
	u64 location = location_id & ~partition_bits;

	gpu->hive = property(file, "hive_id");
	gpu->partition = (u32)(location_id & partition_bits);
	gpu->location = location ? property(file, "domain") << 32 | location : 0;
	gpu->device = 0;
	while (gpu->device < gpu->index &&
	       (!location || sim->gpus[gpu->device].location != gpu->location))
		gpu->device++;
}

static int add_gpu(struct native *native, u32 node, u32 gpu_id)
{
	FILE *file = open_file(native, node, "properties");
	struct sim *sim = &native->sim;
	struct sim_gpu *gpu = &sim->gpus[sim->num_gpus];
	u32 i;

	if (!file || sim->num_gpus == SIM_MAX_GPUS)
		return -EINVAL;
	memset(gpu, 0, sizeof(*gpu));
	gpu->sim = sim;
	sim_wait_init(&gpu->job_wait);
	gpu->index = sim->num_gpus++;
	gpu->node = node;
	gpu->gpu_id = gpu_id;
	for (i = 0; i < ARRAY_SIZE(gpu_properties); i++)
		*(u32 *)((char *)gpu + gpu_properties[i].offset) =
			(u32)property(file, gpu_properties[i].name);
	find_device(sim, gpu, file);
	(void)fclose(file);
	gpu->vram_bytes = vram_of(native, node);
	return gpu->vram_bytes ? 0 : -EINVAL;
}

int native_topology_read(struct native *native)
{
	u32 node, gpu_id;
	int ret = 0;
	FILE *file;

	for (node = 0; ret == 0 && (file = open_file(native, node, "gpu_id")); node++) {
		if (fscanf(file, "%u", &gpu_id) != 1)
			ret = -EINVAL;
		(void)fclose(file);
		if (ret == 0 && gpu_id)
			ret = add_gpu(native, node, gpu_id);
	}
	return ret < 0 || node ? ret : -ENOENT;
}
