// SPDX-License-Identifier: GPL-2.0-only
/* The ioctls about a process and its GPUs as a whole: versions, page tables, free memory, XNACK. */
#include "process.h"

SIM_KFD_HANDLER(sim_kfd_get_version)
{
	struct kfd_ioctl_get_version_args *version = args;

	version->major_version = 1;
	version->minor_version = (u32)process->sim->knobs.kfd_minor;
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
