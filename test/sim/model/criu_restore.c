// SPDX-License-Identifier: GPL-2.0-only
/* RESTORE of CRIU_OP: rebuilds a process from buckets and private data in the driver's order. Like
 * the driver, it undoes nothing if it fails half way. */
#include "process.h"

#define MAX_PRIV (1ull << 30)
#define MAX_BOS  (1u << 20)

/* The private data that is being read. */
struct reader {
	const u8 *data;
	u64 used, size;
};

static const void *take(struct reader *reader, u64 bytes)
{
	const u8 *at = reader->data + reader->used;

	if (bytes > reader->size - reader->used)
		return NULL;
	reader->used += bytes;
	return at;
}

static int restore_header(struct sim_process *process, struct reader *reader)
{
	const struct sim_priv_process *record = take(reader, sizeof(*record));

	if (!record || record->version != SIM_PRIV_VERSION)
		return -EINVAL;
	if (record->xnack_mode && !sim_process_can_xnack(process))
		return -EPERM;
	process->xnack = record->xnack_mode;
	return 0;
}

static int restore_device(struct sim_process *process, const struct kfd_criu_device_bucket *bucket)
{
	struct sim_pdd *pdd = sim_process_pdd_by_real_id(process, bucket->actual_gpu_id);
	struct sim_render *render;

	if (!bucket->user_gpu_id || !pdd || pdd->render)
		return -EINVAL;
	render = sim_os_render_from_fd((int)bucket->drm_fd);
	if (!render || sim_pdd_acquire(pdd, render) < 0)
		return -EINVAL;
	pdd->user_gpu_id = bucket->user_gpu_id;
	return 0;
}

static int restore_devices(struct sim_process *process, const struct kfd_ioctl_criu_args *io,
			   struct reader *reader)
{
	u32 i;
	int ret = 0;

	if (io->num_devices != process->num_pdds || !take(reader, 8ull * io->num_devices))
		return -EINVAL;
	for (i = 0; ret == 0 && i < io->num_devices; i++) {
		struct kfd_criu_device_bucket bucket;

		if (sim_os_copy_from_user(&bucket, io->devices + i * sizeof(bucket),
					  sizeof(bucket)) < 0)
			return -EFAULT;
		ret = restore_device(process, &bucket);
	}
	return ret;
}

static int map_on_gpus(struct sim_mem *mem, const struct sim_priv_bo *record)
{
	struct sim_process *process = mem->pdd->process;
	u32 i;
	int ret = 0;

	for (i = 0; ret == 0 && i < ARRAY_SIZE(record->mapped_gpu_ids) && record->mapped_gpu_ids[i];
	     i++) {
		struct sim_pdd *pdd = sim_process_pdd(process, record->mapped_gpu_ids[i]);

		ret = pdd ? sim_mem_map(mem, pdd) : -EINVAL;
	}
	return ret;
}

static void set_offset(struct sim_mem *mem, struct kfd_criu_bo_bucket *bucket)
{
	u64 real_id = KFD_MMAP_GPU_ID(mem->pdd->gpu->gpu_id);

	if (mem->flags & KFD_MEM_DOORBELL)
		bucket->restored_offset = KFD_MMAP_TYPE(KFD_MMAP_DOORBELL) | real_id;
	else if (mem->flags & KFD_MEM_MMIO_REMAP)
		bucket->restored_offset = KFD_MMAP_TYPE(KFD_MMAP_MMIO) | real_id;
	else if (mem->flags & (KFD_MEM_VRAM | KFD_MEM_GTT))
		bucket->restored_offset = sim_os_bo_mmap_offset(mem->bo);
	/* user memory keeps what the caller has put there */
}

static bool is_shared(const struct sim_priv_ipc *ipc)
{
	static const u32 none[SIM_SHARE_WORDS];

	return memcmp(ipc->share_handle, none, sizeof(none)) != 0;
}

/* kfd_process_device_create_obj_handle() in amdkfd/kfd_process.c of the out-of-tree driver leaves
 * the buffer in a tree of the process when its number is taken, and frees it. */
static void note_taken(const struct sim_pdd *pdd, u32 id)
{
	struct sim *sim = pdd->gpu->sim;

	if (SIM_KNOB(sim, unchecked_ids) && sim_ids_get(&pdd->mems, id))
		sim_violation(sim, "RESTORE: two BOs with number %u: use after free", id);
}

static int restore_bo(struct sim_process *process, struct kfd_criu_bo_bucket *bucket,
		      const struct sim_priv_bo *record, const struct sim_priv_ipc *ipc,
		      struct sim_fds *fds)
{
	struct sim_pdd *pdd = sim_process_pdd(process, bucket->gpu_id);
	struct sim_mem_wanted wanted = {
		.va = bucket->addr,
		.size = bucket->size,
		.user_addr = record->user_addr,
		.flags = bucket->alloc_flags,
		.poisoned = process->sim->knobs.poison_vram != 0,
		.fixed_id = true,
		.id = record->id,
	};
	struct sim_mem *mem;
	int ret;

	if (!pdd)
		return -ENODEV;
	if (record->id > 0x7fffffff)
		return -EINVAL;
	note_taken(pdd, record->id);
	ret = is_shared(ipc) ? sim_ipc_restore(pdd, &wanted, ipc, &mem)
			     : sim_mem_new(pdd, &wanted, &mem);
	if (ret < 0)
		return ret;
	set_offset(mem, bucket);
	bucket->dmabuf_fd = KFD_INVALID_FD;
	ret = map_on_gpus(mem, record);
	return ret < 0 ? ret : sim_fds_add(fds, mem, &bucket->dmabuf_fd);
}

static int check_opaque(struct sim_process *process, const struct kfd_criu_bo_bucket *bucket,
			u32 id, const u8 *record)
{
	u64 bytes = process->sim->knobs.bo_record_size;
	u32 offset, word;

	for (offset = SIM_PRIV_BO_OPAQUE; offset < bytes; offset += sizeof(word)) {
		memcpy(&word, record + offset, sizeof(word));
		if (word == sim_priv_bo_word(bucket->addr, bucket->gpu_id, id, offset))
			continue;
		sim_violation(process->sim,
			      "RESTORE: byte %u of the private record of the BO at 0x%llx"
			      " is not what CHECKPOINT wrote",
			      offset, bucket->addr);
		return -EINVAL;
	}
	return 0;
}

static int read_bo_record(struct sim_process *process, const struct kfd_criu_bo_bucket *bucket,
			  struct reader *reader, struct sim_priv_bo *ret_record,
			  struct sim_priv_ipc *ret_ipc)
{
	u64 bytes = process->sim->knobs.bo_record_size;
	const u8 *at = take(reader, bytes);

	if (!at)
		return -EINVAL;
	memset(ret_record, 0, sizeof(*ret_record));
	memset(ret_ipc, 0, sizeof(*ret_ipc));
	memcpy(ret_record, at, min(bytes, (u64)sizeof(*ret_record)));
	if (sim_criu_has_ipc(process->sim))
		memcpy(ret_ipc, at + SIM_PRIV_BO_OPAQUE, sizeof(*ret_ipc));
	else if (bytes > sizeof(*ret_record))
		return check_opaque(process, bucket, ret_record->id, at);
	return 0;
}

static int restore_each_bo(struct sim_process *process, struct kfd_criu_bo_bucket *buckets,
			   u32 count, struct reader *reader, struct sim_fds *fds)
{
	struct sim_priv_bo record;
	struct sim_priv_ipc ipc;
	u32 i;
	int ret = 0;

	for (i = 0; ret == 0 && i < count; i++) {
		ret = sim_fault(&process->sim->faults, "restore", "BO");
		if (ret == 0)
			ret = read_bo_record(process, &buckets[i], reader, &record, &ipc);
		if (ret == 0)
			ret = restore_bo(process, &buckets[i], &record, &ipc, fds);
	}
	return ret;
}

static int restore_bos(struct sim_process *process, const struct kfd_ioctl_criu_args *io,
		       struct reader *reader)
{
	u64 bytes = (u64)io->num_bos * sizeof(struct kfd_criu_bo_bucket);
	struct kfd_criu_bo_bucket *buckets = calloc(1, bytes);
	struct sim_fds fds = { .entries = calloc(io->num_bos, sizeof(*fds.entries)) };
	int ret = -ENOMEM;

	if (buckets && fds.entries)
		ret = sim_os_copy_from_user(buckets, io->bos, bytes);
	if (ret == 0)
		ret = restore_each_bo(process, buckets, io->num_bos, reader, &fds);
	if (ret == 0)
		ret = sim_os_copy_to_user(io->bos, buckets, bytes);
	sim_fds_settle(&fds, ret == 0);
	free(buckets);
	return ret;
}

static int check_generation(const struct sim_gpu *gpu)
{
	u64 fate = SIM_KNOB(gpu->sim, gfx11_queues);

	if (gpu->gfx_target_version < SIM_GFX11 || fate == SIM_GFX11_REBUILT)
		return 0;
	if (fate == SIM_GFX11_OOPS)
		sim_violation(gpu->sim, "RESTORE of a queue of gfx11 or newer: oops");
	return -EINVAL;
}

/* restore_mqd_v9_4_3() in kfd_mqd_manager_v9.c reads an MQD for each XCC, one behind the other,
 * also where the size is compared with that of one, and takes what follows @record->mqd_size for
 * the control stacks. restore_mqd() reads one. A copy engine has one MQD, whatever the size. */
static int check_size(const struct sim_gpu *gpu, const struct sim_priv_queue *record)
{
	bool compute = record->type == SIM_QUEUE_COMPUTE;
	u32 one = compute ? SIM_MQD_COMPUTE_BYTES : SIM_MQD_SDMA_BYTES;
	u32 read = compute ? sim_queue_mqd_bytes(gpu, record->type) : one;

	if (SIM_KNOB(gpu->sim, one_mqd) && record->mqd_size != one)
		return -EINVAL;
	if ((u64)record->mqd_size + record->ctl_stack_size < read) {
		sim_violation(gpu->sim,
			      "RESTORE: queue %u has MQDs of %u bytes, and the driver reads %u:"
			      " memory of others",
			      record->q_id, record->mqd_size, read);
		return -EINVAL;
	}
	if (compute && record->mqd_size > read)
		sim_violation(gpu->sim,
			      "RESTORE: queue %u has MQDs of %u bytes, and the driver restores %u:"
			      " the queue hangs",
			      record->q_id, record->mqd_size, read);
	return 0;
}

static u32 word_at(const u8 *at)
{
	u32 value;

	memcpy(&value, at, sizeof(value));
	return value;
}

/* @first: the MQDs and control stacks of @record, which are long enough for check_size(). */
static void check_xccs(const struct sim_gpu *gpu, const struct sim_priv_queue *record,
		       const u8 *first)
{
	u32 xccs = record->type == SIM_QUEUE_COMPUTE ? sim_queue_saved_xccs(gpu) : 0, xcc;

	for (xcc = 0; xcc < xccs; xcc++) {
		const u8 *mqd = first + xcc * SIM_MQD_COMPUTE_BYTES;

		if (memcmp(mqd, first, sizeof(struct sim_mqd)) != 0)
			sim_violation(gpu->sim,
				      "RESTORE: the MQD of XCC %u of queue %u is not that of the"
				      " queue: it hangs",
				      xcc, record->q_id);
		else if (record->mqd_size < xccs * SIM_MQD_COMPUTE_BYTES &&
			 word_at(mqd + SIM_MQD_STACK_TOP) != word_at(mqd + SIM_MQD_CTL_STACK))
			sim_violation(gpu->sim,
				      "RESTORE: XCC %u of queue %u has waves, and the driver reads"
				      " MQDs for its control stack",
				      xcc, record->q_id);
	}
}

static int check_queue(const struct sim_gpu *gpu, const struct sim_priv_queue *record,
		       const struct sim_mqd *mqd)
{
	bool compute = record->type == SIM_QUEUE_COMPUTE;
	int ret;

	if (!compute && record->type != SIM_QUEUE_SDMA && record->type != SIM_QUEUE_SDMA_XGMI)
		return -EINVAL;
	ret = check_generation(gpu);
	if (ret < 0)
		return ret;
	ret = check_size(gpu, record);
	if (ret < 0)
		return ret;
	if (mqd->magic != SIM_MQD_MAGIC || mqd->ring_addr != record->q_address ||
	    mqd->ring_size != record->q_size)
		return -EINVAL;
	return 0;
}

/* The firmware would trust the queue as one of the kernel's own, in memory of other processes. */
static void check_rights(const struct sim_gpu *gpu, const struct sim_priv_queue *record,
			 const u8 *mqd)
{
	u32 at;

	if (record->type != SIM_QUEUE_COMPUTE)
		return;
	for (at = 0; at < sim_queue_mqd_bytes(gpu, record->type); at += SIM_MQD_COMPUTE_BYTES)
		if (word_at(mqd + at + SIM_MQD_CONTROL) & SIM_MQD_KERNEL)
			sim_violation(gpu->sim, "RESTORE: queue %u has the rights of the kernel",
				      record->q_id);
}

static u32 device_xccs(const struct sim_gpu *gpu)
{
	struct sim *sim = gpu->sim;
	u32 sum = 0, i;

	for (i = 0; i < sim->num_gpus; i++)
		if (sim->gpus[i].device == gpu->device)
			sum += max(sim->gpus[i].num_xcc, 1u);
	return sum;
}

/* Bytes of one control stack: set_queue_properties_from_criu() in
 * kfd_process_queue_manager.c. restore_mqd_v9_4_3() in kfd_mqd_manager_v9.c then copies the part of
 * each XCC of the partition. */
static u32 divide_stack(const struct sim_gpu *gpu, const struct sim_priv_queue *record)
{
	u32 xccs = sim_queue_saved_xccs(gpu), copied, made;

	if (record->type != SIM_QUEUE_COMPUTE)
		return record->ctl_stack_size;
	copied = record->ctl_stack_size / xccs;
	if (!SIM_KNOB(gpu->sim, xcc_divisor) || gpu->gfx_target_version < SIM_GFX940)
		return copied;
	made = record->ctl_stack_size / device_xccs(gpu);
	if (copied > ((made + SIM_PAGE_SIZE - 1) & ~(u32)(SIM_PAGE_SIZE - 1)))
		sim_violation(gpu->sim,
			      "RESTORE: %u bytes of a control stack in room for %u: the memory"
			      " behind it is overwritten",
			      copied, made);
	return copied;
}

static void rebuild_queue(const struct sim_priv_queue *record, const struct sim_mqd *mqd,
			  struct sim_queue *queue)
{
	memset(queue, 0, sizeof(*queue));
	queue->type = record->type;
	queue->format = record->format;
	queue->ring_addr = record->q_address;
	queue->ring_size = record->q_size;
	queue->rptr_addr = record->read_ptr_addr;
	queue->wptr_addr = record->write_ptr_addr;
	queue->eop_addr = record->eop_addr;
	queue->eop_size = record->eop_size;
	queue->cwsr_addr = record->cwsr_addr;
	queue->cwsr_size = record->cwsr_size;
	queue->percent = record->q_percent;
	queue->priority = record->priority;
	queue->rptr = mqd->rptr;
	queue->wptr = mqd->wptr;
	queue->restored = true;
}

static int restore_queue(struct sim_process *process, struct reader *reader)
{
	const struct sim_priv_queue *record = take(reader, sizeof(*record));
	struct sim_queue_place place;
	struct sim_queue wanted, *queue;
	struct sim_mqd mqd;
	struct sim_pdd *pdd;
	const void *at, *ctl_stack;
	int ret;

	if (!record || record->mqd_size < sizeof(mqd))
		return -EINVAL;
	at = take(reader, record->mqd_size);
	ctl_stack = take(reader, record->ctl_stack_size);
	if (!at || !ctl_stack)
		return -EINVAL;
	memcpy(&mqd, at, sizeof(mqd));
	pdd = sim_process_pdd(process, record->gpu_id);
	if (!pdd)
		return -EINVAL;
	ret = check_queue(pdd->gpu, record, &mqd);
	if (ret < 0)
		return ret;
	rebuild_queue(record, &mqd, &wanted);
	check_xccs(pdd->gpu, record, at);
	check_rights(pdd->gpu, record, at);
	wanted.ctl_stack = (void *)(uintptr_t)ctl_stack;
	wanted.ctl_stack_size = divide_stack(pdd->gpu, record);
	if (record->type == SIM_QUEUE_COMPUTE)
		wanted.mqd_ctl_stack_size = word_at((const u8 *)at + SIM_MQD_CTL_STACK);
	/* kfd_criu_restore_queue() of Linux 6.12.111 to 6.12.117 acquires the buffers of the queue
	 * as CREATE_QUEUE does; 6.12.107, 7.2 and 7.3 do not. The SVM ranges of the image come with
	 * RESUME, so they do not count. */
	if (SIM_KNOB(process->sim, acquire_queue_buffers)) {
		ret = sim_queue_check_buffers(pdd, &wanted);
		if (ret < 0)
			return ret;
	}
	place = (struct sim_queue_place){ record->q_id, record->sdma_id, record->doorbell_id };
	return sim_queue_add(pdd, &wanted, &place, &queue);
}

static int restore_event(struct sim_process *process, struct reader *reader)
{
	const struct sim_priv_event *record = take(reader, sizeof(*record));
	struct sim_event event = { .id = 0 };
	int ret;

	if (!record)
		return -EINVAL;
	if (record->user_handle) {
		ret = sim_events_set_page(process, record->user_handle);
		if (ret < 0)
			return ret;
	}
	if (record->type != KFD_IOC_EVENT_SIGNAL && record->type != KFD_IOC_EVENT_HW_EXCEPTION &&
	    record->type != KFD_IOC_EVENT_DEBUG_EVENT && record->type != KFD_IOC_EVENT_MEMORY)
		return SIM_KNOB(process->sim, event_types) ? -EINVAL : 0;
	event.id = record->event_id;
	event.type = record->type;
	event.auto_reset = record->auto_reset != 0;
	event.signaled = record->signaled != 0;
	memcpy(event.exception, record->exception, sizeof(event.exception));
	return sim_events_restore(process, &event);
}

static int restore_range(struct sim_process *process, struct reader *reader)
{
	const struct sim_priv_svm *record =
		take(reader, sizeof(*record) + 8ull * (4 + process->num_pdds));
	struct sim_svm_range *range, **end = &process->svm_pending;
	u32 i;

	if (!record)
		return -EINVAL;
	range = calloc(1, sizeof(*range));
	if (!range)
		return -ENOMEM;
	range->first = record->first;
	range->pages = record->pages;
	range->preferred_loc = record->attrs[0].value;
	range->prefetch_loc = record->attrs[1].value;
	range->flags = record->attrs[2].value;
	range->granularity = record->attrs[3].value;
	memset(range->access, KFD_IOCTL_SVM_ATTR_NO_ACCESS, sizeof(range->access));
	for (i = 0; i < process->num_pdds; i++) {
		struct sim_pdd *pdd = sim_process_pdd(process, record->attrs[4 + i].value);

		if (pdd)
			range->access[pdd->index] = (u8)record->attrs[4 + i].type;
	}
	while (*end)
		end = &(*end)->next;
	*end = range;
	return 0;
}

static int restore_object(struct sim_process *process, struct reader *reader)
{
	u32 type;
	int ret;

	ret = sim_fault(&process->sim->faults, "restore", "OBJECT");
	if (ret < 0)
		return ret;
	if (reader->size - reader->used < sizeof(type))
		return -EINVAL;
	memcpy(&type, reader->data + reader->used, sizeof(type));
	switch (type) {
	case SIM_PRIV_QUEUE:
		return restore_queue(process, reader);
	case SIM_PRIV_EVENT:
		return restore_event(process, reader);
	case SIM_PRIV_SVM:
		if (SIM_KNOB(process->sim, no_svm))
			return -EINVAL;
		return restore_range(process, reader);
	default:
		return -EINVAL;
	}
}

static int restore_all(struct sim_process *process, const struct kfd_ioctl_criu_args *io,
		       struct reader *reader)
{
	u32 i;
	int ret;

	ret = restore_header(process, reader);
	if (ret == 0)
		ret = restore_devices(process, io, reader);
	if (ret < 0)
		return ret;
	process->blocked = true;
	if (io->num_bos)
		ret = restore_bos(process, io, reader);
	for (i = 0; ret == 0 && i < io->num_objects; i++)
		ret = restore_object(process, reader);
	if (ret == 0 && reader->used != reader->size)
		ret = -EINVAL;
	return ret;
}

int sim_criu_restore(struct sim_process *process, struct kfd_ioctl_criu_args *io)
{
	struct reader reader = { .size = io->priv_data_size };
	u8 *data;
	u32 i;
	int ret;

	if (!io->num_bos && SIM_KNOB(process->sim, bos_required))
		return -EINVAL;
	if ((io->num_bos && !io->bos) || !io->devices || !io->priv_data || !io->priv_data_size ||
	    !io->num_devices)
		return -EINVAL;
	for (i = 0; i < process->num_pdds; i++)
		sim_engine_evict(process->pdds[i]);
	if (io->priv_data_size > MAX_PRIV || io->num_bos > MAX_BOS)
		return -ENOMEM;
	data = calloc(1, io->priv_data_size);
	if (!data)
		return -ENOMEM;
	reader.data = data;
	ret = sim_os_copy_from_user(data, io->priv_data, io->priv_data_size);
	if (ret == 0)
		ret = restore_all(process, io, &reader);
	free(data);
	return ret;
}
