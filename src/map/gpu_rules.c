// SPDX-License-Identifier: GPL-2.0-only
/* Compares two GPUs by one table: the properties on which a process or its queues depend. To add a
 * rule add a row. */
#include "map/gpu_rules.h"

#include "amdgpu_plugin_util.h"

/* The bits of `capability` (kfd_sysfs.h) for the debugger and for queue reset. They change with the
 * driver on the same card, and a restored process does not depend on them. */
#define CAPABILITY_OF_DRIVER 0xe0078000u

enum rule {
	SAME,
	/* For properties that some kernels do not print: compared only if both sides state it. */
	SAME_IF_STATED,
	/* The same two for properties that identify the model. */
	KIND,
	KIND_IF_STATED,
	AT_LEAST,
	SAME_HARDWARE_BITS,
};

struct comparison {
	const char *name;
	size_t offset;
	size_t size;
	enum rule rule;
	const char *variable;
	size_t switch_offset;
};

#define FIELD(f)                #f, offsetof(struct topology_node, f), sizeof(((struct topology_node *)0)->f)
#define SWITCH(variable, field) #variable "=0", offsetof(struct map_options, field)
#define ALWAYS                  NULL, 0

static const struct comparison comparisons[] = {
	{ FIELD(vendor_id), KIND, ALWAYS },
	{ FIELD(device_id), KIND, ALWAYS },
	{ FIELD(simd_count), SAME, ALWAYS },
	{ FIELD(max_waves_per_simd), SAME, ALWAYS },
	{ FIELD(lds_size_in_kb), SAME, ALWAYS },
	{ FIELD(wave_front_size), SAME, ALWAYS },
	{ FIELD(array_count), SAME, ALWAYS },
	{ FIELD(simd_arrays_per_engine), SAME, ALWAYS },
	{ FIELD(cu_per_simd_array), SAME, ALWAYS },
	{ FIELD(simd_per_cu), SAME, ALWAYS },
	{ FIELD(max_slots_scratch_cu), SAME, ALWAYS },
	{ FIELD(num_sdma_engines), SAME, ALWAYS },
	{ FIELD(num_sdma_xgmi_engines), SAME, ALWAYS },
	{ FIELD(num_sdma_queues_per_engine), SAME, ALWAYS },
	{ FIELD(num_cp_queues), SAME, ALWAYS },
	{ FIELD(gfx_target_version), KIND_IF_STATED, ALWAYS },
	{ FIELD(num_xcc), KIND_IF_STATED, ALWAYS },
	{ FIELD(cwsr_size), SAME_IF_STATED, ALWAYS },
	{ FIELD(ctl_stack_size), SAME_IF_STATED, ALWAYS },
	{ FIELD(capability), SAME_HARDWARE_BITS, SWITCH(KFD_CAPABILITY_CHECK, check_capability) },
	{ FIELD(vram_size), AT_LEAST, SWITCH(KFD_VRAM_SIZE_CHECK, check_vram_size) },
	{ FIELD(num_gws), AT_LEAST, SWITCH(KFD_NUM_GWS_CHECK, check_num_gws) },
	{ FIELD(caches_count), AT_LEAST, SWITCH(KFD_CACHES_COUNT_CHECK, check_caches) },
	{ FIELD(fw_version), AT_LEAST, SWITCH(KFD_FW_VER_CHECK, check_fw_version) },
	{ FIELD(sdma_fw_version), AT_LEAST, SWITCH(KFD_SDMA_FW_VER_CHECK, check_sdma_fw) },
	/* The process may have mapped VRAM that only a large BAR makes visible. */
	{ FIELD(vram_public), AT_LEAST, ALWAYS },
};

static uint64_t value_of(const struct topology_node *node, const struct comparison *comparison)
{
	const char *field = (const char *)node + comparison->offset;

	if (comparison->size == sizeof(uint64_t))
		return *(const uint64_t *)(const void *)field;
	return *(const uint32_t *)(const void *)field;
}

static bool fits(const struct comparison *comparison, uint64_t saved, uint64_t local)
{
	switch (comparison->rule) {
	case SAME:
	case KIND:
		return saved == local;
	case SAME_IF_STATED:
	case KIND_IF_STATED:
		return !saved || !local || saved == local;
	case AT_LEAST:
		return saved <= local;
	case SAME_HARDWARE_BITS:
		return !((saved ^ local) & ~(uint64_t)CAPABILITY_OF_DRIVER);
	}
	return false;
}

static bool is_same_kind(const struct topology_node *saved, const struct topology_node *local)
{
	for (size_t i = 0; i < ARRAY_SIZE(comparisons); i++) {
		const struct comparison *c = &comparisons[i];

		if ((c->rule == KIND || c->rule == KIND_IF_STATED) &&
		    !fits(c, value_of(saved, c), value_of(local, c)))
			return false;
	}
	return true;
}

/* Kernels compute gpu_ids in different ways, so the gpu_id of the same card may differ. A unique_id
 * that several GPUs of a machine share is that of their card, and a driver that gives each
 * partition an id of its own has other ids. */
bool gpu_rules_can_force(const struct map_input *in, size_t saved, size_t local)
{
	const struct topology_node *one = in->saved.gpus[saved], *other = in->local.gpus[local];
	bool in_slot = !one->location_unknown && one->domain == other->domain &&
		       one->location_id == other->location_id;
	bool saved_unique = links_is_unique(&in->saved, saved);
	bool local_unique = links_is_unique(&in->local, local);

	if (!is_same_kind(one, other))
		return false;
	if (!one->unique_id || !other->unique_id)
		return in_slot;
	if (one->unique_id != other->unique_id)
		return in_slot && saved_unique != local_unique;
	return in_slot || (saved_unique && local_unique);
}

static const char *relaxed_by_force(const struct map_input *in, size_t saved, size_t local)
{
	return gpu_rules_can_force(in, saved, local) ? "AMDGPU_FORCE=1" : "";
}

size_t gpu_rules_compare(const struct map_input *in, size_t saved, size_t local,
			 struct difference *ret_first)
{
	const struct topology_node *from = in->saved.gpus[saved], *to = in->local.gpus[local];
	size_t count = 0;

	*ret_first = (struct difference){ .relaxed_by = "" };
	for (size_t i = 0; i < ARRAY_SIZE(comparisons); i++) {
		const struct comparison *c = &comparisons[i];
		const char *switches = (const char *)in->options;

		if (c->variable && !*(const bool *)(switches + c->switch_offset))
			continue;
		if (fits(c, value_of(from, c), value_of(to, c)))
			continue;
		if (!count++)
			*ret_first = (struct difference){
				.property = c->name,
				.saved = value_of(from, c),
				.local = value_of(to, c),
				.at_least = c->rule == AT_LEAST,
				.relaxed_by = c->variable ? c->variable
							  : relaxed_by_force(in, saved, local),
			};
	}
	return count;
}

size_t gpu_rules_nearest(const struct map_input *in, size_t saved)
{
	size_t fewest = SIZE_MAX, nearest = 0;

	for (size_t i = 0; i < in->local.num_gpus; i++) {
		struct difference first;
		size_t count = gpu_rules_compare(in, saved, i, &first);

		if (count >= fewest)
			continue;
		fewest = count;
		nearest = i;
	}
	return nearest;
}

/* Images of other plugins lack location_id; the driver derives actual_gpu_id from it. */
static bool same_slot(const struct topology_node *saved, const struct topology_node *local)
{
	return saved->domain == local->domain && saved->actual_gpu_id == local->actual_gpu_id &&
	       (saved->location_unknown || saved->location_id == local->location_id);
}

bool gpu_rules_is_same_device(const struct map_input *in, size_t saved, size_t local)
{
	const struct topology_node *one = in->saved.gpus[saved], *other = in->local.gpus[local];

	/* Older kernels give all partitions of a card the unique_id of the card. */
	return same_slot(one, other) ||
	       (one->unique_id == other->unique_id && links_is_unique(&in->saved, saved) &&
		links_is_unique(&in->local, local));
}

bool gpu_rules_fit(const struct map_input *in, size_t saved, size_t local)
{
	struct difference first;

	return !gpu_rules_compare(in, saved, local, &first) ||
	       (in->options->force && gpu_rules_can_force(in, saved, local));
}

bool gpu_rules_is_same_partition(const struct map_input *in, size_t saved, size_t local)
{
	const struct topology_node *one = in->saved.gpus[saved], *other = in->local.gpus[local];

	return one->location_unknown || topology_partition(other) == topology_partition(one);
}

bool gpu_rules_cpu_link_serves(const struct map_input *in, size_t saved, size_t local)
{
	if (in->saved.numa_groups.of[saved] == NO_GROUP)
		return true;
	return in->local.numa_groups.of[local] != NO_GROUP &&
	       (!in->saved.xgmi_to_cpu[saved] || in->local.xgmi_to_cpu[local]);
}
