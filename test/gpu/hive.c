// SPDX-License-Identifier: GPL-2.0-only
#include "hive.h"

#include "gpu.h"

/* Registers that gfxhub_v1_1.c names itself: in the headers of GC 9.0 they are elsewhere, or not at
 * all. */
enum { XGMI_LFB_CNTL = 0x978, XGMI_LFB_SIZE = 0x979 };
enum { LFB_CNTL_NODE_SHIFT = 0, LFB_CNTL_LAST_NODE_SHIFT = 4, LFB_SIZE_SHIFT = 24 };

static unsigned int num_nodes(const struct gpu *gpu)
{
	return gpu->hive && !gpu->is_apart ? gpu->hive->num_nodes : 1;
}

/* The node whose memory begins at address 0 for a GPU alone is the GPU itself. */
static unsigned int first_node(const struct gpu *gpu)
{
	return gpu->is_apart ? gpu->node : 0;
}

void hive_connect(struct hive *hive)
{
	unsigned int i;

	for (i = 0; i < hive->num_nodes; i++) {
		hive->nodes[i]->hive = hive;
		hive->nodes[i]->node = i;
		if (hive->num_nodes > 1)
			(void)snprintf(hive->nodes[i]->report.name,
				       sizeof(hive->nodes[i]->report.name), "GPU %u: ", i);
		gpu_reset(hive->nodes[i]);
	}
}

uint64_t hive_bytes(const struct gpu *gpu)
{
	unsigned int count = num_nodes(gpu);

	return count > 1 ? count * HIVE_SEGMENT_BYTES : gpu->vram_bytes;
}

uint8_t *hive_memory_at(const struct gpu *gpu, uint64_t address, uint64_t *ret_left_bytes)
{
	uint64_t node = address / HIVE_SEGMENT_BYTES, offset = address % HIVE_SEGMENT_BYTES;
	const struct gpu *owner;

	if (node >= num_nodes(gpu))
		return NULL;
	owner = gpu->hive ? gpu->hive->nodes[first_node(gpu) + node] : gpu;
	if (offset >= owner->vram_bytes)
		return NULL;
	*ret_left_bytes = owner->vram_bytes - offset;
	return owner->vram + offset;
}

bool hive_is_own_memory(const struct gpu *gpu, uint64_t address)
{
	return first_node(gpu) + address / HIVE_SEGMENT_BYTES == gpu->node;
}

/* The driver takes a last node of 0 for "no XGMI". */
void hive_init_registers(struct gpu *gpu)
{
	uint32_t *regs = gpu->regs + GC_BASE__INST0_SEG0;

	if (num_nodes(gpu) == 1)
		return;
	regs[XGMI_LFB_CNTL] =
		gpu->node << LFB_CNTL_NODE_SHIFT | (num_nodes(gpu) - 1) << LFB_CNTL_LAST_NODE_SHIFT;
	regs[XGMI_LFB_SIZE] = HIVE_SEGMENT_BYTES >> LFB_SIZE_SHIFT;
}
