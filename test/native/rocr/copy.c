// SPDX-License-Identifier: GPL-2.0-only
/*
 * A program on stock ROCr: copies to a GPU's VRAM and back, whole and in a box, by the copy
 * engine. Ends with status 0 if the bytes are right. */
#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define BYTES   (1u << 20)
#define WAIT_NS 20000000000ull
#define CPU_ROW 256u
#define GPU_ROW 512u
#define ROWS    64u
#define BOX_X   100u
#define BOX_Y   20u
#define BOX_Z   2u

struct place {
	hsa_agent_t agent;
	hsa_amd_memory_pool_t pool;
};

struct rocr {
	struct place cpu, gpu;
	unsigned char *from, *to, *vram;
	hsa_signal_t done;
};

static bool good(hsa_status_t status, const char *what)
{
	if (status != HSA_STATUS_SUCCESS)
		(void)printf("%s: status 0x%x\n", what, status);
	return status == HSA_STATUS_SUCCESS;
}

static hsa_status_t find_agent(hsa_agent_t agent, void *data)
{
	struct rocr *rocr = data;
	hsa_device_type_t type;
	hsa_status_t status = hsa_agent_get_info(agent, HSA_AGENT_INFO_DEVICE, &type);
	struct place *place = type == HSA_DEVICE_TYPE_GPU ? &rocr->gpu : &rocr->cpu;

	if (status == HSA_STATUS_SUCCESS && !place->agent.handle)
		place->agent = agent;
	return status;
}

static hsa_status_t find_pool(hsa_amd_memory_pool_t pool, void *data)
{
	struct place *place = data;
	hsa_amd_segment_t segment;
	hsa_status_t status =
		hsa_amd_memory_pool_get_info(pool, HSA_AMD_MEMORY_POOL_INFO_SEGMENT, &segment);

	if (status == HSA_STATUS_SUCCESS && segment == HSA_AMD_SEGMENT_GLOBAL &&
	    !place->pool.handle)
		place->pool = pool;
	return status;
}

static bool allocate(struct rocr *rocr, struct place *place, unsigned char **ret)
{
	return good(hsa_amd_memory_pool_allocate(place->pool, BYTES, 0, (void **)ret),
		    "allocate") &&
	       good(hsa_amd_agents_allow_access(1, &rocr->gpu.agent, NULL, *ret), "allow access");
}

static bool set_up(struct rocr *rocr)
{
	return good(hsa_init(), "init") && good(hsa_iterate_agents(find_agent, rocr), "agents") &&
	       good(hsa_amd_agent_iterate_memory_pools(rocr->cpu.agent, find_pool, &rocr->cpu),
		    "pools of the CPU") &&
	       good(hsa_amd_agent_iterate_memory_pools(rocr->gpu.agent, find_pool, &rocr->gpu),
		    "pools of the GPU") &&
	       allocate(rocr, &rocr->cpu, &rocr->from) && allocate(rocr, &rocr->cpu, &rocr->to) &&
	       allocate(rocr, &rocr->gpu, &rocr->vram) &&
	       good(hsa_signal_create(1, 0, NULL, &rocr->done), "signal");
}

/* For what was just started. */
static bool wait(struct rocr *rocr)
{
	hsa_signal_value_t value = hsa_signal_wait_scacquire(rocr->done, HSA_SIGNAL_CONDITION_LT, 1,
							     WAIT_NS, HSA_WAIT_STATE_BLOCKED);

	hsa_signal_store_relaxed(rocr->done, 1);
	if (value != 0)
		(void)printf("a copy ended with signal value %ld\n", (long)value);
	return value == 0;
}

static bool copy_whole(struct rocr *rocr)
{
	if (!good(hsa_amd_memory_async_copy(rocr->vram, rocr->gpu.agent, rocr->from,
					    rocr->cpu.agent, BYTES, 0, NULL, rocr->done),
		  "copy to VRAM") ||
	    !wait(rocr))
		return false;
	if (!good(hsa_amd_memory_async_copy(rocr->to, rocr->cpu.agent, rocr->vram, rocr->gpu.agent,
					    BYTES, 0, NULL, rocr->done),
		  "copy from VRAM") ||
	    !wait(rocr))
		return false;
	if (memcmp(rocr->from, rocr->to, BYTES) == 0)
		return true;
	(void)printf("wrong bytes\n");
	return false;
}

static bool box_is_right(const struct rocr *rocr)
{
	unsigned int x, y, z, wrong = 0;

	for (z = 0; z < BOX_Z; z++)
		for (y = 0; y < BOX_Y; y++)
			for (x = 0; x < BOX_X; x++)
				wrong += rocr->to[(z + 1) * CPU_ROW * ROWS + (y + 2) * CPU_ROW + x +
						  8] != rocr->from[(z + 1) * GPU_ROW * ROWS +
								   (y + 3) * GPU_ROW + x + 16];
	if (wrong)
		(void)printf("%u wrong bytes in the box\n", wrong);
	return !wrong;
}

static bool copy_box(struct rocr *rocr)
{
	hsa_pitched_ptr_t to = { rocr->to, CPU_ROW, CPU_ROW * ROWS };
	hsa_pitched_ptr_t from = { rocr->vram, GPU_ROW, GPU_ROW * ROWS };
	hsa_dim3_t to_at = { 8, 2, 1 }, from_at = { 16, 3, 1 }, size = { BOX_X, BOX_Y, BOX_Z };

	memset(rocr->to, 0, BYTES);
	return good(hsa_amd_memory_async_copy_rect(&to, &to_at, &from, &from_at, &size,
						   rocr->gpu.agent, hsaDeviceToHost, 0, NULL,
						   rocr->done),
		    "copy of a box") &&
	       wait(rocr) && box_is_right(rocr);
}

int main(void)
{
	struct rocr rocr = { 0 };
	bool right;

	if (!set_up(&rocr))
		return 1;
	for (unsigned int i = 0; i < BYTES; i++)
		rocr.from[i] = (unsigned char)(i * 2654435761u >> 24);
	right = copy_whole(&rocr) && copy_box(&rocr);
	(void)hsa_signal_destroy(rocr.done);
	return right && good(hsa_shut_down(), "shut down") ? 0 : 1;
}
