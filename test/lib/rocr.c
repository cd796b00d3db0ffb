// SPDX-License-Identifier: GPL-2.0-only
/* The steps of programs on stock ROCr. What they do with the GPUs is theirs. */
#include "rocr.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define NS_PER_S 1000000000ull
#define COPY_S   100u

bool rocr_good(hsa_status_t status, const char *what)
{
	return status == HSA_STATUS_SUCCESS || rocr_say("%s: status 0x%x", what, status);
}

static hsa_status_t find_agent(hsa_agent_t agent, void *data)
{
	struct rocr *rocr = data;
	hsa_device_type_t type;
	hsa_status_t status = hsa_agent_get_info(agent, HSA_AGENT_INFO_DEVICE, &type);

	if (status != HSA_STATUS_SUCCESS)
		return status;
	if (type == HSA_DEVICE_TYPE_CPU && !rocr->cpu.agent.handle)
		rocr->cpu.agent = agent;
	if (type == HSA_DEVICE_TYPE_GPU && rocr->num_gpus < ROCR_MAX_GPUS)
		rocr->gpus[rocr->num_gpus++].agent = agent;
	return HSA_STATUS_SUCCESS;
}

static hsa_status_t find_pool(hsa_amd_memory_pool_t pool, void *data)
{
	struct rocr_place *place = data;
	hsa_amd_segment_t segment;
	hsa_status_t status =
		hsa_amd_memory_pool_get_info(pool, HSA_AMD_MEMORY_POOL_INFO_SEGMENT, &segment);

	if (status == HSA_STATUS_SUCCESS && segment == HSA_AMD_SEGMENT_GLOBAL &&
	    !place->pool.handle)
		place->pool = pool;
	return status;
}

static bool find_pools(struct rocr_place *place)
{
	return rocr_good(hsa_amd_agent_iterate_memory_pools(place->agent, find_pool, place),
			 "pools");
}

bool rocr_open(struct rocr *rocr)
{
	memset(rocr, 0, sizeof(*rocr));
	if (!rocr_good(hsa_init(), "init") ||
	    !rocr_good(hsa_iterate_agents(find_agent, rocr), "agents"))
		return false;
	if (!rocr->cpu.agent.handle || !rocr->num_gpus)
		return rocr_say("there is no %s", rocr->num_gpus ? "CPU" : "GPU");
	for (unsigned int i = 0; i < rocr->num_gpus; i++)
		if (!find_pools(&rocr->gpus[i]))
			return false;
	return find_pools(&rocr->cpu);
}

bool rocr_allocate(const struct rocr_place *place, const struct rocr_place *gpu, size_t size,
		   void *ret)
{
	void *memory = NULL;

	if (!rocr_good(hsa_amd_memory_pool_allocate(place->pool, size, 0, &memory), "allocate") ||
	    !rocr_good(hsa_amd_agents_allow_access(1, &gpu->agent, NULL, memory), "allow access"))
		return false;
	memcpy(ret, &memory, sizeof(memory));
	return true;
}

bool rocr_open_object(const char *path, hsa_code_object_reader_t *ret_reader)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return rocr_say("%s: cannot be opened", path);
	return rocr_good(hsa_code_object_reader_create_from_file(fd, ret_reader), path) &&
	       close(fd) == 0;
}

bool rocr_new_executable(hsa_executable_t *ret_executable)
{
	return rocr_good(hsa_executable_create_alt(HSA_PROFILE_BASE,
						   HSA_DEFAULT_FLOAT_ROUNDING_MODE_DEFAULT, NULL,
						   ret_executable),
			 "executable");
}

bool rocr_load(const struct rocr_place *gpu, const char *path, hsa_executable_t *ret_executable)
{
	hsa_code_object_reader_t reader;

	return rocr_open_object(path, &reader) && rocr_new_executable(ret_executable) &&
	       rocr_good(hsa_executable_load_agent_code_object(*ret_executable, gpu->agent, reader,
							       NULL, NULL),
			 path) &&
	       rocr_good(hsa_executable_freeze(*ret_executable, NULL), "freeze") &&
	       rocr_good(hsa_code_object_reader_destroy(reader), "reader");
}

bool rocr_find_kernel(hsa_executable_t executable, const struct rocr_place *gpu, const char *name,
		      hsa_kernel_dispatch_packet_t *packet)
{
	hsa_executable_symbol_t symbol;

	return rocr_good(hsa_executable_get_symbol_by_name(executable, name, &gpu->agent, &symbol),
			 name) &&
	       rocr_good(hsa_executable_symbol_get_info(symbol,
							HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT,
							&packet->kernel_object),
			 "kernel object") &&
	       rocr_good(hsa_executable_symbol_get_info(
				 symbol, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_GROUP_SEGMENT_SIZE,
				 &packet->group_segment_size),
			 "group segment") &&
	       rocr_good(hsa_executable_symbol_get_info(
				 symbol, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_PRIVATE_SEGMENT_SIZE,
				 &packet->private_segment_size),
			 "private segment");
}

bool rocr_make_queue(const struct rocr_place *gpu, uint32_t slots, hsa_queue_t **ret_queue)
{
	return rocr_good(hsa_queue_create(gpu->agent, slots, HSA_QUEUE_TYPE_MULTI, NULL, NULL,
					  UINT32_MAX, UINT32_MAX, ret_queue),
			 "queue");
}

static uint16_t header_of(hsa_packet_type_t type)
{
	return (uint16_t)(type | 1 << HSA_PACKET_HEADER_BARRIER |
			  HSA_FENCE_SCOPE_SYSTEM << HSA_PACKET_HEADER_SCACQUIRE_FENCE_SCOPE |
			  HSA_FENCE_SCOPE_SYSTEM << HSA_PACKET_HEADER_SCRELEASE_FENCE_SCOPE);
}

/* The header is written last: then the packet is the processor's. */
void rocr_submit(hsa_queue_t *queue, const void *packet, hsa_packet_type_t type)
{
	uint64_t index = hsa_queue_add_write_index_relaxed(queue, 1);
	char *slot = (char *)queue->base_address + index % queue->size * 64;

	memcpy(slot + 2, (const char *)packet + 2, 62);
	__atomic_store_n((uint16_t *)(void *)slot, header_of(type), __ATOMIC_RELEASE);
	hsa_signal_store_screlease(queue->doorbell_signal, (hsa_signal_value_t)index);
}

bool rocr_wait(hsa_signal_t signal, unsigned int seconds, const char *what)
{
	hsa_signal_value_t value = hsa_signal_wait_scacquire(
		signal, HSA_SIGNAL_CONDITION_LT, 1, seconds * NS_PER_S, HSA_WAIT_STATE_BLOCKED);

	return value == 0 ||
	       rocr_say("%s: the signal is %ld at the end of the wait", what, (long)value);
}

bool rocr_copier_open(const struct rocr *rocr, const struct rocr_place *gpu,
		      struct rocr_copier *ret_copier)
{
	*ret_copier = (struct rocr_copier){ .cpu = rocr->cpu.agent, .gpu = gpu->agent };
	return rocr_good(hsa_signal_create(1, 0, NULL, &ret_copier->done), "signal");
}

bool rocr_copier_close(struct rocr_copier *copier)
{
	return rocr_good(hsa_signal_destroy(copier->done), "signal");
}

static bool copy(const struct rocr_copier *copier, void *to, hsa_agent_t to_agent, const void *from,
		 hsa_agent_t from_agent, size_t size, const char *what)
{
	hsa_signal_store_relaxed(copier->done, 1);
	return rocr_good(hsa_amd_memory_async_copy(to, to_agent, from, from_agent, size, 0, NULL,
						   copier->done),
			 what) &&
	       rocr_wait(copier->done, COPY_S, what);
}

bool rocr_copy_in(const struct rocr_copier *copier, void *to, const void *from, size_t size)
{
	return copy(copier, to, copier->gpu, from, copier->cpu, size, "a copy to VRAM");
}

bool rocr_copy_out(const struct rocr_copier *copier, void *to, const void *from, size_t size)
{
	return copy(copier, to, copier->cpu, from, copier->gpu, size, "a copy from VRAM");
}
