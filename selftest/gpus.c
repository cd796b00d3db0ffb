// SPDX-License-Identifier: GPL-2.0-only
/* The GPUs of this process by plain ioctls. Like a runtime, it acquires the VM of each GPU that it
 * sees, also of those that it does not use. */
#include "gpus.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "process.h"

#define BANK "/sys/devices/virtual/kfd/kfd/topology/nodes/%d/mem_banks/%d/properties"
/* CRAT_MEM_HEAP_TYPE of VRAM that the CPU maps (kfd_topology.h in the kernel). */
#define HEAP_PUBLIC 1

/* One process has one KFD. */
static struct raw_process process = { .kfd = -1 };

struct raw_process *process_get(void)
{
	return &process;
}

static bool is_public(const char *path)
{
	FILE *file = fopen(path, "re");
	unsigned int type = 0;

	if (file && fscanf(file, "heap_type %u", &type) != 1)
		type = 0;
	if (file)
		(void)fclose(file);
	return type == HEAP_PUBLIC;
}

static bool vram_is_visible(int node)
{
	char path[128];

	for (int bank = 0;; bank++) {
		(void)snprintf(path, sizeof(path), BANK, node, bank);
		if (access(path, F_OK) < 0)
			return false;
		if (is_public(path))
			return true;
	}
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
