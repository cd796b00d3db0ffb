// SPDX-License-Identifier: GPL-2.0-only
#include "gpu.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "ip_discovery.h"
#include "regs.h"
#include "vbios.h"

#define REGISTER_BYTES (sizeof(uint32_t) * GPU_REGISTERS)
#define NS_PER_S       1000000000ull
/* The registers of an XCC (gfx_v9_4_3_normalize_xcc_reg_offset()). */
#define IS_OF_XCC(low) (((low) >= 0x2000 && (low) < 0x3400) || ((low) >= 0xa000 && (low) < 0x10000))

static int map_memory(struct gpu *gpu)
{
	void *at;

	at = mmap(NULL, REGISTER_BYTES, PROT_READ | PROT_WRITE,
		  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (at == MAP_FAILED)
		return -errno;
	gpu->regs = at;
	gpu->vram_fd = memfd_create("vram", MFD_CLOEXEC);
	if (gpu->vram_fd < 0 || ftruncate(gpu->vram_fd, gpu->vram_bytes))
		return -errno;
	at = mmap(NULL, gpu->vram_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, gpu->vram_fd, 0);
	if (at == MAP_FAILED)
		return -errno;
	gpu->vram = at;
	return 0;
}

int gpu_new(const struct asic *asic, uint64_t vram_bytes, struct gpu **ret_gpu)
{
	struct gpu *gpu = calloc(1, sizeof(*gpu));
	int ret;

	if (!gpu)
		return -ENOMEM;
	gpu->asic = asic;
	gpu->vram_fd = -1;
	gpu->vram_bytes = vram_bytes;
	ret = map_memory(gpu);
	if (ret < 0) {
		gpu_free(gpu);
		return ret;
	}
	vbios_make(asic, gpu->rom);
	gpu_reset(gpu);
	*ret_gpu = gpu;
	return 0;
}

void gpu_free(struct gpu *gpu)
{
	if (!gpu)
		return;
	queues_forget(gpu);
	if (gpu->vram)
		(void)munmap(gpu->vram, gpu->vram_bytes);
	if (gpu->regs)
		(void)munmap(gpu->regs, REGISTER_BYTES);
	if (gpu->vram_fd >= 0)
		(void)close(gpu->vram_fd);
	free(gpu);
}

static void forget_work(struct gpu *gpu)
{
	queues_forget(gpu);
	memset(gpu->hws, 0, sizeof(gpu->hws));
	memset(&gpu->fault, 0, sizeof(gpu->fault));
}

static void reset_registers(struct gpu *gpu)
{
	forget_work(gpu);
	(void)madvise(gpu->regs, REGISTER_BYTES, MADV_DONTNEED);
	regs_init(gpu);
}

void gpu_set_links(struct gpu *gpu, bool are_on)
{
	if (gpu->is_apart != are_on)
		return;
	gpu->is_apart = !are_on;
	reset_registers(gpu);
}

void gpu_reset(struct gpu *gpu)
{
	reset_registers(gpu);
	pci_init(&gpu->pci, gpu->asic, gpu->vram_bytes);
	if (gpu->asic->write_discovery)
		gpu->asic->write_discovery(gpu->vram + gpu->vram_bytes - DISCOVERY_FROM_END);
}

void gpu_reset_engines(struct gpu *gpu)
{
	gpu->counters.resets++;
	report_log(&gpu->report, REPORT_ALWAYS, "the driver resets the GPU");
	if (!gpu->expects_reset)
		report_violation(&gpu->report,
				 "the driver has reset the GPU, but no test made it hang");
	gpu->hangs = false;
	forget_work(gpu);
	regs_halt_engines(gpu);
}

uint32_t gpu_local_register(const struct gpu *gpu, uint32_t reg, unsigned int *ret_xcc)
{
	unsigned int xcc = reg >> ASIC_INSTANCE_SHIFT;
	uint32_t local = reg & ((1u << ASIC_INSTANCE_SHIFT) - 1);
	bool is_of_xcc = xcc < gpu->asic->xccs && IS_OF_XCC(local);

	*ret_xcc = is_of_xcc ? xcc : 0;
	return is_of_xcc ? local : reg;
}

uint32_t gpu_register_of(unsigned int xcc, uint32_t local)
{
	return IS_OF_XCC(local) ? local + (xcc << ASIC_INSTANCE_SHIFT) : local;
}

uint64_t gpu_now_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * NS_PER_S + now.tv_nsec;
}

uint64_t gpu_clock(void)
{
	return gpu_now_ns() / (NS_PER_S / ASIC_CLOCK_HZ);
}
