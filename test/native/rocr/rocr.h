/* SPDX-License-Identifier: GPL-2.0-only */
/* What programs on stock ROCr begin with: a CPU, a GPU, and memory that both reach. */
#ifndef TEST_NATIVE_ROCR_ROCR_H
#define TEST_NATIVE_ROCR_ROCR_H

#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define WAIT_NS 20000000000ull

struct place {
	hsa_agent_t agent;
	hsa_amd_memory_pool_t pool;
};

struct rocr {
	struct place cpu, gpu;
};

static inline bool good(hsa_status_t status, const char *what)
{
	if (status != HSA_STATUS_SUCCESS)
		(void)printf("%s: status 0x%x\n", what, status);
	return status == HSA_STATUS_SUCCESS;
}

static inline hsa_status_t find_agent(hsa_agent_t agent, void *data)
{
	struct rocr *rocr = data;
	hsa_device_type_t type;
	hsa_status_t status = hsa_agent_get_info(agent, HSA_AGENT_INFO_DEVICE, &type);
	struct place *place = type == HSA_DEVICE_TYPE_GPU ? &rocr->gpu : &rocr->cpu;

	if (status == HSA_STATUS_SUCCESS && !place->agent.handle)
		place->agent = agent;
	return status;
}

static inline hsa_status_t find_pool(hsa_amd_memory_pool_t pool, void *data)
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

/* The first CPU and the first GPU. */
static inline bool rocr_open(struct rocr *rocr)
{
	return good(hsa_init(), "init") && good(hsa_iterate_agents(find_agent, rocr), "agents") &&
	       good(hsa_amd_agent_iterate_memory_pools(rocr->cpu.agent, find_pool, &rocr->cpu),
		    "pools of the CPU") &&
	       good(hsa_amd_agent_iterate_memory_pools(rocr->gpu.agent, find_pool, &rocr->gpu),
		    "pools of the GPU");
}

/* Memory of @place that the GPU may access, too. */
static inline bool rocr_allocate(struct rocr *rocr, struct place *place, size_t size, void *ret)
{
	void *memory = NULL;

	if (!good(hsa_amd_memory_pool_allocate(place->pool, size, 0, &memory), "allocate") ||
	    !good(hsa_amd_agents_allow_access(1, &rocr->gpu.agent, NULL, memory), "allow access"))
		return false;
	memcpy(ret, &memory, sizeof(memory));
	return true;
}

/* Until the signal is 0; asleep, if it takes longer. */
static inline bool rocr_wait(hsa_signal_t signal, const char *what)
{
	hsa_signal_value_t value = hsa_signal_wait_scacquire(signal, HSA_SIGNAL_CONDITION_LT, 1,
							     WAIT_NS, HSA_WAIT_STATE_BLOCKED);

	if (value != 0)
		(void)printf("%s: the signal is %ld at the end of the wait\n", what, (long)value);
	return value == 0;
}

#endif
