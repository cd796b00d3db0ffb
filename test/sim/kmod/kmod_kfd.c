// SPDX-License-Identifier: GPL-2.0-only
/* The character device /dev/kfd with its class, and the kernel thread that runs the model's queue
 * engine. */
#include <linux/cdev.h>
#include <linux/compat.h>
#include <linux/delay.h>
#include <linux/fs.h>
#include <linux/kthread.h>
#include <linux/mm.h>
#include <linux/module.h>

#include "kmod.h"

#define IDLE_MIN_US 50u
#define IDLE_MAX_US 2000u

static int kfd_open(struct inode *inode, struct file *file)
{
	struct kmod_process *process;
	int ret;

	if (iminor(inode) != 0)
		return -ENODEV;
	if (in_compat_syscall())
		return -EPERM;
	ret = sim_fault(&kmod_machine->sim.faults, "kfd", "OPEN");
	if (ret == 0)
		ret = kmod_process_open(kmod_machine, &process);
	if (ret < 0)
		return ret;
	file->private_data = process;
	return 0;
}

static int kfd_release(struct inode *inode, struct file *file)
{
	struct kmod_process *process = file->private_data;

	/* kfd_chardev.c: kfd_release() (Linux 7.3) */
	if (process->process.is_context)
		kmod_process_end(process);
	kmod_process_put(process);
	return 0;
}

/* The file has a process of its own from now on (kfd_chardev.c: kfd_ioctl_create_process(), Linux
 * 7.3). */
static int new_context(struct file *file)
{
	struct kmod_process *first = file->private_data, *context;
	int ret = kmod_process_new_context(first, &context);

	if (ret < 0)
		return ret;
	file->private_data = context;
	kmod_process_put(first);
	return 0;
}

static long kfd_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct kmod_process *process = file->private_data;
	long ret = sim_kfd_ioctl(&process->process, cmd, arg);

	return ret == SIM_KFD_NEW_CONTEXT ? new_context(file) : ret;
}

static int kfd_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct kmod_process *process = file->private_data;
	struct sim_kfd_map map;
	u32 i;
	int ret;

	/* the rule of kernels from 1.19 on: only the file's process may use it */
	if (process->mm != current->mm || !sim_os_is_owner(&process->process))
		return -EBADF;
	ret = sim_kfd_mmap(&process->process, (u64)vma->vm_pgoff << PAGE_SHIFT,
			   vma->vm_end - vma->vm_start, &map);
	if (ret < 0)
		return ret;
	vm_flags_set(vma,
		     VM_IO | VM_DONTCOPY | VM_DONTEXPAND | VM_NORESERVE | VM_DONTDUMP | VM_PFNMAP);
	for (i = 0; ret == 0 && i < map.count; i++)
		ret = remap_pfn_range(vma, vma->vm_start + ((unsigned long)i << PAGE_SHIFT),
				      PHYS_PFN(__pa(map.page[i])), PAGE_SIZE, vma->vm_page_prot);
	return ret;
}

static const struct file_operations kfd_fops = {
	.owner = THIS_MODULE,
	.open = kfd_open,
	.release = kfd_release,
	.unlocked_ioctl = kfd_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.mmap = kfd_mmap,
	.llseek = noop_llseek,
};

/* Polls doorbells while there are queues, less often the longer no queue has work. */
static int engine_thread(void *data)
{
	struct sim *sim = data;
	u32 idle_us = IDLE_MIN_US;

	while (!kthread_should_stop()) {
		if (!sim_engine_has_work(sim)) {
			DEFINE_WAIT_FUNC(entry, woken_wake_function);

			add_wait_queue(&sim->engine_wait.head, &entry);
			if (!sim_engine_has_work(sim) && !kthread_should_stop())
				wait_woken(&entry, TASK_IDLE, HZ);
			remove_wait_queue(&sim->engine_wait.head, &entry);
			continue;
		}
		if (sim_engine_pass(sim)) {
			idle_us = IDLE_MIN_US;
			cond_resched();
			continue;
		}
		usleep_range(idle_us, idle_us * 2);
		idle_us = min(idle_us * 2, IDLE_MAX_US);
	}
	return 0;
}

/* Another driver has the old major number of /dev/kfd, as after a reboot. */
static bool other_kfd_major;
module_param(other_kfd_major, bool, 0444);
MODULE_PARM_DESC(other_kfd_major, "give /dev/kfd another major number than the first that is free");

static const struct file_operations no_fops = { .owner = THIS_MODULE };

static int make_device(struct kmod *kmod)
{
	if (other_kfd_major)
		kmod->taken_major = register_chrdev(0, "taken_sim", &no_fops);
	kmod->kfd_major = register_chrdev(0, "kfd", &kfd_fops);
	if (kmod->kfd_major < 0)
		return kmod->kfd_major;
	kmod->class = class_create("kfd");
	if (IS_ERR(kmod->class)) {
		int ret = PTR_ERR(kmod->class);

		kmod->class = NULL;
		return ret;
	}
	kmod->kfd = device_create(kmod->class, NULL, MKDEV(kmod->kfd_major, 0), NULL, "kfd");
	if (IS_ERR(kmod->kfd)) {
		int ret = PTR_ERR(kmod->kfd);

		kmod->kfd = NULL;
		return ret;
	}
	return 0;
}

int kmod_kfd_init(struct kmod *kmod)
{
	int ret;

	mutex_init(&kmod->processes_lock);
	INIT_LIST_HEAD(&kmod->processes);
	kmod->process_wq = alloc_workqueue("kfd_process_wq", WQ_UNBOUND, 0);
	if (!kmod->process_wq)
		return -ENOMEM;
	kmod->engine = kthread_run(engine_thread, &kmod->sim, "sim_engine");
	if (IS_ERR(kmod->engine)) {
		ret = PTR_ERR(kmod->engine);
		kmod->engine = NULL;
		return ret;
	}
	ret = make_device(kmod);
	return ret < 0 ? ret : kmod_procfs_init(kmod);
}

void kmod_kfd_done(struct kmod *kmod)
{
	if (kmod->procfs)
		kmod_procfs_done(kmod);
	if (kmod->kfd)
		device_destroy(kmod->class, MKDEV(kmod->kfd_major, 0));
	if (kmod->class)
		class_destroy(kmod->class);
	if (kmod->kfd_major > 0)
		unregister_chrdev(kmod->kfd_major, "kfd");
	if (kmod->taken_major > 0)
		unregister_chrdev(kmod->taken_major, "taken_sim");
	if (kmod->process_wq)
		destroy_workqueue(kmod->process_wq);
	if (kmod->engine)
		kthread_stop(kmod->engine);
}
