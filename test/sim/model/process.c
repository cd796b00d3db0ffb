// SPDX-License-Identifier: GPL-2.0-only
/* Creates and ends KFD processes. The front end decides when, and counts references. */
#include "process.h"

static void pdd_free(struct sim_pdd *pdd)
{
	u32 i;

	if (!pdd)
		return;
	if (pdd->render) {
		pdd->render->compute = false;
		sim_os_render_put(pdd->render);
	}
	for (i = 0; i < ARRAY_SIZE(pdd->doorbells); i++)
		if (pdd->doorbells[i])
			sim_os_page_free(pdd->doorbells[i]);
	sim_ids_done(&pdd->mems);
	free(pdd);
}

static struct sim_pdd *pdd_new(struct sim_process *process, struct sim_gpu *gpu)
{
	struct sim_pdd *pdd = calloc(1, sizeof(*pdd));
	u32 i;

	if (!pdd)
		return NULL;
	pdd->process = process;
	pdd->gpu = gpu;
	pdd->index = process->num_pdds;
	pdd->user_gpu_id = gpu->gpu_id;
	sim_ids_init(&pdd->mems, 0);
	sim_svm_init(pdd);
	for (i = 0; i < ARRAY_SIZE(pdd->doorbells); i++) {
		pdd->doorbells[i] = sim_os_page_alloc();
		if (!pdd->doorbells[i]) {
			pdd_free(pdd);
			return NULL;
		}
		memset(pdd->doorbells[i], 0, SIM_PAGE_SIZE);
	}
	return pdd;
}

int sim_process_init(struct sim_process *process, struct sim *sim)
{
	u32 i;

	process->sim = sim;
	sim_lock_init(&process->lock);
	sim_lock_init(&process->svm_lock);
	sim_ids_init(&process->queues, 0);
	sim_events_init(process);
	sim_count(sim, SIM_COUNT_PROCESSES, 1);
	process->number = __atomic_fetch_add(&sim->processes, 1, __ATOMIC_RELAXED);
	process->pasid = SIM_KNOB(sim, process_pasid) ? sim_pasid_new(sim) : 0;
	for (i = 0; i < sim->num_gpus; i++) {
		struct sim_gpu *gpu = &sim->gpus[i];

		if (gpu->hidden)
			continue;
		process->pdds[process->num_pdds] = pdd_new(process, gpu);
		if (!process->pdds[process->num_pdds]) {
			sim_process_done(process);
			return -ENOMEM;
		}
		process->num_pdds++;
	}
	return 0;
}

static void free_queues(struct sim_process *process)
{
	struct sim_queue *queue;
	u32 id = 0;

	while ((queue = sim_ids_next(&process->queues, &id)))
		sim_queue_remove(queue);
}

/* From the last to the first: the last is usually mapped behind the others, so the others need not
 * move up in the array of mappings. */
static void free_mems(struct sim_pdd *pdd)
{
	struct sim_mem *mem;
	u32 id = ~0u;

	while ((mem = sim_ids_previous(&pdd->mems, &id)))
		sim_mem_free(mem);
}

void sim_process_done(struct sim_process *process)
{
	u32 i;

	free_queues(process);
	sim_events_done(process);
	sim_svm_done(process);
	for (i = 0; i < process->num_pdds; i++)
		free_mems(process->pdds[i]);
	for (i = 0; i < process->num_pdds; i++)
		pdd_free(process->pdds[i]);
	process->num_pdds = 0;
	sim_ids_done(&process->queues);
	sim_count(process->sim, SIM_COUNT_PROCESSES, -1);
}

void sim_process_mm_gone(struct sim_process *process)
{
	sim_engine_lock(process->sim);
	process->mm_gone = true;
	sim_unlock(&process->sim->engine_lock);
}

struct sim_pdd *sim_process_pdd(struct sim_process *process, u32 user_gpu_id)
{
	u32 i;

	for (i = 0; user_gpu_id && i < process->num_pdds; i++)
		if (process->pdds[i]->user_gpu_id == user_gpu_id)
			return process->pdds[i];
	return NULL;
}

int sim_process_pdd_with_vm(struct sim_process *process, u32 user_gpu_id, struct sim_pdd **ret_pdd)
{
	struct sim_pdd *pdd = sim_process_pdd(process, user_gpu_id);

	if (!pdd)
		return -EINVAL;
	if (!pdd->render)
		return -ENODEV;
	*ret_pdd = pdd;
	return 0;
}

/* kfd_chardev.c: kfd_ioctl_alloc_memory_of_gpu() counts, kfd_ioctl_import_dmabuf() does not */
u64 sim_pdd_vram_bytes(struct sim_pdd *pdd)
{
	const struct sim_mem *mem;
	u64 bytes = 0;
	u32 id = 0;

	sim_lock(&pdd->process->lock);
	for (; (mem = sim_ids_next(&pdd->mems, &id)); id++)
		if (mem->flags & KFD_MEM_VRAM && !mem->imported)
			bytes += mem->bo->size;
	sim_unlock(&pdd->process->lock);
	return bytes;
}

static void read_facts(const struct sim_queue *queue, struct sim_queue_facts *ret_facts)
{
	*ret_facts = (struct sim_queue_facts){ queue->ring_size, queue->id, queue->type,
					       queue->pdd->gpu->gpu_id };
}

bool sim_process_next_queue(struct sim_process *process, u32 id, struct sim_queue_facts *ret_facts)
{
	const struct sim_queue *queue;

	sim_lock(&process->lock);
	queue = sim_ids_next(&process->queues, &id);
	if (queue)
		read_facts(queue, ret_facts);
	sim_unlock(&process->lock);
	return queue;
}

struct sim_pdd *sim_process_pdd_by_real_id(struct sim_process *process, u32 gpu_id)
{
	u32 i;

	for (i = 0; gpu_id && i < process->num_pdds; i++)
		if (process->pdds[i]->gpu->gpu_id == gpu_id)
			return process->pdds[i];
	return NULL;
}

int sim_process_print(struct sim_process *process, char *text, u32 size)
{
	u32 bos = 0, evicted = 0, running = 0, id = 0, i;
	struct sim_queue *queue;
	int length;

	sim_lock(&process->lock);
	sim_engine_lock(process->sim);
	for (i = 0; i < process->num_pdds; i++) {
		bos += sim_ids_count(&process->pdds[i]->mems);
		evicted = max(evicted, process->pdds[i]->evicted);
	}
	for (; (queue = sim_ids_next(&process->queues, &id)); id++)
		running += sim_queue_is_active(queue) && !queue->hung;
	length = snprintf(text, size,
			  "gpus=%u bos=%u queues=%u evicted=%u paused=%d blocked=%d packets=%llu"
			  " running=%u",
			  process->num_pdds, bos, sim_ids_count(&process->queues), evicted,
			  process->paused, process->blocked, process->packets, running);
	sim_unlock(&process->sim->engine_lock);
	sim_unlock(&process->lock);
	return min(length, (int)size - 1);
}
