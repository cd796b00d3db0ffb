// SPDX-License-Identifier: GPL-2.0-only
/* RESUME of CRIU_OP: applies the SVM ranges that RESTORE has recorded, and starts the worker that
 * starts the queues. */
#include "process.h"

static int apply_range(struct sim_process *process, const struct sim_svm_range *range)
{
	struct kfd_ioctl_svm_attribute attrs[4 + SIM_MAX_GPUS];
	u32 count = 0, i;

	attrs[count++] = (struct kfd_ioctl_svm_attribute){ KFD_IOCTL_SVM_ATTR_PREFERRED_LOC,
							   range->preferred_loc };
	attrs[count++] =
		(struct kfd_ioctl_svm_attribute){ KFD_IOCTL_SVM_ATTR_CLR_FLAGS, ~range->flags };
	attrs[count++] =
		(struct kfd_ioctl_svm_attribute){ KFD_IOCTL_SVM_ATTR_SET_FLAGS, range->flags };
	attrs[count++] = (struct kfd_ioctl_svm_attribute){ KFD_IOCTL_SVM_ATTR_GRANULARITY,
							   range->granularity };
	for (i = 0; i < process->num_pdds; i++)
		attrs[count++] = (struct kfd_ioctl_svm_attribute){ range->access[i],
								   process->pdds[i]->user_gpu_id };
	return sim_svm_set(process, range->first * SIM_PAGE_SIZE, range->pages * SIM_PAGE_SIZE,
			   attrs, count);
}

static int apply_ranges(struct sim_process *process)
{
	struct sim_svm_range *range;
	int ret = 0;

	while (ret == 0 && (range = process->svm_pending)) {
		ret = apply_range(process, range);
		if (ret < 0)
			break;
		process->svm_pending = range->next;
		free(range);
	}
	return ret;
}

static int resume_process(struct sim_process *process)
{
	int ret;

	ret = apply_ranges(process);
	if (ret < 0)
		return ret;
	if (!process->blocked) {
		sim_violation(process->sim, "RESUME of process %u, which was not restored",
			      sim_os_process_pid(process));
		return -EINVAL;
	}
	process->blocked = false;
	process->resume_evictions++;
	sim_os_resume_start(process);
	return 0;
}

int sim_criu_resume(u32 pid)
{
	struct sim_process *process;
	int ret;

	process = sim_os_process_find(pid);
	if (!process)
		return -ESRCH;
	sim_lock(&process->lock);
	ret = resume_process(process);
	sim_unlock(&process->lock);
	sim_os_process_put(process);
	return ret;
}

/* The driver does not wait for user memory that is not there: update_invalid_user_pages() in
 * amdgpu_amdkfd_gpuvm.c (Linux 6.12 and 7.3) takes -EFAULT for success, and the queues fault when
 * they come to it. */
void sim_criu_resume_work(struct sim_process *process)
{
	u32 i;

	sim_lock(&process->lock);
	for (; process->resume_evictions; process->resume_evictions--)
		for (i = 0; i < process->num_pdds; i++)
			sim_engine_restore(process->pdds[i]);
	sim_unlock(&process->lock);
}
