/* SPDX-License-Identifier: GPL-2.0-only */
/* What the files of the kernel front end share: the objects that embed the model's, and the entry
 * points of each file. sim_os.h declares the functions that the model needs. */
#ifndef KMOD_H
#define KMOD_H

#include <drm/drm_client.h>
#include <drm/drm_device.h>
#include <drm/drm_file.h>
#include <drm/drm_gem.h>
#include <linux/device.h>
#include <linux/mmu_notifier.h>
#include <linux/platform_device.h>
#include <linux/workqueue.h>

#include "process.h"
#include "render.h"
#include "topology.h"

#define KMOD_FAULT_PAGES                                                        \
	128u /* mapped at once around a fault, because emulated faults are slow \
	      */
#define KMOD_MAX_FOREIGN 32

/* The one machine, which has everything else. */
struct kmod {
	struct sim sim;
	struct sim_topology topology;
	struct kmod_gpu *gpus[SIM_MAX_GPUS];
	struct {
		struct platform_device *parent;
		struct drm_device *drm;
	} foreign[KMOD_MAX_FOREIGN];
	u32 num_foreign, num_drivers;
	struct class *class;
	struct device *kfd;
	int kfd_major, taken_major;
	struct kmod_sysfs *sysfs;
	struct kobject *module, *procfs;
	struct dentry *debugfs;
	struct task_struct *engine;
	struct mutex processes_lock;
	struct list_head processes;
	struct workqueue_struct *process_wq;
};

struct kmod_gpu {
	struct sim_gpu *gpu;
	struct platform_device *parent;
	struct drm_device *drm;
	struct drm_client_dev client; /* KFD's own file */
	bool has_client, opens_client;
	/* of a partition, which uses the file of its device */
	struct drm_vma_offset_manager *own_offsets;
	struct workqueue_struct *ring_wq[SIM_DMA_RINGS];
};

struct kmod_bo {
	struct drm_gem_object gem;
	struct dma_buf *shown; /* of another GPU's buffer, or NULL */
	struct sim_bo bo;
};

struct kmod_render {
	struct sim_render render;
	struct drm_file *file;
};

struct kmod_process {
	struct sim_process process;
	struct kmod *kmod;
	struct kref refs;      /* the address space, every open file, pending work */
	struct list_head link; /* in kmod->processes while the address space lives */
	struct mmu_notifier notifier;
	struct mm_struct *mm;
	struct task_struct *lead_thread;
	struct kmod_directory *directory; /* NULL: it has none */
	u32 number;                       /* of a context, among those of its address space */
	bool exiting;
	u64 ended_ns;
	struct delayed_work late_work;
	struct work_struct exit_work, release_work, resume_work;
};

extern struct kmod *kmod_machine; /* callbacks of the kernel have no pointer to it */

static inline struct kmod_bo *kmod_bo_of(struct sim_bo *bo)
{
	return container_of(bo, struct kmod_bo, bo);
}

static inline struct kmod_bo *kmod_bo_of_gem(struct drm_gem_object *gem)
{
	return container_of(gem, struct kmod_bo, gem);
}

static inline struct kmod_render *kmod_render_of(struct sim_render *render)
{
	return container_of(render, struct kmod_render, render);
}

static inline struct kmod_process *kmod_process_of(struct sim_process *process)
{
	return container_of(process, struct kmod_process, process);
}

int kmod_drm_init(struct kmod *kmod);
void kmod_drm_done(struct kmod *kmod);
bool kmod_drm_owns_device(const struct drm_device *drm);
const struct file_operations *kmod_drm_fops(void);

struct drm_gem_object *kmod_gem_import(struct drm_device *drm, struct dma_buf *dmabuf);
int kmod_gem_mmap_pages(struct vm_area_struct *vma, struct sim_bo *bo);

int kmod_topology_init(struct kmod *kmod);
void kmod_topology_done(struct kmod *kmod);

int kmod_procfs_init(struct kmod *kmod);
void kmod_procfs_done(struct kmod *kmod);
/* The directory of a process in sysfs. That of a context is in that of the @first process. */
void kmod_procfs_add(struct kmod_process *process, const struct kmod_process *first);
void kmod_procfs_remove(struct kmod_process *process);

int kmod_module_init(struct kmod *kmod);
void kmod_module_done(struct kmod *kmod);

void kmod_debugfs_init(struct kmod *kmod);
void kmod_debugfs_done(struct kmod *kmod);

/* Hides the GPUs of a list of indices, and shows all others. -EINVAL. */
int kmod_hide(struct kmod *kmod, const char *list);

int kmod_kfd_init(struct kmod *kmod);
void kmod_kfd_done(struct kmod *kmod);

int kmod_process_open(struct kmod *kmod, struct kmod_process **ret_process);
/* A further KFD process of the address space of @first. */
int kmod_process_new_context(struct kmod_process *first, struct kmod_process **ret_process);
/* The address space ends, or the file of a context. */
void kmod_process_end(struct kmod_process *process);
void kmod_process_put(struct kmod_process *process);

#endif
