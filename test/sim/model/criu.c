// SPDX-License-Identifier: GPL-2.0-only
/* The CRIU operations that read a process: PROCESS_INFO, CHECKPOINT and UNPAUSE. criu_restore.c has
 * RESTORE and reads private data; criu_resume.c has RESUME and its worker. */
#include "process.h"

/* The sizes that the caller's arrays need. */
struct object_counts {
	u32 devices, bos, objects;
	u64 priv_bytes;
};

/* A position in the private data that is being written. */
struct writer {
	u8 *data;
	u64 used, size;
};

static bool is_dumped(const struct sim_mem *mem)
{
	if (mem->va == 0)
		return SIM_KNOB(mem->pdd->gpu->sim, addressless_bos) != 0;
	return mem->va > SIM_KNOB(mem->pdd->gpu->sim, gpuvm_first_page) * SIM_PAGE_SIZE;
}

static struct sim_mem *next_dumped(struct sim_pdd *pdd, u32 *id)
{
	struct sim_mem *mem;

	for (; (mem = sim_ids_next(&pdd->mems, id)); (*id)++)
		if (is_dumped(mem))
			return mem;
	return NULL;
}

/* No driver has a function that saves queues of these generations. */
static bool has_unsaved_queues(struct sim_process *process)
{
	u32 end =
		SIM_KNOB(process->sim, gfx11_queues) == SIM_GFX11_NOT_SAVED ? SIM_GFX11 : SIM_GFX12;
	struct sim_queue *queue;
	u32 id;

	for (id = 0; (queue = sim_ids_next(&process->queues, &id)); id++)
		if (queue->pdd->gpu->gfx_target_version >= end)
			return true;
	return false;
}

static void count_objects(struct sim_process *process, struct object_counts *counts)
{
	u32 events = sim_events_count(process), ranges = sim_svm_count(process), id, i;
	struct sim_queue *queue;

	memset(counts, 0, sizeof(*counts));
	counts->devices = process->num_pdds;
	for (i = 0; i < process->num_pdds; i++)
		for (id = 0; next_dumped(process->pdds[i], &id); id++)
			counts->bos++;
	counts->objects = events + ranges;
	counts->priv_bytes =
		8 + 8ull * counts->devices + process->sim->knobs.bo_record_size * counts->bos;
	counts->priv_bytes += sizeof(struct sim_priv_event) * events;
	counts->priv_bytes += (sizeof(struct sim_priv_svm) + 8ull * (4 + counts->devices)) * ranges;
	for (id = 0; (queue = sim_ids_next(&process->queues, &id)); id++) {
		counts->objects++;
		counts->priv_bytes += sizeof(struct sim_priv_queue) + sim_queue_state_bytes(queue);
	}
}

/* kfd_process_evict_queues() in amdkfd/kfd_process.c: after -EIO of a GPU in reset the driver goes
 * on, and returns only the -EIO of the last GPU, or none (out-of-tree driver). After another error
 * it restores the GPUs before, but not the GPU of the error. In neither case does
 * criu_process_info() mark the process as paused. UNPAUSE is then EINVAL, and the evicted queues
 * stay evicted. */
static int evict(struct sim_process *process)
{
	u64 in_reset = SIM_KNOB(process->sim, in_reset);
	u64 timeout = SIM_KNOB(process->sim, evict_timeout);
	int ret = 0;
	u32 i, j;

	for (i = 0; i < process->num_pdds; i++) {
		u64 gpu = 1ull << process->pdds[i]->gpu->index;

		sim_engine_evict(process->pdds[i]);
		ret = in_reset & gpu && !SIM_KNOB(process->sim, reset_hidden) ? -EIO : 0;
		if (!(timeout & gpu))
			continue;
		for (j = 0; j < i; j++)
			sim_engine_restore(process->pdds[j]);
		return -ETIME;
	}
	return ret;
}

static int process_info(struct sim_process *process, struct kfd_ioctl_criu_args *io)
{
	struct object_counts counts;
	int ret;

	if (!process->num_pdds)
		return -ENODEV;
	ret = !process->paused || SIM_KNOB(process->sim, pause_nests) ? evict(process) : 0;
	if (ret < 0)
		return ret;
	process->paused = true;
	count_objects(process, &counts);
	io->pid = sim_os_process_pid(process);
	io->num_devices = counts.devices;
	io->num_bos = counts.bos;
	io->num_objects = counts.objects;
	io->priv_data_size = counts.priv_bytes;
	return 0;
}

/* drm_priv of a pdd is NULL without ACQUIRE_VM, and the driver reads through it: in CHECKPOINT
 * criu_checkpoint_bos() in kfd_chardev.c of Linux 6.12 to 7.3, and in UNPAUSE
 * restore_process_queues_cpsch() in kfd_device_queue_manager.c of Linux 6.1. */
static void note_oops(const struct sim_process *process, const char *call)
{
	u32 i;

	for (i = 0; i < process->num_pdds; i++)
		if (!process->pdds[i]->render)
			sim_violation(process->sim, "%s: no VM of GPU 0x%04x: oops", call,
				      process->pdds[i]->gpu->gpu_id);
}

static int unpause(struct sim_process *process)
{
	u32 i;

	if (!process->paused)
		return -EINVAL;
	if (SIM_KNOB(process->sim, unpause_oops))
		note_oops(process, "UNPAUSE");
	for (i = 0; i < process->num_pdds; i++)
		sim_engine_restore(process->pdds[i]);
	process->paused = false;
	process->unpauses++;
	return 0;
}

static void *reserve(struct writer *writer, u64 bytes)
{
	u8 *at = writer->data + writer->used;

	if (bytes > writer->size - writer->used)
		return NULL;
	writer->used += bytes;
	return at;
}

u32 sim_priv_bo_word(u64 va, u32 user_gpu_id, u32 id, u32 offset)
{
	u64 word = va ^ (u64)user_gpu_id << 48 ^ (u64)id << 16 ^ offset;

	word *= 0x9e3779b97f4a7c15ull;
	word ^= word >> 32;
	word *= 0x9e3779b97f4a7c15ull;
	return (u32)(word >> 32) | 1;
}

static void fill_opaque(const struct sim_mem *mem, u8 *record, u64 bytes)
{
	u32 offset;

	for (offset = SIM_PRIV_BO_OPAQUE; offset < bytes; offset += sizeof(u32)) {
		u32 word = sim_priv_bo_word(mem->va, mem->pdd->user_gpu_id, mem->id, offset);

		memcpy(record + offset, &word, sizeof(word));
	}
}

bool sim_criu_has_ipc(const struct sim *sim)
{
	return SIM_KNOB(sim, ipc_handles) &&
	       sim->knobs.bo_record_size == SIM_PRIV_BO_OPAQUE + sizeof(struct sim_priv_ipc);
}

static int write_bo(struct writer *writer, struct sim_mem *mem)
{
	struct sim_process *process = mem->pdd->process;
	u64 bytes = process->sim->knobs.bo_record_size;
	struct sim_priv_bo record;
	void *at = reserve(writer, bytes);
	u32 i, used = 0;

	if (!at)
		return -EINVAL;
	if (SIM_KNOB(process->sim, unacquired_oops))
		note_oops(process, "CHECKPOINT");
	memset(&record, 0, sizeof(record));
	record.user_addr = mem->user_addr;
	record.id = mem->id;
	for (i = 0; i < process->num_pdds; i++)
		if (mem->mapped & 1ull << i)
			record.mapped_gpu_ids[used++] = process->pdds[i]->user_gpu_id;
	memcpy(at, &record, min(bytes, (u64)sizeof(record)));
	if (sim_criu_has_ipc(process->sim))
		sim_ipc_write_record(mem, at + SIM_PRIV_BO_OPAQUE);
	else if (bytes > sizeof(record))
		fill_opaque(mem, at, bytes);
	return 0;
}

static int write_queues(struct writer *writer, struct sim_pdd *pdd)
{
	struct sim_queue *queue;
	u32 id;

	for (id = 0; (queue = sim_ids_next(&pdd->process->queues, &id)); id++) {
		struct sim_priv_queue *record;

		if (queue->pdd != pdd)
			continue;
		record = reserve(writer, sizeof(*record) + sim_queue_state_bytes(queue));
		if (!record)
			return -EINVAL;
		sim_queue_save(queue, record);
	}
	return 0;
}

static int write_events(struct writer *writer, struct sim_process *process)
{
	bool first = true;
	struct sim_event *event;
	u32 id;

	for (id = 0; (event = sim_events_next(process, &id)); id++) {
		struct sim_priv_event *record = reserve(writer, sizeof(*record));

		if (!record)
			return -EINVAL;
		record->object_type = SIM_PRIV_EVENT;
		if (first && process->event_mem)
			record->user_handle = (u64)process->event_mem->pdd->user_gpu_id << 32 |
					      process->event_mem->id;
		record->event_id = event->id;
		record->auto_reset = event->auto_reset;
		record->type = event->type;
		record->signaled = event->signaled;
		memcpy(record->exception, event->exception, sizeof(record->exception));
		first = false;
	}
	return 0;
}

static int write_ranges(struct writer *writer, struct sim_process *process)
{
	struct sim_svm_range *range;
	int ret = 0;
	u32 i;

	sim_lock(&process->svm_lock);
	for (range = process->svm; range; range = range->next) {
		struct sim_priv_svm *record =
			reserve(writer, sizeof(*record) + 8ull * (4 + process->num_pdds));

		if (!record) {
			ret = -EINVAL;
			break;
		}
		record->object_type = SIM_PRIV_SVM;
		record->first = range->first;
		record->pages = range->pages;
		record->attrs[0] =
			(struct kfd_ioctl_svm_attribute){ KFD_IOCTL_SVM_ATTR_PREFERRED_LOC,
							  range->preferred_loc };
		record->attrs[1] =
			(struct kfd_ioctl_svm_attribute){ KFD_IOCTL_SVM_ATTR_PREFETCH_LOC,
							  range->prefetch_loc };
		record->attrs[2] = (struct kfd_ioctl_svm_attribute){ KFD_IOCTL_SVM_ATTR_SET_FLAGS,
								     range->flags };
		record->attrs[3] = (struct kfd_ioctl_svm_attribute){ KFD_IOCTL_SVM_ATTR_GRANULARITY,
								     range->granularity };
		for (i = 0; i < process->num_pdds; i++)
			record->attrs[4 + i] =
				(struct kfd_ioctl_svm_attribute){ range->access[i],
								  process->pdds[i]->user_gpu_id };
	}
	sim_unlock(&process->svm_lock);
	return ret;
}

static int write_priv(struct sim_process *process, struct writer *writer)
{
	struct sim_priv_process *record = reserve(writer, sizeof(*record));
	struct sim_mem *mem;
	u32 id, i;
	int ret = 0;

	if (!record || !reserve(writer, 8ull * process->num_pdds))
		return -EINVAL;
	record->version = SIM_PRIV_VERSION;
	record->xnack_mode = process->xnack;
	for (i = 0; i < process->num_pdds; i++)
		for (id = 0; ret == 0 && (mem = next_dumped(process->pdds[i], &id)); id++)
			ret = write_bo(writer, mem);
	for (i = 0; ret == 0 && i < process->num_pdds; i++)
		ret = write_queues(writer, process->pdds[i]);
	if (ret == 0)
		ret = write_events(writer, process);
	return ret < 0 ? ret : write_ranges(writer, process);
}

int sim_fds_add(struct sim_fds *fds, struct sim_mem *mem, u32 *ret_fd)
{
	struct sim_dmabuf *dmabuf;
	int ret;

	if (!(mem->flags & (KFD_MEM_VRAM | KFD_MEM_GTT)))
		return 0;
	ret = sim_mem_criu_dmabuf(mem, &dmabuf);
	if (ret < 0)
		return ret;
	ret = sim_os_fd_reserve(false);
	if (ret < 0) {
		sim_os_dmabuf_put(dmabuf);
		return ret;
	}
	fds->entries[fds->count].fd = ret;
	fds->entries[fds->count].dmabuf = dmabuf;
	fds->count++;
	*ret_fd = (u32)ret;
	return 0;
}

void sim_fds_settle(struct sim_fds *fds, bool install)
{
	u32 i;

	for (i = 0; i < fds->count; i++) {
		if (install)
			sim_os_fd_install(fds->entries[i].fd, fds->entries[i].dmabuf);
		else
			sim_os_fd_cancel(fds->entries[i].fd);
		sim_os_dmabuf_put(fds->entries[i].dmabuf);
	}
	free(fds->entries);
}

static int fill_bucket(struct sim_mem *mem, struct sim_fds *fds, struct kfd_criu_bo_bucket *bucket)
{
	u64 real_id = KFD_MMAP_GPU_ID(mem->pdd->gpu->gpu_id);
	int ret = 0;

	memset(bucket, 0, sizeof(*bucket));
	bucket->addr = mem->va;
	bucket->size = mem->bo->size;
	bucket->gpu_id = mem->pdd->user_gpu_id;
	bucket->alloc_flags = mem->flags;
	bucket->dmabuf_fd = KFD_INVALID_FD;
	if (mem->flags & KFD_MEM_DOORBELL)
		bucket->offset = KFD_MMAP_TYPE(KFD_MMAP_DOORBELL) | real_id;
	else if (mem->flags & KFD_MEM_MMIO_REMAP)
		bucket->offset = KFD_MMAP_TYPE(KFD_MMAP_MMIO) | real_id;
	else
		bucket->offset = sim_os_bo_mmap_offset(mem->bo);
	if (mem->flags & (KFD_MEM_VRAM | KFD_MEM_GTT))
		ret = sim_fault(&mem->bo->gpu->sim->faults, "checkpoint", "FD");
	return ret < 0 ? ret : sim_fds_add(fds, mem, &bucket->dmabuf_fd);
}

/* A dma-buf of another buffer: amdgpu_amdkfd_gpuvm.c exports by a GEM handle of KFD's client, and
 * several buffers may have had this handle one after the other. */
static void swap_dmabufs(struct sim *sim, struct kfd_criu_bo_bucket *buckets, u32 last)
{
	u32 fd = buckets[last].dmabuf_fd, i;

	if (fd == KFD_INVALID_FD || !sim_fault(&sim->faults, "checkpoint", "SWAP"))
		return;
	for (i = last; i-- > 0;) {
		if (buckets[i].dmabuf_fd == KFD_INVALID_FD)
			continue;
		buckets[last].dmabuf_fd = buckets[i].dmabuf_fd;
		buckets[i].dmabuf_fd = fd;
		return;
	}
}

static int fill_buckets(struct sim_process *process, struct sim_fds *fds,
			struct kfd_criu_bo_bucket *buckets)
{
	struct sim_mem *mem;
	u32 used = 0, id, i;
	int ret = 0;

	for (i = 0; i < process->num_pdds; i++)
		for (id = 0; ret == 0 && (mem = next_dumped(process->pdds[i], &id)); id++) {
			ret = fill_bucket(mem, fds, &buckets[used]);
			swap_dmabufs(process->sim, buckets, used++);
		}
	return ret;
}

static int copy_devices(struct sim_process *process, u64 user)
{
	u32 i;

	for (i = 0; i < process->num_pdds; i++) {
		struct kfd_criu_device_bucket bucket = {
			.user_gpu_id = process->pdds[i]->user_gpu_id,
			.actual_gpu_id = process->pdds[i]->gpu->gpu_id,
		};

		if (sim_os_copy_to_user(user + i * sizeof(bucket), &bucket, sizeof(bucket)) < 0)
			return -EFAULT;
	}
	return 0;
}

/* All results of CHECKPOINT. */
struct snapshot {
	struct kfd_criu_bo_bucket *buckets;
	struct sim_fds fds;
	struct writer priv;
};

static void snapshot_free(struct snapshot *snapshot, bool install)
{
	sim_fds_settle(&snapshot->fds, install);
	free(snapshot->buckets);
	free(snapshot->priv.data);
}

static int snapshot_take(struct sim_process *process, const struct object_counts *counts,
			 struct snapshot *snapshot)
{
	u64 entries = max(counts->bos, 1u);

	snapshot->priv.size = counts->priv_bytes;
	snapshot->priv.data = calloc(1, counts->priv_bytes);
	snapshot->buckets = calloc(entries, sizeof(*snapshot->buckets));
	snapshot->fds.entries = calloc(entries, sizeof(*snapshot->fds.entries));
	if (!snapshot->priv.data || !snapshot->buckets || !snapshot->fds.entries)
		return -ENOMEM;
	return write_priv(process, &snapshot->priv);
}

static bool counts_match(struct sim_process *process, const struct object_counts *counts,
			 const struct kfd_ioctl_criu_args *io)
{
	u64 *skew = &process->sim->knobs.bo_count_skew;
	u32 bos = counts->bos;

	if (*skew) {
		*skew = 0;
		bos++;
	}
	return io->num_devices == counts->devices && io->num_bos == bos &&
	       io->num_objects == counts->objects && io->priv_data_size == counts->priv_bytes;
}

static int checkpoint(struct sim_process *process, struct kfd_ioctl_criu_args *io)
{
	struct snapshot snapshot = { .buckets = NULL };
	struct object_counts counts;
	int ret;

	if (!io->devices || !io->bos || !io->priv_data)
		return -EINVAL;
	if (!process->num_pdds)
		return -ENODEV;
	if (!process->paused)
		return -EINVAL;
	count_objects(process, &counts);
	if (!counts_match(process, &counts, io))
		return -EINVAL;
	if (has_unsaved_queues(process))
		return -EOPNOTSUPP;
	ret = snapshot_take(process, &counts, &snapshot);
	if (ret == 0)
		ret = copy_devices(process, io->devices);
	if (ret == 0)
		ret = sim_os_copy_to_user(io->priv_data, snapshot.priv.data, counts.priv_bytes);
	/* BOs come last, so the caller has the rest if there are too few descriptors. */
	if (ret == 0)
		ret = fill_buckets(process, &snapshot.fds, snapshot.buckets);
	if (ret == 0)
		ret = sim_os_copy_to_user(io->bos, snapshot.buckets,
					  counts.bos * sizeof(*snapshot.buckets));
	snapshot_free(&snapshot, ret == 0);
	return ret;
}

SIM_KFD_HANDLER(sim_kfd_criu)
{
	struct kfd_ioctl_criu_args *io = args;
	int ret;

	if (io->op == KFD_CRIU_OP_RESUME)
		return sim_criu_resume(io->pid);
	sim_lock(&process->lock);
	switch (io->op) {
	case KFD_CRIU_OP_PROCESS_INFO:
		ret = process_info(process, io);
		break;
	case KFD_CRIU_OP_CHECKPOINT:
		ret = checkpoint(process, io);
		break;
	case KFD_CRIU_OP_UNPAUSE:
		ret = unpause(process);
		break;
	case KFD_CRIU_OP_RESTORE:
		ret = sim_criu_restore(process, io);
		break;
	default:
		ret = -EINVAL;
	}
	sim_unlock(&process->lock);
	return ret;
}
