// SPDX-License-Identifier: GPL-2.0-only
/* The ioctls about a process and its GPUs as a whole: versions, apertures, page tables, policies
 * and clocks. State that CRIU_OP does not read is only kept, as in the real driver. */
#include "process.h"

#define LDS_BASE     (1ull << 48)
#define SCRATCH_BASE (2ull << 48)
#define LOW_HALF     0xffffffffull

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
