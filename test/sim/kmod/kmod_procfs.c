// SPDX-License-Identifier: GPL-2.0-only
/* The directory of each KFD process in /sys/class/kfd/kfd/proc, which is named after the pid of its
 * first thread, with the VRAM of its BOs on each GPU (kfd_process.c, Linux 6.12 and 7.3:
 * kfd_procfs_init(), kfd_create_process_sysfs(), kfd_procfs_add_sysfs_files()). The kernel's
 * directories of queues, and its other files, are not there. */
#include <linux/kobject.h>
#include <linux/slab.h>
#include <linux/sysfs.h>

#include "kmod.h"

#define NAME_SIZE 24

struct vram_file {
	struct kobj_attribute attribute;
	struct sim_pdd *pdd;
	char name[NAME_SIZE];
};

struct kmod_directory {
	struct kobject *kobject;
	struct vram_file files[SIM_MAX_GPUS];
};

int kmod_procfs_init(struct kmod *kmod)
{
	kmod->procfs = kobject_create_and_add("proc", &kmod->kfd->kobj);
	return kmod->procfs ? 0 : -ENOMEM;
}

void kmod_procfs_done(struct kmod *kmod)
{
	kobject_put(kmod->procfs);
	kmod->procfs = NULL;
}

static ssize_t show_vram(struct kobject *kobject, struct kobj_attribute *attribute, char *text)
{
	const struct vram_file *file = container_of(attribute, struct vram_file, attribute);

	return sysfs_emit(text, "%llu\n", sim_pdd_vram_bytes(file->pdd));
}

static void add_file(struct kobject *kobject, struct vram_file *file, struct sim_pdd *pdd)
{
	file->pdd = pdd;
	snprintf(file->name, sizeof(file->name), "vram_%u", pdd->gpu->gpu_id);
	sysfs_attr_init(&file->attribute.attr);
	file->attribute.attr.name = file->name;
	file->attribute.attr.mode = 0444;
	file->attribute.show = show_vram;
	if (sysfs_create_file(kobject, &file->attribute.attr) < 0)
		pr_warn("amdgpu_sim: no file %s of a process\n", file->name);
}

/* As in the driver, the process also lives without its directory. */
void kmod_procfs_add(struct kmod_process *process)
{
	struct kmod_directory *directory = kzalloc(sizeof(*directory), GFP_KERNEL);
	char name[NAME_SIZE];
	u32 i;

	if (!directory)
		return;
	snprintf(name, sizeof(name), "%d", process->lead_thread->pid);
	directory->kobject = kobject_create_and_add(name, process->kmod->procfs);
	if (!directory->kobject) {
		kfree(directory);
		return;
	}
	for (i = 0; i < process->process.num_pdds; i++)
		add_file(directory->kobject, &directory->files[i], process->process.pdds[i]);
	process->directory = directory;
}

void kmod_procfs_remove(struct kmod_process *process)
{
	if (!process->directory)
		return;
	kobject_del(process->directory->kobject);
	kobject_put(process->directory->kobject);
	kfree(process->directory);
	process->directory = NULL;
}
