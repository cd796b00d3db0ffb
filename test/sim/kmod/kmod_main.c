// SPDX-License-Identifier: GPL-2.0-only
/* Loads and unloads the simulated AMD GPUs: parameters, the machine's description, and the order of
 * the parts. */
#include <linux/fs.h>
#include <linux/kernel_read_file.h>
#include <linux/module.h>
#include <linux/vmalloc.h>

#include "kernels.h"
#include "kmod.h"

#define MAX_BUNDLE (64u << 20)

static char *machine;
module_param(machine, charp, 0444);
MODULE_PARM_DESC(machine, "which machine to be (default one)");

static char *machine_file;
module_param(machine_file, charp, 0444);
MODULE_PARM_DESC(machine_file, "bundle of machines to take it from, instead of those built in");

static char *hidden;
module_param(hidden, charp, 0444);
MODULE_PARM_DESC(hidden, "indices of GPUs that nobody may see, separated by commas");

static char *kernel;
module_param(kernel, charp, 0444);
MODULE_PARM_DESC(kernel, "the kernel whose driver to behave like (default: default)");

struct kmod *kmod_machine;
static void *loaded_bundle;

/* The machines of test/data, as mkbundle.sh writes them. */
asm(".pushsection .rodata\n"
    ".global sim_bundle_start\n"
    "sim_bundle_start: .incbin \"" SIM_BUNDLE "\"\n"
    ".global sim_bundle_end\n"
    "sim_bundle_end: .byte 0\n"
    ".popsection\n");
extern const char sim_bundle_start[], sim_bundle_end[];

int kmod_hide(struct kmod *kmod, const char *list)
{
	bool hide[SIM_MAX_GPUS] = { false };
	u32 i;

	while (list && *list) {
		char *end;
		unsigned long index = simple_strtoul(list, &end, 10);

		if (end == list || index >= kmod->sim.num_gpus || (*end && *end != ','))
			return -EINVAL;
		hide[index] = true;
		list = *end ? end + 1 : end;
	}
	for (i = 0; i < kmod->sim.num_gpus; i++)
		kmod->sim.gpus[i].hidden = hide[i];
	return 0;
}

static int read_machine(struct kmod *kmod)
{
	const char *name = machine ? machine : machine_file ? NULL : "one";
	ssize_t size;

	if (!machine_file)
		return sim_topology_read(&kmod->sim, sim_bundle_start,
					 sim_bundle_end - sim_bundle_start, name, &kmod->topology);
	size = kernel_read_file_from_path(machine_file, 0, &loaded_bundle, MAX_BUNDLE, NULL,
					  READING_FIRMWARE);
	if (size < 0)
		return (int)size;
	return sim_topology_read(&kmod->sim, loaded_bundle, (u64)size, name, &kmod->topology);
}

static void tear_down(struct kmod *kmod)
{
	kmod_debugfs_done(kmod);
	kmod_module_done(kmod);
	kmod_topology_done(kmod);
	kmod_kfd_done(kmod);
	kmod_drm_done(kmod);
	sim_topology_done(&kmod->topology);
	sim_done(&kmod->sim);
	vfree(loaded_bundle);
	kvfree(kmod);
	kmod_machine = NULL;
}

static int build_up(struct kmod *kmod)
{
	int ret;

	ret = sim_init(&kmod->sim);
	if (ret == 0)
		ret = read_machine(kmod);
	if (ret == 0)
		ret = kmod_hide(kmod, hidden);
	if (ret == 0 && kernel)
		ret = sim_kernel_set(&kmod->sim, kernel);
	if (ret == 0)
		ret = kmod_drm_init(kmod);
	if (ret == 0)
		ret = kmod_kfd_init(kmod);
	if (ret == 0)
		ret = kmod_topology_init(kmod);
	if (ret == 0)
		ret = kmod_module_init(kmod);
	if (ret == 0)
		kmod_debugfs_init(kmod);
	return ret;
}

static int __init amdgpu_sim_init(void)
{
	struct kmod *kmod = kvzalloc(sizeof(*kmod), GFP_KERNEL);
	int ret;

	if (!kmod)
		return -ENOMEM;
	kmod_machine = kmod;
	ret = build_up(kmod);
	if (ret < 0) {
		pr_err("amdgpu_sim: cannot be machine %s with kernel %s: %d\n",
		       machine ? machine : "one", kernel ? kernel : "default", ret);
		tear_down(kmod);
		return ret;
	}
	pr_info("amdgpu_sim: %u GPUs\n", kmod->sim.num_gpus);
	return 0;
}

static void __exit amdgpu_sim_exit(void)
{
	tear_down(kmod_machine);
}

module_init(amdgpu_sim_init);
module_exit(amdgpu_sim_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Simulated AMD GPUs: KFD, DRM render nodes and topology");
