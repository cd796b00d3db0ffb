// SPDX-License-Identifier: GPL-2.0-only
/* The knobs that are plain numbers, by name. The README describes each. */
#include "process.h"

struct sim_knob {
	const char *name;
	u32 offset; /* of its u64 or s64 in struct sim_knobs */
};

#define KNOB(name)                                                \
	{                                                         \
#name, __builtin_offsetof(struct sim_knobs, name) \
	}

static const struct sim_knob knobs[] = {
	KNOB(fence_hang),
	KNOB(engine_bytes_per_s),
	KNOB(engine_latency_us),
	KNOB(skip_copies),
	KNOB(bo_count_skew),
	KNOB(bo_record_size),
	KNOB(kfd_minor),
	KNOB(list_handles),
	KNOB(poison_vram),
	KNOB(one_xcc),
	KNOB(one_mqd),
	KNOB(xcc_divisor),
	KNOB(no_ctl_stack),
	KNOB(running_kernels),
	KNOB(later_kernels),
	KNOB(no_svm),
	KNOB(noretry),
	KNOB(in_reset),
	KNOB(evict_timeout),
	KNOB(memory_errors),
	KNOB(gtt_bytes),
	/* kernels differ in the following, too */
	KNOB(fault_queries),
	KNOB(last_ioctl),
	KNOB(process_pasid),
	KNOB(pause_nests),
	KNOB(bos_required),
	KNOB(addressless_bos),
	KNOB(kfd_client),
	KNOB(compute_gem_va),
	KNOB(list_alignment_bytes),
	KNOB(mmap_user_ids),
	KNOB(hive_imports),
	KNOB(kernel_event_page),
	KNOB(event_types),
	KNOB(gfx11_queues),
	KNOB(acquire_queue_buffers),
	KNOB(check_queue_buffers),
	KNOB(gpuvm_first_page),
	KNOB(unacquired_oops),
	KNOB(unpause_oops),
	KNOB(ipc_handles),
	KNOB(maker_flags),
	KNOB(unchecked_handles),
	KNOB(unchecked_ids),
	KNOB(reset_hidden),
	KNOB(unknown_invalid),
};

const struct sim_knob *sim_knob_find(const char *name)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(knobs); i++)
		if (strcmp(knobs[i].name, name) == 0)
			return &knobs[i];
	return NULL;
}

static bool is_record_size(s64 value)
{
	return value >= SIM_PRIV_BO_MIN && value <= SIM_PRIV_BO_MAX && value % 8 == 0;
}

int sim_knob_set(struct sim *sim, const struct sim_knob *knob, s64 value)
{
	s64 *at = (s64 *)((char *)&sim->knobs + knob->offset);
	u32 i;

	if (knob->offset == __builtin_offsetof(struct sim_knobs, bo_record_size) &&
	    !is_record_size(value))
		return -EINVAL;
	__atomic_store_n(at, value, __ATOMIC_RELAXED);
	/* threads that wait for the end of the hang check again */
	for (i = 0; i < sim->num_gpus; i++)
		sim_os_wake(&sim->gpus[i].job_wait);
	return 0;
}
