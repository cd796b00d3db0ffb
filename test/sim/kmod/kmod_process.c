// SPDX-License-Identifier: GPL-2.0-only
/* KFD processes as kernel objects: found by address space, referenced by it and by open files,
 * ended by the mmu notifier and a work item. The model has their contents. */
#include <drm/drm_drv.h>
#include <linux/capability.h>
#include <linux/device_cgroup.h>
#include <linux/module.h>
#include <linux/pid.h>
#include <linux/ptrace.h>
#include <linux/sched/mm.h>
#include <linux/sched/task.h>

#include "kmod.h"

#define DRM_CHAR_MAJOR 226
#define RETRY_MS       1

static void release_work(struct work_struct *work)
{
	struct kmod_process *process = container_of(work, struct kmod_process, release_work);

	/* before its memory is freed, as in kfd_process_wq_release() (kfd_process.c) */
	kmod_procfs_remove(process);
	sim_process_done(&process->process);
	put_task_struct(process->lead_thread);
	kfree(process);
	module_put(THIS_MODULE);
}

/* The driver queues its release work in kfd_process_free_notifier() (kfd_process.c, Linux 6.12 and
 * 7.2), which mmu_notifier_put() calls after an SRCU grace period. Until then the work is not in
 * the queue that kfd_create_process() flushes. The loop reads the knob repeatedly, so that 0 ends
 * the period at once. */
static void late_work(struct work_struct *work)
{
	struct kmod_process *process =
		container_of(to_delayed_work(work), struct kmod_process, late_work);
	u64 delay_ms = READ_ONCE(process->kmod->sim.knobs.teardown_delay_ms);

	if (ktime_get_ns() - process->ended_ns < delay_ms * NSEC_PER_MSEC)
		queue_delayed_work(system_unbound_wq, &process->late_work,
				   msecs_to_jiffies(RETRY_MS));
	else
		queue_work(process->kmod->process_wq, &process->release_work);
}

static void last_reference(struct kref *refs)
{
	struct kmod_process *process = container_of(refs, struct kmod_process, refs);

	process->ended_ns = ktime_get_ns();
	if (process->kmod->sim.knobs.teardown_delay_ms)
		queue_delayed_work(system_unbound_wq, &process->late_work, 0);
	else
		queue_work(process->kmod->process_wq, &process->release_work);
}

void kmod_process_put(struct kmod_process *process)
{
	kref_put(&process->refs, last_reference);
}

static void exit_work(struct work_struct *work)
{
	struct kmod_process *process = container_of(work, struct kmod_process, exit_work);

	mutex_lock(&process->kmod->processes_lock);
	list_del_init(&process->link);
	mutex_unlock(&process->kmod->processes_lock);
	mmu_notifier_unregister(&process->notifier, process->mm);
	kmod_process_put(process);
}

/* From now on no queue may touch the address space. */
void kmod_process_end(struct kmod_process *process)
{
	sim_process_mm_gone(&process->process);
	/* unregistering calls this a second time, if it happens before the first call ends */
	if (!xchg(&process->exiting, true))
		queue_work(process->kmod->process_wq, &process->exit_work);
}

static void notifier_release(struct mmu_notifier *notifier, struct mm_struct *mm)
{
	kmod_process_end(container_of(notifier, struct kmod_process, notifier));
}

static int notifier_invalidate(struct mmu_notifier *notifier,
			       const struct mmu_notifier_range *range)
{
	struct kmod_process *process = container_of(notifier, struct kmod_process, notifier);

	if (range->event == MMU_NOTIFY_UNMAP && mmu_notifier_range_blockable(range))
		sim_svm_unmapped(&process->process, range->start, range->end);
	return 0;
}

static const struct mmu_notifier_ops notifier_ops = {
	.release = notifier_release,
	.invalidate_range_start = notifier_invalidate,
};

static void resume_work(struct work_struct *work)
{
	struct kmod_process *process = container_of(work, struct kmod_process, resume_work);

	sim_criu_resume_work(&process->process);
	kmod_process_put(process);
}

void sim_os_resume_start(struct sim_process *sim_process)
{
	struct kmod_process *process = kmod_process_of(sim_process);

	kref_get(&process->refs);
	if (!queue_work(system_unbound_wq, &process->resume_work))
		kmod_process_put(process);
}

static struct kmod_process *find_locked(struct kmod *kmod, const struct mm_struct *mm)
{
	struct kmod_process *process;

	list_for_each_entry(process, &kmod->processes, link) {
		if (process->mm == mm && !process->process.is_context &&
		    kref_get_unless_zero(&process->refs))
			return process;
	}
	return NULL;
}

static bool has_context(struct kmod *kmod, const struct mm_struct *mm, u32 number)
{
	const struct kmod_process *process;

	list_for_each_entry(process, &kmod->processes, link) {
		if (process->mm == mm && process->process.is_context && process->number == number)
			return true;
	}
	return false;
}

/* @first: the process that the new one is a context of, or NULL. */
static int process_new(struct kmod *kmod, struct kmod_process *first,
		       struct kmod_process **ret_process)
{
	struct kmod_process *process = kzalloc(sizeof(*process), GFP_KERNEL);
	int ret;

	if (!process)
		return -ENOMEM;
	process->kmod = kmod;
	kref_init(&process->refs); /* of the address space */
	INIT_LIST_HEAD(&process->link);
	INIT_WORK(&process->exit_work, exit_work);
	INIT_DELAYED_WORK(&process->late_work, late_work);
	INIT_WORK(&process->release_work, release_work);
	INIT_WORK(&process->resume_work, resume_work);
	process->mm = current->mm;
	ret = sim_process_init(&process->process, &kmod->sim);
	if (ret < 0) {
		kfree(process);
		return ret;
	}
	process->notifier.ops = &notifier_ops;
	ret = mmu_notifier_register(&process->notifier, current->mm);
	if (ret < 0) {
		sim_process_done(&process->process);
		kfree(process);
		return ret;
	}
	process->lead_thread = get_task_struct(current->group_leader);
	__module_get(THIS_MODULE);
	process->process.is_context = first;
	while (first && has_context(kmod, process->mm, process->number))
		process->number++;
	kmod_procfs_add(process, first);
	list_add_tail(&process->link, &kmod->processes);
	kref_get(&process->refs); /* of the caller */
	*ret_process = process;
	return 0;
}

int kmod_process_open(struct kmod *kmod, struct kmod_process **ret_process)
{
	int ret = 0;

	if (!current->mm || current->group_leader->mm != current->mm)
		return -EINVAL;
	/* finish the cleanup of a process that has just ended: the work of its address space queues
	 * the work of its objects */
	flush_workqueue(kmod->process_wq);
	flush_workqueue(kmod->process_wq);
	mutex_lock(&kmod->processes_lock);
	*ret_process = find_locked(kmod, current->mm);
	if (!*ret_process)
		ret = process_new(kmod, NULL, ret_process);
	mutex_unlock(&kmod->processes_lock);
	return ret;
}

int kmod_process_new_context(struct kmod_process *first, struct kmod_process **ret_process)
{
	int ret;

	mutex_lock(&first->kmod->processes_lock);
	ret = process_new(first->kmod, first, ret_process);
	mutex_unlock(&first->kmod->processes_lock);
	return ret;
}

struct sim_process *sim_os_process_find(u32 number)
{
	struct kmod_process *process = NULL;
	struct pid *pid = find_get_pid((pid_t)number);
	struct task_struct *task = get_pid_task(pid, PIDTYPE_PID);
	struct mm_struct *mm = task ? get_task_mm(task) : NULL;

	if (mm) {
		mutex_lock(&kmod_machine->processes_lock);
		process = find_locked(kmod_machine, mm);
		mutex_unlock(&kmod_machine->processes_lock);
		mmput(mm);
	}
	if (task)
		put_task_struct(task);
	put_pid(pid);
	return process ? &process->process : NULL;
}

void sim_os_process_put(struct sim_process *process)
{
	kmod_process_put(kmod_process_of(process));
}

u32 sim_os_process_pid(struct sim_process *sim_process)
{
	struct task_struct *task = kmod_process_of(sim_process)->lead_thread;
	struct pid_namespace *ns;
	pid_t pid;

	rcu_read_lock();
	ns = task_active_pid_ns(task);
	pid = ns ? task_pid_nr_ns(task, ns) : 0;
	rcu_read_unlock();
	return (u32)pid;
}

struct sim_mm *sim_os_process_mm(struct sim_process *process)
{
	return (struct sim_mm *)kmod_process_of(process)->mm;
}

bool sim_os_capable(void)
{
	return capable(CAP_CHECKPOINT_RESTORE) || capable(CAP_SYS_ADMIN);
}

bool sim_os_gpu_visible(const struct sim_gpu *gpu)
{
	return devcgroup_check_permission(DEVCG_DEV_CHAR, DRM_CHAR_MAJOR, gpu->render_minor,
					  DEVCG_ACC_READ | DEVCG_ACC_WRITE) == 0;
}

bool sim_os_is_owner(struct sim_process *process)
{
	return kmod_process_of(process)->lead_thread == current->group_leader;
}

/* The tracing thread itself, not its thread group, as in the driver. */
bool sim_os_is_tracer(struct sim_process *process)
{
	bool is_tracer;

	rcu_read_lock();
	is_tracer = ptrace_parent(kmod_process_of(process)->lead_thread) == current;
	rcu_read_unlock();
	return is_tracer;
}
