// SPDX-License-Identifier: GPL-2.0-only
/* /sys/module/amdgpu, by which ROCm programs tell whether the driver is loaded. It stands beside the
 * module's own directory, and has the one file that they read. */
#include <linux/kobject.h>
#include <linux/module.h>
#include <linux/sysfs.h>

#include "kmod.h"

static ssize_t initstate_show(struct kobject *kobject, struct kobj_attribute *attribute, char *text)
{
	return sysfs_emit(text, "live\n");
}
static struct kobj_attribute initstate = __ATTR_RO(initstate);

int kmod_module_init(struct kmod *kmod)
{
	kmod->module = kobject_create_and_add("amdgpu", THIS_MODULE->mkobj.kobj.parent);
	return kmod->module ? sysfs_create_file(kmod->module, &initstate.attr) : -ENOMEM;
}

void kmod_module_done(struct kmod *kmod)
{
	kobject_put(kmod->module);
	kmod->module = NULL;
}
