// SPDX-License-Identifier: GPL-2.0-only
/* The kernel, its driver and the GPUs. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "amdgpu_plugin_util.h"
#include "check.h"
#include "content/content.h"
#include "criu/log.h"
#include "foresee.h"
#include "kernel/amdgpu_module.h"
#include "kernel/kfd.h"
#include "kernel/render_node.h"
#include "map/map.h"
#include "text.h"

static void say_kernel(const struct check *check)
{
	struct utsname name;

	if (!uname(&name))
		check_say_ok(check, "kernel: Linux %s", name.release);
}

/* Whose driver it is: "amdgpu of the kernel" or "AMD's amdgpu 6.10.5". */
static void name_driver(char *text, size_t size)
{
	char version[64];

	if (amdgpu_module_text("version", version, sizeof(version)))
		(void)snprintf(text, size, "AMD's out-of-tree amdgpu %s", version);
	else
		(void)snprintf(text, size, "amdgpu of the kernel");
}

/* UNPAUSE changes nothing in this process, which is not paused. It answers EACCES to a program
 * without the capability. */
static void check_driver(struct check *check)
{
	_cleanup_close_ int fd = -1;
	struct kfd_version_args version = { 0 };
	const char *cause;
	char driver[128];
	int ret = kfd_open(&fd);

	if (ret < 0) {
		check->refused = true;
		return;
	}
	ret = xioctl(fd, KFD_IOC_GET_VERSION, &version);
	if (!ret)
		ret = kfd_unpause(fd);
	name_driver(driver, sizeof(driver));
	if (!ret || ret == -EINVAL || (ret == -EACCES && check_may_checkpoint())) {
		check_say_ok(check, "driver: %s, KFD %u.%u, can checkpoint", driver, version.major,
			     version.minor);
		return;
	}
	cause = kfd_explain(KFD_PROCESS_INFO, ret);
	check_refuse(check, "driver: %s, KFD %u.%u: cannot checkpoint: %s", driver, version.major,
		     version.minor, cause ? cause : strerror(-ret));
}

/* "0000:63:00.0, renderD128, gfx90a, 64.0 GiB" */
static void name_gpu(const struct topology_node *gpu, char *text, size_t size)
{
	char pci[PCI_SLOT_TEXT], gfx[16], vram[16];

	(void)snprintf(text, size, "%s, renderD%" PRIu32 ", %s, %s",
		       pci_slot_print((struct pci_slot){ gpu->domain, gpu->location_id }, pci),
		       gpu->drm_render_minor, text_gfx(gpu->gfx_target_version, gfx),
		       text_size(gpu->vram_size, vram));
}

/* What helps against an error of content_try_gpu(), or "" if that is not known. */
static const char *find_remedy(int error)
{
	static const struct {
		int error;
		const char *text;
	} remedies[] = {
		{ -EACCES,
		  "; become a member of the group of its render node, or run this command as root" },
		{ -EPERM, "; let the device cgroup of the container allow its render node" },
		{ -ENOENT, "; make its render node in /dev/dri" },
		{ -EOPNOTSUPP,
		  " (packets of its copy engine are unknown); use another GPU, or a newer plugin" },
		{ -ENODATA, " (no SDMA rings); load amdgpu with user_queue=1" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(remedies); i++) {
		if (remedies[i].error == error)
			return remedies[i].text;
	}
	return "";
}

void check_machine_gpu(struct check *check, const struct topology_node *gpu)
{
	char name[128];
	int ret = content_try_gpu(gpu->drm_render_minor);

	name_gpu(gpu, name, sizeof(name));
	if (!ret)
		check_say_ok(check, "GPU 0x%04" PRIx32 ": %s: contents can be copied", gpu->gpu_id,
			     name);
	else
		check_refuse(check, "GPU 0x%04" PRIx32 ": %s: contents cannot be copied: %s%s",
			     gpu->gpu_id, name, strerror(-ret), find_remedy(ret));
}

void check_machine(struct check *check, bool *ret_has_gpu)
{
	int ret = topology_read(TOPOLOGY_SYSFS, &check->topology);

	say_kernel(check);
	*ret_has_gpu = !ret && topology_count_gpus(&check->topology);
	if (ret == -ENOENT) {
		check_refuse(
			check,
			"GPUs: this machine has no AMD GPU, or amdgpu is not loaded: no " TOPOLOGY_SYSFS);
		return;
	}
	if (ret < 0) {
		check_refuse(check, "GPUs: cannot read " TOPOLOGY_SYSFS ": %s", strerror(-ret));
		return;
	}
	if (!*ret_has_gpu) {
		check_refuse(
			check,
			"GPUs: KFD shows none here; the machine has no AMD GPU that computes, or the device cgroup hides it");
		return;
	}
	check_driver(check);
	check_attach(check);
	for (size_t i = 0; !check->request->pid && i < check->topology.num_nodes; i++) {
		if (check->topology.nodes[i].gpu_id)
			check_machine_gpu(check, &check->topology.nodes[i]);
	}
	/* Of a process, foresee_tree() knows more. */
	if (check->request->pid)
		return;
	if (foresee_machine(&check->options, &check->topology) < 0)
		check->refused = true;
	foresee_warn(&check->options, &check->topology);
}
