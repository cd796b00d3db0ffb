// SPDX-License-Identifier: GPL-2.0-only
/* The ioctls about a process and its GPUs as a whole: versions, apertures, page tables, policies
 * and clocks. State that CRIU_OP does not read is only kept, as in the real driver. */
#include "process.h"

#define LDS_BASE           (1ull << 48)
#define SCRATCH_BASE       (2ull << 48)
#define LOW_HALF           0xffffffffull
#define TILE_CONFIGS       32u
#define MACRO_TILE_CONFIGS 16u

SIM_KFD_HANDLER(sim_kfd_get_version)
{
	struct kfd_ioctl_get_version_args *version = args;

	(void)size;
	version->major_version = 1;
	version->minor_version = (u32)process->sim->knobs.kfd_minor;
	return 0;
}

static void describe_aperture(const struct sim_pdd *pdd,
			      struct kfd_process_device_apertures *aperture)
{
	memset(aperture, 0, sizeof(*aperture));
	aperture->lds_base = LDS_BASE;
	aperture->lds_limit = LDS_BASE | LOW_HALF;
	aperture->scratch_base = SCRATCH_BASE;
	aperture->scratch_limit = SCRATCH_BASE | LOW_HALF;
	aperture->gpuvm_base = SIM_KNOB(pdd->gpu->sim, gpuvm_first_page) * SIM_PAGE_SIZE;
	aperture->gpuvm_limit = KFD_GPUVM_LIMIT;
	aperture->gpu_id = pdd->gpu->gpu_id;
}

SIM_KFD_HANDLER(sim_kfd_get_apertures)
{
	struct kfd_ioctl_get_process_apertures_args *out = args;
	u32 i;

	(void)size;
	out->num_of_nodes = min(process->num_pdds, (u32)KFD_OLD_APERTURES);
	for (i = 0; i < out->num_of_nodes; i++)
		describe_aperture(process->pdds[i], &out->process_apertures[i]);
	return 0;
}

SIM_KFD_HANDLER(sim_kfd_get_apertures_new)
{
	struct kfd_ioctl_get_process_apertures_new_args *io = args;
	struct kfd_process_device_apertures aperture;
	u32 count = min(io->num_of_nodes, process->num_pdds), i;

	(void)size;
	if (!io->num_of_nodes) {
		io->num_of_nodes = process->num_pdds;
		return 0;
	}
	if (io->num_of_nodes > process->sim->num_nodes)
		return -EINVAL;
	io->num_of_nodes = count;
	for (i = 0; i < count; i++) {
		describe_aperture(process->pdds[i], &aperture);
		if (sim_os_copy_to_user(io->kfd_process_device_apertures_ptr + i * sizeof(aperture),
					&aperture, sizeof(aperture)) < 0)
			return -EFAULT;
	}
	return 0;
}

int sim_pdd_acquire(struct sim_pdd *pdd, struct sim_render *render)
{
	bool taken;

	if (pdd->render == render) {
		sim_os_render_put(render);
		return 0;
	}
	if (pdd->render || render->gpu != pdd->gpu) {
		sim_os_render_put(render);
		return pdd->render ? -EBUSY : -EINVAL;
	}
	sim_lock(&render->lock);
	taken = render->compute;
	render->compute = true;
	sim_unlock(&render->lock);
	if (taken) {
		sim_os_render_put(render);
		return -EINVAL;
	}
	if (pdd->process->pasid)
		render->pasid = pdd->process->pasid;
	pdd->render = render;
	return 0;
}

SIM_KFD_HANDLER(sim_kfd_acquire_vm)
{
	struct kfd_ioctl_acquire_vm_args *in = args;
	struct sim_render *render = sim_os_render_from_fd((int)in->drm_fd);
	struct sim_pdd *pdd = sim_process_pdd(process, in->gpu_id);

	(void)size;
	if (!render)
		return -EINVAL;
	if (!pdd) {
		sim_os_render_put(render);
		return -EINVAL;
	}
	return sim_pdd_acquire(pdd, render);
}

SIM_KFD_HANDLER(sim_kfd_set_memory_policy)
{
	struct kfd_ioctl_set_memory_policy_args *in = args;
	struct sim_pdd *pdd = sim_process_pdd(process, in->gpu_id);

	(void)size;
	if (in->default_policy > 1 || in->alternate_policy > 1 || !pdd)
		return -EINVAL;
	if (!pdd->render)
		return -ESRCH;
	pdd->memory_policy = in->default_policy;
	return 0;
}

SIM_KFD_HANDLER(sim_kfd_get_clock_counters)
{
	struct kfd_ioctl_get_clock_counters_args *out = args;
	struct sim_pdd *pdd = sim_process_pdd(process, out->gpu_id);
	u64 now = sim_os_now_ns();

	(void)size;
	/* libhsakmt also asks for nodes without a GPU: they have no GPU clock */
	out->gpu_clock_counter = pdd ? sim_gpu_clock() : 0;
	out->cpu_clock_counter = now;
	out->system_clock_counter = now;
	out->system_clock_freq = 1000000000;
	return 0;
}

SIM_KFD_HANDLER(sim_kfd_available_memory)
{
	struct kfd_ioctl_get_available_memory_args *io = args;
	struct sim_pdd *pdd = sim_process_pdd(process, io->gpu_id);
	u64 limit;

	(void)size;
	if (!pdd)
		return -EINVAL;
	limit = sim_memory_vram_limit(pdd->gpu);
	io->available = (limit - min(limit, pdd->gpu->vram_used)) & ~((2ull << 20) - 1);
	return 0;
}

SIM_KFD_HANDLER(sim_kfd_set_scratch)
{
	struct kfd_ioctl_set_scratch_backing_va_args *in = args;
	struct sim_pdd *pdd = sim_process_pdd(process, in->gpu_id);

	(void)size;
	if (!pdd)
		return -EINVAL;
	if (!pdd->render)
		return -ESRCH;
	pdd->scratch_va = in->va_addr;
	return 0;
}

static int copy_zeros(u64 user, u32 count)
{
	u32 zero = 0, i;

	for (i = 0; i < count; i++)
		if (sim_os_copy_to_user(user + 4ull * i, &zero, sizeof(zero)) < 0)
			return -EFAULT;
	return 0;
}

SIM_KFD_HANDLER(sim_kfd_get_tile_config)
{
	struct kfd_ioctl_get_tile_config_args *io = args;

	(void)size;
	if (!sim_process_pdd(process, io->gpu_id))
		return -EINVAL;
	io->num_tile_configs = min(io->num_tile_configs, TILE_CONFIGS);
	io->num_macro_tile_configs = min(io->num_macro_tile_configs, MACRO_TILE_CONFIGS);
	io->gb_addr_config = 0x26013041;
	io->num_banks = 0;
	io->num_ranks = 0;
	if (copy_zeros(io->tile_config_ptr, io->num_tile_configs) < 0)
		return -EFAULT;
	return copy_zeros(io->macro_tile_config_ptr, io->num_macro_tile_configs);
}

SIM_KFD_HANDLER(sim_kfd_set_trap_handler)
{
	struct kfd_ioctl_set_trap_handler_args *in = args;
	struct sim_pdd *pdd = sim_process_pdd(process, in->gpu_id);

	(void)size;
	if (!pdd)
		return -EINVAL;
	if (!pdd->render)
		return -ESRCH;
	pdd->trap_handler = *in;
	return 0;
}

static bool has_xnack_per_process(u32 version)
{
	return version == 90010 || (version >= SIM_GFX940 && version < SIM_GFX10);
}

/* amdgpu_gmc_noretry_set() in amdgpu_gmc.c */
static bool retries(const struct sim *sim, u32 version)
{
	s64 noretry = SIM_KNOB(sim, noretry);

	return noretry < 0 ? version != 90000 && version != 90006 && version != 90008 : !noretry;
}

/* kfd_process_xnack_mode() in kfd_process.c, of a mode that the process asks for */
bool sim_process_can_xnack(const struct sim_process *process)
{
	u32 i;

	for (i = 0; i < process->num_pdds; i++) {
		u32 version = process->pdds[i]->gpu->gfx_target_version;

		if (version < SIM_GFX9 || has_xnack_per_process(version))
			continue;
		if (version >= SIM_GFX10 || !retries(process->sim, version))
			return false;
	}
	return true;
}

SIM_KFD_HANDLER(sim_kfd_set_xnack_mode)
{
	struct kfd_ioctl_set_xnack_mode_args *io = args;
	u32 id = 0;

	(void)size;
	if (SIM_KNOB(process->sim, no_svm))
		return -EPERM;
	if (io->xnack_enabled < 0) {
		io->xnack_enabled = (s32)process->xnack;
		return 0;
	}
	if (sim_ids_next(&process->queues, &id))
		return -EBUSY;
	if (io->xnack_enabled && !process->xnack && !sim_process_can_xnack(process))
		return -EPERM;
	process->xnack = io->xnack_enabled != 0;
	return 0;
}

SIM_KFD_HANDLER(sim_kfd_runtime_enable)
{
	struct kfd_runtime_enable_args *io = args;
	bool enable = io->mode_mask & 1;
	u32 id = 0;

	(void)size;
	if (enable && sim_ids_next(&process->queues, &id))
		return -EEXIST;
	if (enable == process->runtime_enabled)
		return enable ? -EBUSY : -EPERM;
	process->runtime_enabled = enable;
	io->capabilities_mask = 0;
	return 0;
}

SIM_KFD_HANDLER(sim_kfd_smi_events)
{
	struct {
		u32 gpu_id, anon_fd;
	} *io = args;
	int fd;

	(void)size;
	if (!sim_process_pdd(process, io->gpu_id))
		return -EINVAL;
	fd = sim_os_smi_fd();
	if (fd < 0)
		return fd;
	io->anon_fd = (u32)fd;
	return 0;
}
