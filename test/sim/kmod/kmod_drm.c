// SPDX-License-Identifier: GPL-2.0-only
/* The render nodes: a DRM device named amdgpu for each GPU, its open files and its ioctls, and the
 * nodes of "another vendor" that occupy minors. kmod_gem.c has the buffers. */
#include <drm/drm_drv.h>
#include <drm/drm_ioctl.h>
#include <drm/drm_prime.h>
#include <linux/file.h>
#include <linux/mod_devicetable.h>
#include <linux/module.h>

#include "kmod.h"

#define FIRST_RENDER_MINOR 128

/* All files of a device have the drm_device of its first partition. The node determines the
 * partition, as in amdgpu_xcp.c: amdgpu_xcp_open_device() (6.12). */
static struct sim_gpu *gpu_of_file(struct drm_device *drm, struct drm_file *file)
{
	struct kmod_gpu *device = drm->dev_private;
	struct sim *sim = device->gpu->sim;
	u32 i;

	for (i = 0; i < sim->num_gpus; i++) {
		struct kmod_gpu *partition = sim->gpus[i].front;

		if (partition && partition->drm->render == file->minor)
			return &sim->gpus[i];
	}
	return device->gpu;
}

static int init_render(struct sim_render *render, struct sim_gpu *gpu, bool is_client)
{
	if (!is_client)
		return sim_render_init(render, gpu);
	sim_render_init_client(render, gpu);
	return 0;
}

static int drm_open_file(struct drm_device *drm, struct drm_file *file)
{
	struct kmod_gpu *device = drm->dev_private;
	struct sim_gpu *gpu = gpu_of_file(drm, file);
	struct kmod_render *render;
	int ret;

	if (gpu->hidden && !device->opens_client)
		return -EPERM; /* the answer of the device cgroup */
	render = kzalloc(sizeof(*render), GFP_KERNEL);
	if (!render)
		return -ENOMEM;
	ret = init_render(&render->render, gpu, device->opens_client);
	if (ret < 0) {
		kfree(render);
		return ret;
	}
	render->file = file;
	file->driver_priv = render;
	return 0;
}

static void drm_close_file(struct drm_device *drm, struct drm_file *file)
{
	struct kmod_render *render = file->driver_priv;

	if (!render)
		return;
	sim_render_done(&render->render);
	kfree(render);
	file->driver_priv = NULL;
}

#define IOCTL_FUNCTION(id, number, type, function)                                             \
	static int ioctl_##function(struct drm_device *drm, void *data, struct drm_file *file) \
	{                                                                                      \
		struct kmod_render *render = file->driver_priv;                                \
		struct sim *sim = render->render.gpu->sim;                                     \
		int ret = sim_fault(&sim->faults, "drm", #id);                                 \
                                                                                               \
		sim_count(sim, SIM_COUNT_IOCTLS, 1);                                           \
		return ret < 0 ? ret : function(&render->render, data);                        \
	}
SIM_RENDER_IOCTLS(IOCTL_FUNCTION)

#define IOCTL_ENTRY(id, number, type, function)                          \
	[number] = { .cmd = DRM_IOWR(DRM_COMMAND_BASE + (number), type), \
		     .flags = DRM_AUTH | DRM_RENDER_ALLOW,               \
		     .func = ioctl_##function,                           \
		     .name = #id },
/* Only the owner of a display may call it. These GPUs have no display, and render nodes may not
 * call it. */
static int ioctl_sched(struct drm_device *drm, void *data, struct drm_file *file)
{
	return -EINVAL;
}

static const struct drm_ioctl_desc ioctls[] = {
	SIM_RENDER_IOCTLS(IOCTL_ENTRY)[0x15] = { .cmd = DRM_IOW(DRM_COMMAND_BASE + 0x15, u64[2]),
						 .flags = DRM_MASTER,
						 .func = ioctl_sched,
						 .name = "SCHED" },
};

/* The DRM core deletes the handles before it calls postclose, and with them the mappings that jobs
 * still need. */
static int drm_release_file(struct inode *inode, struct file *file)
{
	struct drm_file *drm_file = file->private_data;
	struct kmod_render *render = drm_file->driver_priv;

	sim_render_closing(&render->render);
	return drm_release(inode, file);
}

static const struct file_operations drm_fops = {
	.owner = THIS_MODULE,
	.open = drm_open,
	.release = drm_release_file,
	.unlocked_ioctl = drm_ioctl,
	.compat_ioctl = drm_compat_ioctl,
	.poll = drm_poll,
	.read = drm_read,
	.mmap = drm_gem_mmap,
	.llseek = noop_llseek,
	.show_fdinfo = drm_show_fdinfo,
	.fop_flags = FOP_UNSIGNED_OFFSET,
};

/* amdgpu_fdinfo.c: amdgpu_show_fdinfo() (6.12), of which only the PASID is here */
static void show_fdinfo(struct drm_printer *printer, struct drm_file *file)
{
	const struct kmod_render *render = file->driver_priv;

	drm_printf(printer, "pasid:\t%u\n", render->render.pasid);
}

static int dumb_create(struct drm_file *file, struct drm_device *drm,
		       struct drm_mode_create_dumb *args)
{
	return -ENOSYS;
}

/* Clients in the kernel are for drivers of displays. A device has no such client once this one is
 * set. */
static const struct drm_driver drm_driver = {
	.driver_features = DRIVER_GEM | DRIVER_RENDER | DRIVER_SYNCOBJ | DRIVER_MODESET,
	.dumb_create = dumb_create,
	.open = drm_open_file,
	.postclose = drm_close_file,
	.show_fdinfo = show_fdinfo,
	.gem_prime_import = kmod_gem_import,
	.fops = &drm_fops,
	.ioctls = ioctls,
	.num_ioctls = ARRAY_SIZE(ioctls),
	.name = "amdgpu",
	.desc = "AMD GPU (simulated)",
	.date = "20150101",
	.major = 3,
	.minor = 64,
};

DEFINE_DRM_GEM_FOPS(foreign_fops);

static const struct drm_driver foreign_driver = {
	.driver_features = DRIVER_GEM | DRIVER_RENDER,
	.fops = &foreign_fops,
	.name = "foreign_sim",
	.desc = "GPU of another vendor (simulated)",
	.date = "20240101",
	.major = 1,
};

static int probe(struct platform_device *parent)
{
	return 0;
}

/* Bound to the parents for their names only: device/driver in sysfs names the driver of the GPU. */
static const struct platform_device_id amdgpu_ids[] = { { "amdgpu_sim" }, {} };
static const struct platform_device_id foreign_ids[] = { { "foreign_sim" }, {} };
static struct platform_driver parent_drivers[] = {
	{ .probe = probe, .driver = { .name = "amdgpu" }, .id_table = amdgpu_ids },
	{ .probe = probe, .driver = { .name = "foreign_sim" }, .id_table = foreign_ids },
};

struct sim_render *sim_os_render_from_fd(int fd)
{
	struct file *file = fget(fd);
	struct drm_file *drm_file;
	struct kmod_render *render;

	if (!file)
		return NULL;
	if (file->f_op != &drm_fops) {
		fput(file);
		return NULL;
	}
	drm_file = file->private_data;
	render = drm_file->driver_priv;
	return &render->render;
}

void sim_os_render_put(struct sim_render *render)
{
	fput(kmod_render_of(render)->file->filp);
}

static void job_work(struct work_struct *work)
{
	void *front = work;

	sim_job_run(container_of(front, struct sim_job, front));
}

/* Copies end as they are executed. */
void sim_os_job_copied(struct sim_job *job)
{
	sim_job_finish(job, 0);
}

void sim_os_job_start(struct sim_job *job)
{
	struct kmod_gpu *device = job->render->gpu->front;
	struct work_struct *work = (struct work_struct *)job->front;

	BUILD_BUG_ON(sizeof(*work) > sizeof(job->front));
	INIT_WORK(work, job_work);
	queue_work(device->ring_wq[job->ring], work);
}

static struct platform_device *new_parent(const char *name, int id, const struct drm_driver *driver,
					  struct drm_device **ret_drm)
{
	struct platform_device *parent = platform_device_register_simple(name, id, NULL, 0);
	struct drm_device *drm;

	if (IS_ERR(parent))
		return parent;
	drm = drm_dev_alloc(driver, &parent->dev);
	if (IS_ERR(drm)) {
		platform_device_unregister(parent);
		return ERR_CAST(drm);
	}
	*ret_drm = drm;
	return parent;
}

static int foreign_add(struct kmod *kmod)
{
	u32 index = kmod->num_foreign;
	struct platform_device *parent;
	struct drm_device *drm;
	int ret;

	if (index == KMOD_MAX_FOREIGN)
		return -ENOSPC;
	parent = new_parent("foreign_sim", (int)index, &foreign_driver, &drm);
	if (IS_ERR(parent))
		return PTR_ERR(parent);
	ret = drm_dev_register(drm, 0);
	if (ret < 0) {
		drm_dev_put(drm);
		platform_device_unregister(parent);
		return ret;
	}
	kmod->foreign[index].parent = parent;
	kmod->foreign[index].drm = drm;
	kmod->num_foreign++;
	return drm->render->index;
}

/* amdgpu_amdkfd.c: amdgpu_amdkfd_drm_client_create() (6.12) */
static int open_client(struct kmod_gpu *device)
{
	struct drm_device *drm = device->drm;
	int ret;

	INIT_LIST_HEAD(&drm->mode_config.crtc_list);
	device->opens_client = true;
	ret = drm_client_init(drm, &device->client, "kfd", NULL);
	device->opens_client = false;
	device->has_client = ret == 0;
	return ret;
}

struct sim_render *sim_os_kfd_client(struct sim_gpu *gpu)
{
	struct kmod_gpu *device = sim_gpu_device(gpu)->front;
	struct kmod_render *render = device->client.file->driver_priv;

	return &render->render;
}

/* amdgpu_xcp.c: amdgpu_xcp_dev_alloc() (6.12) redirects the nodes of a partition to its device, and
 * amdgpu_xcp_dev_unplug() restores them. */
static void lead_to_device(struct kmod_gpu *partition, struct drm_device *device)
{
	struct drm_device *drm = partition->drm;

	partition->own_offsets = drm->vma_offset_manager;
	drm->render->dev = device;
	drm->primary->dev = device;
	drm->vma_offset_manager = device->vma_offset_manager;
}

static void lead_back(struct kmod_gpu *partition)
{
	struct drm_device *drm = partition->drm;

	if (!partition->own_offsets)
		return;
	drm->render->dev = drm;
	drm->primary->dev = drm;
	drm->vma_offset_manager = partition->own_offsets;
}

static void gpu_free(struct kmod_gpu *device)
{
	u32 i;

	for (i = 0; i < SIM_DMA_RINGS; i++)
		if (device->ring_wq[i])
			destroy_workqueue(device->ring_wq[i]);
	if (device->has_client)
		drm_client_release(&device->client);
	if (device->drm) {
		lead_back(device);
		drm_dev_put(device->drm);
	}
	if (device->parent)
		platform_device_unregister(device->parent);
	kfree(device);
}

static int gpu_make(struct kmod_gpu *device, struct sim_gpu *gpu)
{
	struct sim_gpu *first = sim_gpu_device(gpu);
	struct platform_device *parent;
	int ret = 0;
	u32 i;

	for (i = 0; i < SIM_DMA_RINGS; i++) {
		device->ring_wq[i] = alloc_ordered_workqueue("sim_sdma%u.%u", 0, gpu->index, i);
		if (!device->ring_wq[i])
			return -ENOMEM;
	}
	parent = new_parent("amdgpu_sim", (int)gpu->index, &drm_driver, &device->drm);
	if (IS_ERR(parent))
		return PTR_ERR(parent);
	device->parent = parent;
	device->drm->dev_private = device;
	device->gpu = gpu;
	gpu->front = device;
	if (first == gpu)
		ret = open_client(device);
	else
		lead_to_device(device, ((struct kmod_gpu *)first->front)->drm);
	device->drm->driver_features &= ~DRIVER_MODESET;
	return ret < 0 ? ret : drm_dev_register(device->drm, 0);
}

static int gpu_add(struct kmod *kmod, struct sim_gpu *gpu)
{
	struct kmod_gpu *device = kzalloc(sizeof(*device), GFP_KERNEL);
	int ret;

	if (!device)
		return -ENOMEM;
	ret = gpu_make(device, gpu);
	if (ret < 0) {
		gpu->front = NULL;
		gpu_free(device);
		return ret;
	}
	kmod->gpus[gpu->index] = device;
	gpu->render_minor = device->drm->render->index;
	return 0;
}

/* The GPU whose captured minor is the smallest above @minor; NULL: none. */
static struct sim_gpu *next_by_minor(struct sim *sim, u32 minor)
{
	struct sim_gpu *best = NULL;
	u32 i;

	for (i = 0; i < sim->num_gpus; i++) {
		struct sim_gpu *gpu = &sim->gpus[i];

		if (!gpu->front && gpu->render_minor > minor &&
		    (!best || gpu->render_minor < best->render_minor))
			best = gpu;
	}
	return best;
}

/* DRM numbers minors in the order of registration, so fillers take the minors of other GPUs. */
int kmod_drm_init(struct kmod *kmod)
{
	u32 next = FIRST_RENDER_MINOR, last = 0;
	struct sim_gpu *gpu;
	int ret;

	for (; kmod->num_drivers < ARRAY_SIZE(parent_drivers); kmod->num_drivers++) {
		ret = platform_driver_register(&parent_drivers[kmod->num_drivers]);
		if (ret < 0)
			return ret;
	}
	ret = 0;
	while ((gpu = next_by_minor(&kmod->sim, last))) {
		u32 wanted = gpu->render_minor;

		for (; ret >= 0 && next < wanted; next = (u32)ret + 1)
			ret = foreign_add(kmod);
		if (ret >= 0)
			ret = gpu_add(kmod, gpu);
		if (ret < 0)
			return ret;
		next = gpu->render_minor + 1;
		last = wanted;
	}
	return 0;
}

static void gpu_forget(struct kmod *kmod, u32 index)
{
	gpu_free(kmod->gpus[index]);
	kmod->gpus[index] = NULL;
}

/* Unregister partitions before the device to which their nodes lead. */
void kmod_drm_done(struct kmod *kmod)
{
	u32 i;

	for (i = 0; i < kmod->sim.num_gpus; i++) {
		if (kmod->gpus[i])
			drm_dev_unregister(kmod->gpus[i]->drm);
	}
	for (i = 0; i < kmod->sim.num_gpus; i++)
		if (kmod->gpus[i] && kmod->gpus[i]->own_offsets)
			gpu_forget(kmod, i);
	for (i = 0; i < kmod->sim.num_gpus; i++)
		if (kmod->gpus[i])
			gpu_forget(kmod, i);
	for (i = 0; i < kmod->num_foreign; i++) {
		drm_dev_unregister(kmod->foreign[i].drm);
		drm_dev_put(kmod->foreign[i].drm);
		platform_device_unregister(kmod->foreign[i].parent);
	}
	while (kmod->num_drivers)
		platform_driver_unregister(&parent_drivers[--kmod->num_drivers]);
}
