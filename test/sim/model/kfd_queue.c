// SPDX-License-Identifier: GPL-2.0-only
/* User-mode queues: creation and removal, with their numbers and doorbells. engine.c runs
 * them. */
#include "process.h"

#define QUEUES_PER_PDD     127u
#define MIN_RING_BYTES     1024u
#define USER_END           0x7ffffffff000ull
#define EOP_BYTES          4096u
#define ANY                (~0u)
#define DOORBELLS_COMPUTE  512u /* slots for compute queues; those of the copy engines follow */
#define DOORBELL_SDMA      512u
#define DOORBELL_SDMA_XGMI 768u
#define MAX_PRIORITY       15u

static u64 align_page(u64 bytes)
{
	return (bytes + SIM_PAGE_SIZE - 1) & ~(SIM_PAGE_SIZE - 1);
}

/* kfd_queue_ctx_save_restore_size() in kfd_queue.c of 6.12. */
static u32 ctl_stack_size(const struct sim_gpu *gpu)
{
	bool is_newer = gpu->gfx_target_version >= 100100;
	u32 cus = gpu->simd_count / max(gpu->simd_per_cu, 1u) / max(gpu->num_xcc, 1u);
	u32 waves =
		is_newer ? cus * 32
			 : min(cus * 40, gpu->array_count / max(gpu->arrays_per_engine, 1u) * 512);
	u32 size = (u32)align_page(40 + waves * (is_newer ? 12 : 8) + 8);

	return gpu->gfx_target_version / 10000 == 10 ? min(size, 0x7000u) : size;
}

bool sim_queue_is_active(const struct sim_queue *queue)
{
	return queue->ring_addr && queue->ring_size && queue->percent && !queue->pdd->evicted;
}

static bool outside_user(u64 addr)
{
	return addr >= USER_END;
}

static int check_ring(u64 addr, u32 size, u32 percent, u32 priority)
{
	if ((percent & 0xff) > 100 || priority > MAX_PRIORITY)
		return -EINVAL;
	if (outside_user(addr))
		return -EFAULT;
	return size & (size - 1) ? -EINVAL : 0;
}

static int translate_type(const struct kfd_create_queue_args *io, struct sim_queue *queue)
{
	queue->format = io->queue_type == KFD_IOC_QUEUE_TYPE_COMPUTE_AQL ? SIM_QUEUE_FORMAT_AQL
									 : SIM_QUEUE_FORMAT_PM4;
	switch (io->queue_type) {
	case KFD_IOC_QUEUE_TYPE_COMPUTE:
	case KFD_IOC_QUEUE_TYPE_COMPUTE_AQL:
		queue->type = SIM_QUEUE_COMPUTE;
		return 0;
	case KFD_IOC_QUEUE_TYPE_SDMA:
	case KFD_QUEUE_SDMA_BY_ENG_ID:
		queue->type = SIM_QUEUE_SDMA;
		return 0;
	case KFD_IOC_QUEUE_TYPE_SDMA_XGMI:
		queue->type = SIM_QUEUE_SDMA_XGMI;
		return 0;
	default:
		return -SIM_ENOTSUPP;
	}
}

static int check_create(const struct kfd_create_queue_args *io, struct sim_queue *queue)
{
	int ret;

	ret = check_ring(io->ring_base_address, io->ring_size, io->queue_percentage,
			 io->queue_priority);
	if (ret < 0)
		return ret;
	if (outside_user(io->read_pointer_address) || outside_user(io->write_pointer_address) ||
	    outside_user(io->eop_buffer_address) || outside_user(io->ctx_save_restore_address))
		return -EFAULT;
	return translate_type(io, queue);
}

static void take_properties(const struct kfd_create_queue_args *io, struct sim_queue *queue)
{
	queue->ring_addr = io->ring_base_address;
	queue->ring_size = io->ring_size ? max(io->ring_size, MIN_RING_BYTES) : 0;
	queue->rptr_addr = io->read_pointer_address;
	queue->wptr_addr = io->write_pointer_address;
	queue->eop_addr = io->eop_buffer_address;
	queue->eop_size = (u32)io->eop_buffer_size;
	queue->cwsr_addr = io->ctx_save_restore_address;
	queue->cwsr_size = io->ctx_save_restore_size;
	queue->ctl_stack_size = io->ctl_stack_size;
	queue->mqd_ctl_stack_size = io->ctl_stack_size;
	queue->percent = io->queue_percentage & 0xff;
	queue->priority = io->queue_priority;
}

/* Whether one mapping is exactly [addr, +size). */
static bool is_mapped_exactly(struct sim_pdd *pdd, u64 addr, u64 size)
{
	struct sim_mapping mapping;

	if (sim_vm_find(&pdd->render->vm, addr, &mapping) < 0)
		return false;
	sim_os_bo_put(mapping.bo);
	return mapping.start == addr && mapping.end == addr + size;
}

static bool is_mapped(struct sim_pdd *pdd, u64 addr, u64 size)
{
	struct sim_mapping mapping;

	if (sim_vm_find(&pdd->render->vm, addr, &mapping) < 0)
		return false;
	sim_os_bo_put(mapping.bo);
	return size <= mapping.end - addr;
}

static bool pointer_is_mapped(struct sim_pdd *pdd, u64 addr)
{
	return is_mapped_exactly(pdd, addr & ~(SIM_PAGE_SIZE - 1), SIM_PAGE_SIZE);
}

/* The conditions of the kernel for the buffers of a new queue since about 6.12
 * (kfd_queue_acquire_buffers() in amdkfd/kfd_queue.c). */
int sim_queue_check_buffers(struct sim_pdd *pdd, const struct sim_queue *queue)
{
	if (!pointer_is_mapped(pdd, queue->wptr_addr) || !pointer_is_mapped(pdd, queue->rptr_addr))
		return -EINVAL;
	if (queue->ring_size &&
	    !is_mapped_exactly(pdd, queue->ring_addr, align_page(queue->ring_size)))
		return -EINVAL;
	if (queue->type != SIM_QUEUE_COMPUTE)
		return 0;
	if (queue->eop_size < EOP_BYTES || !is_mapped(pdd, queue->eop_addr, queue->eop_size))
		return -EINVAL;
	if (queue->ctl_stack_size != ctl_stack_size(pdd->gpu) ||
	    queue->cwsr_size < queue->ctl_stack_size)
		return -EINVAL;
	if (!is_mapped(pdd, queue->cwsr_addr, queue->cwsr_size) &&
	    !sim_svm_covers(pdd->process, pdd, queue->cwsr_addr, queue->cwsr_size))
		return -EINVAL;
	return 0;
}

/* Under the engine's lock, because all processes share the engines. */
static int take_engine(struct sim_queue *queue, u32 wanted)
{
	struct sim_gpu *gpu = queue->pdd->gpu;
	bool xgmi = queue->type == SIM_QUEUE_SDMA_XGMI;
	u32 total = (xgmi ? gpu->num_sdma_xgmi_engines : gpu->num_sdma_engines) *
		    gpu->queues_per_engine;
	u32 id = wanted == ANY ? 0 : wanted;

	if (wanted != ANY && (wanted >= total || gpu->sdma_busy[xgmi] & 1ull << wanted))
		return wanted >= total ? -ENOMEM : -EBUSY;
	while (id < total && gpu->sdma_busy[xgmi] & 1ull << id)
		id++;
	if (id >= min(total, 64u))
		return -ENOMEM;
	gpu->sdma_busy[xgmi] |= 1ull << id;
	queue->sdma_id = id;
	return 0;
}

static void give_engine(struct sim_queue *queue)
{
	if (queue->type != SIM_QUEUE_COMPUTE)
		queue->pdd->gpu->sdma_busy[queue->type == SIM_QUEUE_SDMA_XGMI] &=
			~(1ull << queue->sdma_id);
}

/* A doorbell is heard whatever is written to it; here a value is heard that was not there before.
 * So what an earlier queue was rung with must go. An SDMA queue is never rung with 0. */
static void silence(const struct sim_queue *queue)
{
	u8 *page = queue->pdd->doorbells[queue->doorbell_id * 8 / SIM_PAGE_SIZE];

	__atomic_store_n((u64 *)(page + queue->doorbell_id * 8 % SIM_PAGE_SIZE), 0,
			 __ATOMIC_RELEASE);
}

/* kfd_device_queue_manager.c: allocate_doorbell() (6.12). The engines of a device are those of its
 * first partition, then those of the next. */
static u32 doorbell_of_engine(const struct sim_queue *queue)
{
	const struct sim_gpu *gpu = queue->pdd->gpu;
	bool xgmi = queue->type == SIM_QUEUE_SDMA_XGMI;
	u32 engines = xgmi ? gpu->num_sdma_xgmi_engines : gpu->num_sdma_engines;

	return (xgmi ? DOORBELL_SDMA_XGMI : DOORBELL_SDMA) +
	       gpu->partition * engines * gpu->queues_per_engine + queue->sdma_id;
}

/* The partition and the number of a copy engine's queue determine its doorbell. A compute queue
 * gets the first free doorbell. */
static int take_doorbell(struct sim_queue *queue, u32 wanted)
{
	struct sim_pdd *pdd = queue->pdd;
	u32 id = 0;

	if (queue->type != SIM_QUEUE_COMPUTE)
		id = doorbell_of_engine(queue);
	else if (wanted != ANY)
		id = wanted;
	else
		while (id < DOORBELLS_COMPUTE && pdd->doorbell_used[id])
			id++;
	if (wanted != ANY && wanted != id)
		return -EINVAL;
	if (id >= ARRAY_SIZE(pdd->doorbell_used) || pdd->doorbell_used[id] ||
	    (queue->type == SIM_QUEUE_COMPUTE && id >= DOORBELLS_COMPUTE))
		return wanted != ANY ? -EINVAL : -EBUSY;
	pdd->doorbell_used[id] = 1;
	queue->doorbell_id = id;
	silence(queue);
	return 0;
}

static int take_hardware(struct sim_queue *queue, const struct sim_queue_place *place)
{
	struct sim *sim = queue->pdd->gpu->sim;
	int ret = 0;

	sim_engine_lock(sim);
	if (queue->type != SIM_QUEUE_COMPUTE)
		ret = take_engine(queue, place->sdma_id);
	if (ret == 0) {
		ret = take_doorbell(queue, place->doorbell_id);
		if (ret < 0)
			give_engine(queue);
	}
	if (ret == 0) {
		queue->next = sim->queues;
		sim->queues = queue;
	}
	sim_unlock(&sim->engine_lock);
	return ret;
}

static int take_number(struct sim_queue *queue, u32 wanted)
{
	struct sim_process *process = queue->pdd->process;

	if (wanted == ANY)
		return sim_ids_add(&process->queues, queue, SIM_MAX_QUEUES, &queue->id) < 0
			       ? -ENOMEM
			       : 0;
	if (wanted >= SIM_MAX_QUEUES || sim_ids_add_at(&process->queues, queue, wanted) < 0)
		return -ENOSPC;
	queue->id = wanted;
	return 0;
}

static int enter(struct sim_queue *queue, const struct sim_queue_place *place)
{
	struct sim_pdd *pdd = queue->pdd;
	int ret;

	if (pdd->num_queues >= QUEUES_PER_PDD)
		return -ENOSPC;
	ret = take_number(queue, place->id);
	if (ret < 0)
		return ret;
	(void)snprintf(queue->who, sizeof(queue->who), "gpu %u: queue %u", pdd->gpu->index,
		       queue->id);
	ret = take_hardware(queue, place);
	if (ret < 0) {
		(void)sim_ids_remove(&pdd->process->queues, queue->id);
		return ret;
	}
	pdd->num_queues++;
	return 0;
}

static void queue_free(struct sim_queue *queue)
{
	free(queue->ctl_stack);
	free(queue);
}

/* Queues of the copy engine have no control stack, whatever their size says. */
static struct sim_queue *queue_copy(const struct sim_queue *wanted)
{
	struct sim_queue *queue = calloc(1, sizeof(*queue));

	if (!queue)
		return NULL;
	*queue = *wanted;
	queue->ctl_stack = NULL;
	if (queue->type != SIM_QUEUE_COMPUTE)
		return queue;
	queue->ctl_stack = calloc(1, max(queue->ctl_stack_size, 1u));
	if (!queue->ctl_stack) {
		free(queue);
		return NULL;
	}
	if (wanted->ctl_stack)
		memcpy(queue->ctl_stack, wanted->ctl_stack, queue->ctl_stack_size);
	return queue;
}

int sim_queue_add(struct sim_pdd *pdd, const struct sim_queue *wanted,
		  const struct sim_queue_place *place, struct sim_queue **ret_queue)
{
	struct sim_queue *queue = queue_copy(wanted);
	int ret;

	if (!queue)
		return -ENOMEM;
	queue->pdd = pdd;
	queue->reload = true;
	ret = enter(queue, place);
	if (ret < 0) {
		queue_free(queue);
		return ret;
	}
	sim_count(pdd->gpu->sim, SIM_COUNT_QUEUES, 1);
	sim_engine_kick(pdd->gpu->sim);
	*ret_queue = queue;
	return 0;
}

void sim_queue_remove(struct sim_queue *queue)
{
	struct sim_pdd *pdd = queue->pdd;
	struct sim *sim = pdd->gpu->sim;
	struct sim_queue **link;

	sim_engine_lock(sim);
	for (link = &sim->queues; *link != queue; link = &(*link)->next)
		;
	*link = queue->next;
	give_engine(queue);
	pdd->doorbell_used[queue->doorbell_id] = 0;
	sim_unlock(&sim->engine_lock);
	(void)sim_ids_remove(&pdd->process->queues, queue->id);
	pdd->num_queues--;
	sim_count(sim, SIM_COUNT_QUEUES, -1);
	queue_free(queue);
}

SIM_KFD_HANDLER(sim_kfd_create_queue)
{
	const struct sim_queue_place anywhere = { ANY, ANY, ANY };
	struct kfd_create_queue_args *io = args;
	struct sim_queue wanted, *queue;
	struct sim_pdd *pdd;
	int ret;

	memset(&wanted, 0, sizeof(wanted));
	ret = check_create(io, &wanted);
	if (ret < 0)
		return ret;
	pdd = sim_process_pdd(process, io->gpu_id);
	if (!pdd)
		return -EINVAL;
	if (io->queue_type == KFD_QUEUE_SDMA_BY_ENG_ID &&
	    io->sdma_engine_id >= pdd->gpu->num_sdma_engines)
		return -EINVAL;
	if (!pdd->render)
		return -ESRCH;
	take_properties(io, &wanted);
	if (SIM_KNOB(pdd->gpu->sim, check_queue_buffers))
		ret = sim_queue_check_buffers(pdd, &wanted);
	if (ret == 0)
		ret = sim_queue_add(pdd, &wanted, &anywhere, &queue);
	if (ret < 0)
		return ret;
	io->queue_id = queue->id;
	io->doorbell_offset = KFD_MMAP_TYPE(KFD_MMAP_DOORBELL) | KFD_MMAP_GPU_ID(pdd->user_gpu_id) |
			      8ull * queue->doorbell_id;
	return 0;
}

SIM_KFD_HANDLER(sim_kfd_destroy_queue)
{
	struct kfd_ioctl_destroy_queue_args *in = args;
	struct sim_queue *queue = sim_ids_get(&process->queues, in->queue_id);

	if (!queue)
		return -EINVAL;
	sim_queue_remove(queue);
	return 0;
}
