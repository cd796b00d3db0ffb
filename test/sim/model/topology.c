// SPDX-License-Identifier: GPL-2.0-only
/* Parses the bundle of a machine ("file PATH SIZE" with that many bytes behind it, repeated), and
 * takes the properties that the model needs of a GPU. */
#include "process.h"

#define PATH_BYTES      64
#define HEAP_FB_PUBLIC  1u
#define HEAP_FB_PRIVATE 2u

struct file {
	char path[PATH_BYTES]; /* below topology/ */
	const char *data;      /* in the bundle */
	u32 size;
};

struct topology {
	struct file *files;
	u32 count;
};

struct cursor {
	const char *at, *end;
};

/* Takes one line, without its newline. False at the end. */
static bool take_line(struct cursor *cursor, const char **ret_line, u32 *ret_length)
{
	const char *newline;

	if (cursor->at >= cursor->end)
		return false;
	newline = memchr(cursor->at, '\n', (size_t)(cursor->end - cursor->at));
	if (!newline)
		return false;
	*ret_line = cursor->at;
	*ret_length = (u32)(newline - cursor->at);
	cursor->at = newline + 1;
	return true;
}

static u64 parse_u64(const char *text, const char *end)
{
	u64 value = 0;

	for (; text < end && *text >= '0' && *text <= '9'; text++)
		value = value * 10 + (u64)(*text - '0');
	return value;
}

static bool starts_with(const char *text, u32 length, const char *prefix)
{
	u32 wanted = (u32)strlen(prefix);

	return length >= wanted && memcmp(text, prefix, wanted) == 0;
}

/* "file PATH SIZE": the contents follow the line. */
static int parse_file(struct cursor *cursor, const char *line, u32 length, struct file *file)
{
	const char *path = line + 5, *end = line + length;
	const char *blank = memchr(path, ' ', (size_t)(end - path));

	if (!blank || blank - path >= PATH_BYTES)
		return -EINVAL;
	memset(file, 0, sizeof(*file));
	memcpy(file->path, path, (size_t)(blank - path));
	file->data = cursor->at;
	file->size = (u32)parse_u64(blank + 1, end);
	if (file->size > (u64)(cursor->end - cursor->at))
		return -EINVAL;
	cursor->at += file->size;
	return 0;
}

/* One pass over the bundle: counts the files, and stores them if there is room. */
static int scan(const char *bundle, u64 size, struct topology *topology)
{
	struct cursor cursor = { bundle, bundle + size };
	const char *line;
	struct file file;
	u32 length;

	topology->count = 0;
	while (take_line(&cursor, &line, &length)) {
		if (!starts_with(line, length, "file ") ||
		    parse_file(&cursor, line, length, &file) < 0)
			return -EINVAL;
		if (topology->files)
			topology->files[topology->count] = file;
		topology->count++;
	}
	return 0;
}

static const struct file *find_file(const struct topology *topology, const char *path)
{
	u32 i;

	for (i = 0; i < topology->count; i++)
		if (strcmp(topology->files[i].path, path) == 0)
			return &topology->files[i];
	return NULL;
}

static u64 property(const struct file *file, const char *name)
{
	struct cursor cursor = { file->data, file->data + file->size };
	u32 name_length = (u32)strlen(name), length;
	const char *line;

	while (take_line(&cursor, &line, &length))
		if (starts_with(line, length, name) && length > name_length &&
		    line[name_length] == ' ')
			return parse_u64(line + name_length + 1, line + length);
	return 0;
}

static const struct file *node_file(const struct topology *topology, u32 node, const char *name)
{
	char path[PATH_BYTES];

	(void)snprintf(path, sizeof(path), "nodes/%u/%s", node, name);
	return find_file(topology, path);
}

static u64 vram_of(const struct topology *topology, u32 node)
{
	u32 bank;

	for (bank = 0;; bank++) {
		const struct file *file;
		char name[40];
		u64 heap;

		(void)snprintf(name, sizeof(name), "mem_banks/%u/properties", bank);
		file = node_file(topology, node, name);
		if (!file)
			return 0;
		heap = property(file, "heap_type");
		if (heap == HEAP_FB_PUBLIC || heap == HEAP_FB_PRIVATE)
			return property(file, "size_in_bytes");
	}
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

/* Only MI300 and newer GPUs of gfx9: gmc_v9_0_init_mem_ranges() (6.12). */
bool sim_gpu_has_partitions(const struct sim_gpu *gpu)
{
	return gpu->gfx_target_version >= SIM_GFX940 && gpu->gfx_target_version < SIM_GFX10;
}

/* kfd_topology.c stores the number of a partition in the lowest bits of location_id, and
 * amdgpu_xcp.c gives the render nodes of all partitions the offsets of the first. Functions of one
 * slot of other GPUs are devices of their own. */
static void find_device(struct sim *sim, struct sim_gpu *gpu, const struct file *file)
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

static int add_gpu(struct sim *sim, const struct topology *topology, u32 node, u32 gpu_id)
{
	const struct file *properties = node_file(topology, node, "properties");
	struct sim_gpu *gpu = &sim->gpus[sim->num_gpus];
	u32 i;

	if (!properties || sim->num_gpus == SIM_MAX_GPUS)
		return -EINVAL;
	memset(gpu, 0, sizeof(*gpu));
	gpu->sim = sim;
	sim_wait_init(&gpu->job_wait);
	gpu->index = sim->num_gpus++;
	gpu->node = node;
	gpu->gpu_id = gpu_id;
	for (i = 0; i < ARRAY_SIZE(gpu_properties); i++)
		*(u32 *)((char *)gpu + gpu_properties[i].offset) =
			(u32)property(properties, gpu_properties[i].name);
	find_device(sim, gpu, properties);
	gpu->vram_bytes = vram_of(topology, node);
	return gpu->vram_bytes ? 0 : -EINVAL;
}

static int find_gpus(struct sim *sim, const struct topology *topology)
{
	const struct file *file;
	u32 node, gpu_id;
	int ret;

	for (node = 0; (file = node_file(topology, node, "gpu_id")); node++) {
		gpu_id = (u32)parse_u64(file->data, file->data + file->size);
		if (!gpu_id)
			continue;
		ret = add_gpu(sim, topology, node, gpu_id);
		if (ret < 0)
			return ret;
	}
	sim->num_nodes = node;
	return 0;
}

int sim_topology_read(struct sim *sim, const char *bundle, u64 size)
{
	struct topology topology = { .files = NULL };
	int ret;

	ret = scan(bundle, size, &topology);
	if (ret < 0)
		return ret;
	topology.files = calloc(topology.count, sizeof(*topology.files));
	if (!topology.files)
		return -ENOMEM;
	ret = scan(bundle, size, &topology);
	if (ret == 0)
		ret = find_gpus(sim, &topology);
	free(topology.files);
	return ret;
}
