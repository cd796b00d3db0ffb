// SPDX-License-Identifier: GPL-2.0-only
/* The GPUs of this process by plain ioctls. Like a runtime, it acquires the VM of each GPU that it
 * sees, also of those that it does not use. */
#include "gpus.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "process.h"

#define ENTRY "/sys/devices/virtual/kfd/kfd/topology/nodes/%d/%s/%d/properties"
/* CRAT_MEM_HEAP_TYPE of VRAM that the CPU maps (kfd_topology.h in the kernel). */
#define HEAP_PUBLIC 1

/* One process has one KFD. */
static struct raw_process process = { .kfd = -1 };

struct raw_process *process_get(void)
{
	return &process;
}

/* A property of entry @entry of this kind, if it can be read. Return: false if there is no such
 * entry.
 */
static bool read_property(int node, const char *kind, int entry, const char *name,
			  uint32_t *ret_number)
{
	char path[128];

	*ret_number = UINT32_MAX;
	(void)snprintf(path, sizeof(path), ENTRY, node, kind, entry);
	return raw_read_properties(path, &name, 1, ret_number) == 0;
}

static bool vram_is_visible(int node)
{
	uint32_t type;

	for (int bank = 0; read_property(node, "mem_banks", bank, "heap_type", &type); bank++)
		if (type == HEAP_PUBLIC)
			return true;
	return false;
}

/* The positions of the GPUs at the other ends of the links of this kind. */
static uint64_t follow_links(const struct raw_gpu *list, int count, int node, const char *kind)
{
	uint64_t found = 0;
	uint32_t to;

	for (int link = 0; read_property(node, kind, link, "node_to", &to); link++)
		for (int i = 0; i < count; i++)
			found |= (uint64_t)((uint32_t)list[i].node == to) << i;
	return found;
}

/* A GPU has a link to each GPU that reaches its VRAM: over XGMI (kfd_fill_gpu_xgmi_link_to_gpu() in
 * the kernel's kfd_crat.c), or over PCIe (kfd_add_peer_prop() in kfd_topology.c). */
static uint64_t find_peers(const struct raw_gpu *list, int count, int owner)
{
	return 1ull << owner | follow_links(list, count, list[owner].node, "io_links") |
	       follow_links(list, count, list[owner].node, "p2p_links");
}

static int choose_from(struct report *report, const struct raw_gpu *list, int count,
		       const char *choice, struct gpus *ret_gpus)
{
	struct gpus gpus = { .count = 0 };
	int ret;

	for (; gpus.count < count; gpus.count++)
		gpus.list[gpus.count] = (struct gpu){
			.index = gpus.count,
			.node = (uint32_t)list[gpus.count].node,
			.render_minor = list[gpus.count].render_minor,
			.vram_visible = vram_is_visible(list[gpus.count].node),
			.reached_by = find_peers(list, count, gpus.count),
		};
	ret = gpus_choose(report, choice, &gpus);
	if (ret < 0)
		return ret;
	*ret_gpus = gpus;
	return 0;
}

int gpus_open(struct report *report, const char *choice, struct gpus *ret_gpus)
{
	int ret = raw_open_acquired(&process);

	if (ret < 0)
		return report_fail(report, ret, "cannot open the GPUs: %s", strerror(-ret));
	return choose_from(report, process.gpu, process.gpus, choice, ret_gpus);
}

int gpus_list(struct report *report, const char *choice, struct gpus *ret_gpus)
{
	struct raw_gpu list[RAW_GPUS];
	int count = 0, ret = raw_list_gpus(list, &count, NULL);

	if (ret < 0)
		return report_fail(report, ret, "cannot list the GPUs: %s", strerror(-ret));
	return choose_from(report, list, count, choice, ret_gpus);
}

void gpus_close(void)
{
	for (int i = 0; i < process.gpus; i++) {
		if (process.render[i] >= 0)
			close(process.render[i]);
	}
	if (process.kfd >= 0)
		close(process.kfd);
	process = (struct raw_process){ .kfd = -1 };
}
