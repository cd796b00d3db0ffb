// SPDX-License-Identifier: GPL-2.0-only
/* The directory of each KFD process in /sys/class/kfd/kfd/proc, which is named after the pid of its
 * first thread, with its PASID, its queues, the VRAM of its BOs on each GPU, and its contexts
 * (kfd_process.c, Linux 6.12 and 7.3: kfd_procfs_init(), kfd_create_process_sysfs(),
 * kfd_procfs_add_queue(), kfd_procfs_add_sysfs_files()). The kernel's other files are not there. */
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
	struct kobject *queues; /* NULL: it has none */
	struct kobj_attribute pasid;
	u32 pasid_value;
	struct vram_file files[SIM_MAX_GPUS];
};

/* What the files say stays as it was when the queue began. */
struct queue_directory {
	struct kobject *kobject;
	struct sim_queue_facts facts;
	struct kobj_attribute size, type, gpuid;
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

static ssize_t show_pasid(struct kobject *kobject, struct kobj_attribute *attribute, char *text)
{
	return sysfs_emit(text, "%u\n",
			  container_of(attribute, struct kmod_directory, pasid)->pasid_value);
}

static ssize_t show_size(struct kobject *kobject, struct kobj_attribute *attribute, char *text)
{
	return sysfs_emit(text, "%llu",
			  container_of(attribute, struct queue_directory, size)->facts.size_bytes);
}

static ssize_t show_type(struct kobject *kobject, struct kobj_attribute *attribute, char *text)
{
	return sysfs_emit(text, "%u",
			  container_of(attribute, struct queue_directory, type)->facts.type);
}

static ssize_t show_gpuid(struct kobject *kobject, struct kobj_attribute *attribute, char *text)
{
	return sysfs_emit(text, "%u",
			  container_of(attribute, struct queue_directory, gpuid)->facts.gpu_id);
}

typedef ssize_t (*show_function)(struct kobject *kobject, struct kobj_attribute *attribute,
				 char *text);

/* @name lives as long as @attribute. */
static void add_file(struct kobject *kobject, struct kobj_attribute *attribute, const char *name,
		     show_function show)
{
	sysfs_attr_init(&attribute->attr);
	attribute->attr.name = name;
	attribute->attr.mode = 0444;
	attribute->show = show;
	if (sysfs_create_file(kobject, &attribute->attr) < 0)
		pr_warn("amdgpu_sim: no file %s of a process\n", name);
}

static void add_vram(struct kobject *kobject, struct vram_file *file, struct sim_pdd *pdd)
{
	file->pdd = pdd;
	snprintf(file->name, sizeof(file->name), "vram_%u", pdd->gpu->gpu_id);
	add_file(kobject, &file->attribute, file->name, show_vram);
}

void sim_os_queue_entered(struct sim_queue *queue)
{
	struct kmod_directory *process = kmod_process_of(queue->pdd->process)->directory;
	struct queue_directory *directory;
	char name[NAME_SIZE];

	if (!process || !process->queues)
		return;
	directory = kzalloc(sizeof(*directory), GFP_KERNEL);
	if (!directory)
		return;
	sim_queue_read_facts(queue, &directory->facts);
	snprintf(name, sizeof(name), "%u", queue->id);
	directory->kobject = kobject_create_and_add(name, process->queues);
	if (!directory->kobject) {
		kfree(directory);
		return;
	}
	add_file(directory->kobject, &directory->size, "size", show_size);
	add_file(directory->kobject, &directory->type, "type", show_type);
	add_file(directory->kobject, &directory->gpuid, "gpuid", show_gpuid);
	queue->directory = directory;
}

static void remove_directory(struct kobject *kobject)
{
	kobject_del(kobject);
	kobject_put(kobject);
}

void sim_os_queue_leaves(struct sim_queue *queue)
{
	struct queue_directory *directory = queue->directory;

	if (!directory)
		return;
	remove_directory(directory->kobject);
	kfree(directory);
	queue->directory = NULL;
}

static struct kobject *make_directory(struct kmod_process *process,
				      const struct kmod_process *first)
{
	char name[NAME_SIZE];

	if (!first) {
		snprintf(name, sizeof(name), "%d", process->lead_thread->pid);
		return kobject_create_and_add(name, process->kmod->procfs);
	}
	snprintf(name, sizeof(name), "context_%u", process->number);
	return first->directory ? kobject_create_and_add(name, first->directory->kobject) : NULL;
}

/* As in the driver, the process also lives without its directory. */
void kmod_procfs_add(struct kmod_process *process, const struct kmod_process *first)
{
	struct kmod_directory *directory = kzalloc(sizeof(*directory), GFP_KERNEL);
	u32 i;

	if (!directory)
		return;
	directory->kobject = make_directory(process, first);
	if (!directory->kobject) {
		kfree(directory);
		return;
	}
	directory->pasid_value = process->process.pasid;
	add_file(directory->kobject, &directory->pasid, "pasid", show_pasid);
	directory->queues = kobject_create_and_add("queues", directory->kobject);
	for (i = 0; i < process->process.num_pdds; i++)
		add_vram(directory->kobject, &directory->files[i], process->process.pdds[i]);
	process->directory = directory;
}

void kmod_procfs_remove(struct kmod_process *process)
{
	struct kmod_directory *directory = process->directory;

	if (!directory)
		return;
	if (directory->queues)
		remove_directory(directory->queues);
	remove_directory(directory->kobject);
	kfree(directory);
	process->directory = NULL;
}
