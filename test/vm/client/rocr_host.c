// SPDX-License-Identifier: GPL-2.0-only
/* Locked memory and SVM ranges of the ROCr client. What is in them is the caller's. */
#include "rocr_host.h"

#include <sys/mman.h>

#define GRANULARITY 5u /* the default is 9 */

static bool map_pages(const struct rocr_place *gpu, size_t size, struct rocr_host *ret_host)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		return rocr_say("no memory");
	*ret_host =
		(struct rocr_host){ .gpu = gpu, .memory = memory, .mapped = memory, .size = size };
	return true;
}

static bool unmap_pages(struct rocr_host *host)
{
	return munmap(host->memory, host->size) == 0;
}

bool rocr_host_lock(const struct rocr_place *gpu, size_t size, struct rocr_host *ret_host)
{
	hsa_agent_t agent = gpu->agent;

	return map_pages(gpu, size, ret_host) &&
	       rocr_good(hsa_amd_memory_lock(ret_host->memory, size, &agent, 1, &ret_host->mapped),
			 "lock");
}

bool rocr_host_unlock(struct rocr_host *host)
{
	return rocr_good(hsa_amd_memory_unlock(host->memory), "unlock") && unmap_pages(host);
}

/* Kernels without CONFIG_DEVICE_PRIVATE have no SVM: those of Debian 12 and 13. */
static bool kernel_has_svm(void)
{
	bool has_svm = false;

	return rocr_good(hsa_system_get_info(HSA_AMD_SYSTEM_INFO_SVM_SUPPORTED, &has_svm), "SVM") &&
	       has_svm;
}

bool rocr_host_share(const struct rocr_place *gpu, size_t size, struct rocr_host *ret_host)
{
	hsa_amd_svm_attribute_pair_t attributes[] = {
		{ HSA_AMD_SVM_ATTRIB_GLOBAL_FLAG, HSA_AMD_SVM_GLOBAL_FLAG_COARSE_GRAINED },
		{ HSA_AMD_SVM_ATTRIB_READ_MOSTLY, true },
		{ HSA_AMD_SVM_ATTRIB_MIGRATION_GRANULARITY, GRANULARITY },
		{ HSA_AMD_SVM_ATTRIB_PREFERRED_LOCATION, gpu->agent.handle },
		{ HSA_AMD_SVM_ATTRIB_AGENT_ACCESSIBLE_IN_PLACE, gpu->agent.handle },
	};

	if (!kernel_has_svm())
		return rocr_host_lock(gpu, size, ret_host);
	return map_pages(gpu, size, ret_host) &&
	       rocr_good(hsa_amd_svm_attributes_set(ret_host->memory, size, attributes,
						    sizeof(attributes) / sizeof(*attributes)),
			 "SVM attributes");
}

bool rocr_host_unshare(struct rocr_host *host)
{
	return kernel_has_svm() ? unmap_pages(host) : rocr_host_unlock(host);
}

bool rocr_host_verify_attributes(const struct rocr_host *host)
{
	hsa_amd_svm_attribute_pair_t now[] = {
		{ HSA_AMD_SVM_ATTRIB_GLOBAL_FLAG, 0 },
		{ HSA_AMD_SVM_ATTRIB_READ_MOSTLY, 0 },
		{ HSA_AMD_SVM_ATTRIB_MIGRATION_GRANULARITY, 0 },
		{ HSA_AMD_SVM_ATTRIB_PREFERRED_LOCATION, 0 },
		{ HSA_AMD_SVM_ATTRIB_ACCESS_QUERY, host->gpu->agent.handle },
	};

	if (!kernel_has_svm())
		return true;
	if (!rocr_good(hsa_amd_svm_attributes_get(host->memory, host->size, now,
						  sizeof(now) / sizeof(*now)),
		       "SVM attributes"))
		return false;
	/* The answer to a query of access is another attribute. */
	if (now[0].value == HSA_AMD_SVM_GLOBAL_FLAG_COARSE_GRAINED && now[1].value &&
	    now[2].value == GRANULARITY && now[3].value == host->gpu->agent.handle &&
	    now[4].attribute == HSA_AMD_SVM_ATTRIB_AGENT_ACCESSIBLE_IN_PLACE)
		return true;
	return rocr_say(
		"SVM attributes: grain %lu, read mostly %lu, granularity %lu, location %s, access 0x%lx",
		now[0].value, now[1].value, now[2].value,
		now[3].value == host->gpu->agent.handle ? "right" : "wrong", now[4].attribute);
}
