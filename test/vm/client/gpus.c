/* SPDX-License-Identifier: GPL-2.0-only */
/* Finds the GPUs in libhsakmt's topology and picks those asked for. Only functions and structures
 * that libhsakmt 5.2.3 and 6.2.4 have in common are used. */
#include "gpus.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <hsakmt.h>

/* Newer libraries fill structures that are longer than those of the headers built against. */
union node_properties {
	HsaNodeProperties properties;
	char room[4096];
};

union system_properties {
	HsaSystemProperties properties;
	char room[512];
};

static bool gpus_vram_is_visible(HSAuint32 node, HSAuint32 banks)
{
	HsaMemoryProperties bank[32];

	if (banks > 32 || hsaKmtGetNodeMemoryProperties(node, banks, bank))
		return false;
	for (HSAuint32 i = 0; i < banks; i++) {
		if (bank[i].HeapType == HSA_HEAPTYPE_FRAME_BUFFER_PUBLIC)
			return true;
	}
	return false;
}

static int gpus_list(struct report *report, struct gpus *gpus)
{
	union system_properties system = { 0 };
	HSAKMT_STATUS status;

	status = hsaKmtAcquireSystemProperties(&system.properties);
	if (status)
		return report_fail(report, -EIO, "cannot take the system properties: %d", status);

	for (HSAuint32 node = 0; node < system.properties.NumNodes; node++) {
		union node_properties node_properties = { 0 };
		const HsaNodeProperties *properties = &node_properties.properties;
		struct gpu *gpu = &gpus->list[gpus->count];

		status = hsaKmtGetNodeProperties(node, &node_properties.properties);
		if (status)
			return report_fail(report, -EIO, "no properties of node %u: %d", node,
					   status);
		if (properties->NumFComputeCores == 0)
			continue;
		if (gpus->count == GPUS_MAX)
			return report_fail(report, -E2BIG, "more than %d GPUs", GPUS_MAX);
		gpu->index = gpus->count++;
		gpu->node = node;
		gpu->render_minor = properties->DrmRenderMinor;
		gpu->vram_visible = gpus_vram_is_visible(node, properties->NumMemoryBanks);
	}
	return 0;
}

int gpus_open(struct report *report, const char *choice, struct gpus *ret_gpus)
{
	struct gpus gpus = { .count = 0 };
	HSAKMT_STATUS status;
	int ret;

	status = hsaKmtOpenKFD();
	if (status)
		return report_fail(report, -ENODEV, "cannot open the KFD: %d", status);

	ret = gpus_list(report, &gpus);
	if (ret == 0)
		ret = gpus_choose(report, choice, &gpus);
	if (ret < 0)
		return ret;

	*ret_gpus = gpus;
	return 0;
}

void gpus_close(void)
{
	(void)hsaKmtReleaseSystemProperties();
	(void)hsaKmtCloseKFD();
}
