// SPDX-License-Identifier: GPL-2.0-only
/* Sets up the machine, counts its objects and accounts for its memory. */
#include "process.h"

#define POISON_BYTE         0xd6
#define PASID_FIRST         0x8001u
#define GPU_CLOCK_PERIOD_NS 10u
#define VRAM_RESERVED_BYTES (64ull << 20) /* page tables and firmware of the real thing */
/* GTT and user memory that KFD hands out to all processes together. */
#define SYSTEM_BYTES (64ull << 30)

#define COUNTER_NAME(name, text) text,
static const char *const count_names[] = { SIM_COUNTERS(COUNTER_NAME) };

#define DEFAULT(name, value) .name = value,
static const struct sim_knobs default_knobs = { SIM_KNOBS(DEFAULT) };

u32 sim_pasid_new(struct sim *sim)
{
	return PASID_FIRST + __atomic_fetch_add(&sim->pasids, 1, __ATOMIC_RELAXED);
}

static void free_pages(struct sim *sim)
{
	if (sim->zero_page)
		sim_os_page_free(sim->zero_page);
	if (sim->poison_page)
		sim_os_page_free(sim->poison_page);
	if (sim->mmio_page)
		sim_os_page_free(sim->mmio_page);
	sim->zero_page = NULL;
	sim->mmio_page = NULL;
	sim->poison_page = NULL;
}

int sim_init(struct sim *sim)
{
	memset(sim, 0, sizeof(*sim));
	sim->knobs = default_knobs;
	sim_faults_init(&sim->faults);
	sim_violations_init(&sim->violations);
	sim_lock_init(&sim->memory_lock);
	sim_lock_init(&sim->ipc_lock);
	sim_lock_init(&sim->engine_lock);
	sim_wait_init(&sim->engine_wait);
	sim_lock_init(&sim->job_lock);
	sim->zero_page = sim_os_page_alloc();
	sim->poison_page = sim_os_page_alloc();
	sim->mmio_page = sim_os_page_alloc();
	if (!sim->zero_page || !sim->poison_page || !sim->mmio_page) {
		free_pages(sim);
		return -ENOMEM;
	}
	memset(sim->zero_page, 0, SIM_PAGE_SIZE);
	memset(sim->mmio_page, 0, SIM_PAGE_SIZE);
	memset(sim->poison_page, POISON_BYTE, SIM_PAGE_SIZE);
	return sim_kernel_set(sim, "default");
}

/* Only MI300 and newer GPUs of gfx9: gmc_v9_0_init_mem_ranges() (6.12). */
bool sim_gpu_has_partitions(const struct sim_gpu *gpu)
{
	return gpu->gfx_target_version >= SIM_GFX940 && gpu->gfx_target_version < SIM_GFX10;
}

bool sim_gpu_same_device(const struct sim_gpu *a, const struct sim_gpu *b)
{
	return a->device == b->device;
}

struct sim_gpu *sim_gpu_device(struct sim_gpu *gpu)
{
	struct sim *sim = gpu->sim;
	struct sim_gpu *first = gpu;
	u32 i;

	for (i = 0; i < sim->num_gpus; i++)
		if (sim_gpu_same_device(&sim->gpus[i], gpu) &&
		    sim->gpus[i].render_minor < first->render_minor)
			first = &sim->gpus[i];
	return first;
}

void sim_count(struct sim *sim, enum sim_count what, s64 change)
{
	(void)__atomic_add_fetch(&sim->counts[what], change, __ATOMIC_RELAXED);
}

s64 sim_gpu_memory_errors(const struct sim_gpu *gpu)
{
	s64 before = SIM_KNOB(gpu->sim, memory_errors);

	return before < 0 ? -1 : before + __atomic_load_n(&gpu->memory_errors, __ATOMIC_RELAXED);
}

int sim_print_counts(struct sim *sim, char *text, u32 size)
{
	u32 used = 0, i;

	text[0] = '\0';
	for (i = 0; i < SIM_COUNTS && used < size; i++)
		used += (u32)snprintf(
			text + used, size - used, "%s %lld\n", count_names[i],
			(long long)__atomic_load_n(&sim->counts[i], __ATOMIC_RELAXED));
	return (int)min(used, size - 1);
}

u64 sim_memory_vram_limit(const struct sim_gpu *gpu)
{
	return gpu->vram_bytes - VRAM_RESERVED_BYTES;
}

int sim_memory_charge(struct sim_gpu *gpu, bool vram, bool limited, u64 bytes)
{
	struct sim *sim = gpu->sim;
	int ret = -ENOMEM;

	sim_lock(&sim->memory_lock);
	if (vram) {
		u64 limit = sim_memory_vram_limit(gpu);

		if (bytes <= limit && gpu->vram_used <= limit - bytes) {
			gpu->vram_used += bytes;
			ret = 0;
		}
	} else if (!limited) {
		gpu->gtt_used += bytes;
		ret = 0;
	} else {
		if (bytes <= SYSTEM_BYTES && sim->system_used <= SYSTEM_BYTES - bytes) {
			sim->system_used += bytes;
			gpu->gtt_used += bytes;
			ret = 0;
		}
	}
	sim_unlock(&sim->memory_lock);
	return ret;
}

void sim_memory_uncharge(struct sim_gpu *gpu, bool vram, bool limited, u64 bytes)
{
	struct sim *sim = gpu->sim;

	sim_lock(&sim->memory_lock);
	if (vram)
		gpu->vram_used -= bytes;
	else
		gpu->gtt_used -= bytes;
	if (!vram && limited)
		sim->system_used -= bytes;
	sim_unlock(&sim->memory_lock);
}
