// SPDX-License-Identifier: GPL-2.0-only
/* The INFO ioctl: what the device reports about itself, as far as libdrm and the plugin ask. Other
 * queries get -EINVAL. */
#include "process.h"

#define FAMILY_AI          141u
#define FAMILY_NV          143u
#define FAMILY_GC_11_0_0   145u
#define FAMILY_GC_12_0_0   152u
#define FAMILY_GC_11_5_4   154u
#define MMR_GB_ADDR_CONFIG 0x263eu
#define MMR_MAX            128u
#define VA_HIGH            0xffff800000000000ull
#define VA_MAX             0x800000000000ull

/* Copies an answer, at most as much as the caller has room for. */
static int answer(const struct sim_drm_info *args, const void *data, u64 size)
{
	return sim_os_copy_to_user(args->return_pointer, data, min((u64)args->return_size, size));
}

static int info_accel_working(struct sim_gpu *gpu, const struct sim_drm_info *args)
{
	u32 working = 1;

	(void)gpu;
	return answer(args, &working, sizeof(working));
}

/* The version of the IP block SDMA (sdma_v*_ip_block in amdgpu), by which clients choose the copy
 * engine's packets. The engine of the simulator takes packets of SDMA 4 only, and those of 5 and 6
 * are the same. */
static u32 sdma_major_of(const struct sim_gpu *gpu)
{
	if (gpu->gfx_target_version >= SIM_GFX12)
		return 7;
	if (gpu->gfx_target_version >= SIM_GFX11)
		return 6;
	return gpu->gfx_target_version >= SIM_GFX10 ? 5 : 4;
}

static int info_hw_ip(struct sim_gpu *gpu, const struct sim_drm_info *args)
{
	struct sim_drm_hw_ip_info info;

	if (args->arg[1] || args->arg[0] > 15)
		return -EINVAL;
	memset(&info, 0, sizeof(info));
	if (args->arg[0] == AMDGPU_HW_IP_DMA) {
		info.version_major = sdma_major_of(gpu);
		info.version_minor = 0;
		info.ib_start_alignment = 256;
		info.ib_size_alignment = 4;
		info.available_rings = (1u << SIM_DMA_RINGS) - 1;
		info.ip_discovery_version = 4u << 16 | 4u << 8;
	}
	return answer(args, &info, sizeof(info));
}

static int info_read_mmr_reg(struct sim_gpu *gpu, const struct sim_drm_info *args)
{
	u32 offset = args->arg[0], count = args->arg[1];
	u32 value = 0x26013041; /* a GB_ADDR_CONFIG that decodes */

	(void)gpu;
	if (count == 0 || count > MMR_MAX)
		return -EINVAL;
	if (offset != MMR_GB_ADDR_CONFIG || count != 1)
		return -EFAULT;
	return answer(args, &value, sizeof(value));
}

#define GFX1154 110504u

/* libdrm reads registers of GPUs before gfx9, which the simulator lacks, so these GPUs report AI,
 * too. The family of GC 11.5.4 is above that of gfx12 (amdgpu_discovery_set_ip_blocks() of Linux
 * 7.2). */
static u32 family_of(const struct sim_gpu *gpu)
{
	if (gpu->gfx_target_version >= SIM_GFX12)
		return FAMILY_GC_12_0_0;
	if (gpu->gfx_target_version == GFX1154)
		return FAMILY_GC_11_5_4;
	if (gpu->gfx_target_version >= SIM_GFX11)
		return FAMILY_GC_11_0_0;
	return gpu->gfx_target_version >= SIM_GFX10 ? FAMILY_NV : FAMILY_AI;
}

/* The revision in the GPU's PCI configuration space (pdev->revision in amdgpu_kms.c, Linux 6.12).
 * libdrm finds the GPU's name by it: amdgpu.ids of libdrm 2.4.114 has one revision of each of these
 * GPUs. */
static u32 revision_of(const struct sim_gpu *gpu)
{
	static const struct {
		u32 device_id, revision;
	} revisions[] = { { 0x740c, 0x01 }, { 0x740f, 0x02 } };
	u32 i;

	for (i = 0; i < ARRAY_SIZE(revisions); i++)
		if (revisions[i].device_id == gpu->device_id)
			return revisions[i].revision;
	return 0;
}

static void describe_device(const struct sim_gpu *gpu, struct drm_amdgpu_info_device *info)
{
	memset(info, 0, sizeof(*info));
	info->device_id = gpu->device_id;
	info->external_rev = 0x3c;
	info->pci_rev = revision_of(gpu);
	info->family = family_of(gpu);
	info->num_shader_engines = gpu->array_count / max(gpu->arrays_per_engine, 1u);
	info->num_shader_arrays_per_engine = gpu->arrays_per_engine;
	info->gpu_counter_freq = 100000;
	info->max_engine_clock = 1700000;
	info->max_memory_clock = 1600000;
	info->cu_active_number = gpu->simd_count / max(gpu->simd_per_cu, 1u);
	info->num_cu_per_sh = gpu->cu_per_array;
	info->ids_flags = 0;
	info->virtual_address_offset = SIM_VA_BOTTOM;
	info->virtual_address_max = VA_MAX;
	info->virtual_address_alignment = 4096;
	info->pte_fragment_size = 2u << 20;
	info->gart_page_size = 4096;
	info->wave_front_size = 64;
	info->high_va_offset = VA_HIGH;
	info->high_va_max = VA_HIGH | (SIM_VM_BYTES - SIM_VA_TOP_RESERVED);
}

static struct drm_amdgpu_heap_info describe_heap(u64 size, u64 used)
{
	return (struct drm_amdgpu_heap_info){ size, size, used, size / 4 * 3 };
}

/* The CPU reaches all of VRAM. */
static int info_memory(struct sim_gpu *gpu, const struct sim_drm_info *args)
{
	struct drm_amdgpu_memory_info info = {
		.vram = describe_heap(sim_memory_vram_limit(gpu), gpu->vram_used),
		.cpu_accessible_vram = describe_heap(sim_memory_vram_limit(gpu), gpu->vram_used),
		.gtt = describe_heap(SIM_KNOB(gpu->sim, gtt_bytes), gpu->gtt_used),
	};

	return answer(args, &info, sizeof(info));
}

static int info_device(struct sim_gpu *gpu, const struct sim_drm_info *args)
{
	struct drm_amdgpu_info_device *info = calloc(1, sizeof(*info));
	int ret;

	if (!info)
		return -ENOMEM;
	describe_device(gpu, info);
	ret = answer(args, info, sizeof(*info));
	free(info);
	return ret;
}

/* The state of the calling file's page tables (amdgpu/amdgpu_kms.c, amdgpu_info_ioctl()). */
static int info_fault(const struct sim_render *render, const struct sim_drm_info *args)
{
	struct {
		u64 addr;
		u32 status, vmhub;
	} fault = { .addr = __atomic_load_n(&render->fault_addr, __ATOMIC_RELAXED) };

	if (!SIM_KNOB(render->gpu->sim, fault_queries))
		return -EINVAL;
	fault.status = fault.addr ? 0x401031 : 0;
	return answer(args, &fault, sizeof(fault));
}

static const struct {
	u32 query;
	int (*function)(struct sim_gpu *gpu, const struct sim_drm_info *args);
} queries[] = {
	{ AMDGPU_INFO_ACCEL_WORKING, info_accel_working },
	{ AMDGPU_INFO_HW_IP_INFO, info_hw_ip },
	{ AMDGPU_INFO_READ_MMR_REG, info_read_mmr_reg },
	{ AMDGPU_INFO_DEV_INFO, info_device },
	{ AMDGPU_INFO_MEMORY, info_memory },
};

int sim_info(struct sim_render *render, struct sim_drm_info *args)
{
	u32 i;

	if (!args->return_size || !args->return_pointer)
		return -EINVAL;
	if (args->query == DRM_INFO_GPUVM_FAULT)
		return info_fault(render, args);
	for (i = 0; i < ARRAY_SIZE(queries); i++)
		if (queries[i].query == args->query)
			return queries[i].function(render->gpu, args);
	return -EINVAL;
}
