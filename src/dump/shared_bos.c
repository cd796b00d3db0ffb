// SPDX-License-Identifier: GPL-2.0-only
/* Groups the BOs of all processes of a dump by object, and chooses the owner of each object. */
#include "dump/shared_bos.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "amdgpu_plugin_topology.h"
#include "amdgpu_plugin_util.h"
#include "criu/log.h"
#include "dump/dmabuf_holders.h"
#include "dump/dump_image.h"
#include "image/image.h"
#include "kernel/kfd.h"
#include "kernel/kfd_priv.h"
#include "pause/pause.h"
#include "preflight/bo_index.h"

/* At the restore, a task allocates a page for each free number below the handle of an import. */
#define FREE_NUMBERS_MAX 65536u

/* The problem of a BO whose owner is outside the dump. */
static const char OUTSIDE[] = "its dma-buf has more holders than the dump knows";

struct shared_bos {
	/* By process and index. */
	struct shared_bo *list;
	size_t count;
	/* The processes in the list are the first ones of the session. */
	size_t num_processes;
	/* Its dma-bufs are open throughout the scan. */
	size_t first_process;
	uint32_t num_objects;
};

static int compare_numbers(uint64_t one, uint64_t other)
{
	return one < other ? -1 : one > other;
}

static int compare_owners(const void *a, const void *b)
{
	const struct shared_bo *one = a, *other = b;
	int order = compare_numbers(one->process, other->process);

	return order ? order : compare_numbers(one->index, other->index);
}

static int compare_places(const void *a, const void *b)
{
	const struct shared_bo *one = a, *other = b;
	int order = compare_numbers(one->device, other->device);

	if (!order)
		order = compare_numbers(one->offset, other->offset);
	return order ? order : compare_owners(a, b);
}

static int compare_inodes(const void *a, const void *b)
{
	const struct shared_bo *one = a, *other = b;
	int order = compare_numbers(one->inode, other->inode);

	return order ? order : compare_owners(a, b);
}

static bool have_one_place(const struct shared_bo *one, const struct shared_bo *other)
{
	return one->device == other->device && one->offset == other->offset;
}

static bool have_one_inode(const struct shared_bo *one, const struct shared_bo *other)
{
	return one->inode == other->inode;
}

static int add_bo(struct shared_bos *shared, const struct kfd_state *state, uint32_t index,
		  const struct topology_node *gpu)
{
	const struct kfd_bo_bucket *bo = &state->bos[index];
	uint64_t references = 0;
	struct stat file;
	int ret;

	if (fstat((int)bo->dmabuf_fd, &file) < 0)
		return -errno;
	ret = dmabuf_holders_count((int)bo->dmabuf_fd, &references);
	if (ret < 0)
		return ret;
	shared->list[shared->count++] = (struct shared_bo){
		.process = shared->num_processes - 1,
		.index = index,
		.device = bo_index_device(gpu),
		.gpu_id = gpu->actual_gpu_id,
		.alloc_flags = bo->alloc_flags,
		.offset = bo->offset,
		.size = bo->size,
		.inode = file.st_ino,
		.references = references,
	};
	return 0;
}

/* In a hive of XGMI, and on other partitions of the device, GPUs map VRAM without an attachment. */
static bool may_be_attached(const struct topology_node *gpu, const struct topology_node *mapper,
			    uint32_t alloc_flags)
{
	if (!mapper || bo_index_device(gpu) == bo_index_device(mapper))
		return !mapper;
	return !(alloc_flags & KFD_BO_VRAM) || !gpu->hive_id || gpu->hive_id != mapper->hive_id;
}

/* Notes for each BO from @first on how many GPUs may have attached it. */
static void count_attachments(struct shared_bos *shared, size_t first,
			      const struct kfd_state *state, const struct topology *topology)
{
	const struct kfd_priv priv = { state->priv_data, state->priv_data_size, state->num_devices,
				       state->num_bos, state->num_objects };
	struct kfd_priv_bo_record record;
	uint64_t bo_size = 0;
	bool is_known = kfd_priv_find_bo_size(&priv, &bo_size) == 0;

	for (size_t i = first; i < shared->count; i++) {
		struct shared_bo *bo = &shared->list[i];
		const struct topology_node *gpu =
			bo_index_find_gpu(state, topology, state->bos[bo->index].gpu_id);

		bo->attachments = state->num_devices - 1;
		if (!is_known || kfd_priv_read_bo(&priv, bo_size, bo->index, &record) < 0)
			continue;
		bo->attachments = 0;
		for (uint32_t at = 0; at < record.num_gpus; at++)
			bo->attachments += may_be_attached(
				gpu, bo_index_find_gpu(state, topology, record.gpu_ids[at]),
				bo->alloc_flags);
	}
}

static int add_process(struct shared_bos *shared, size_t process, const struct kfd_state *state,
		       const struct topology *topology)
{
	const size_t first = shared->count;
	int ret = array_grow(&shared->list, shared->count + state->num_bos + 1,
			     sizeof(*shared->list));

	shared->num_processes = process + 1;
	for (uint32_t i = 0; !ret && i < state->num_bos; i++) {
		const struct kfd_bo_bucket *bo = &state->bos[i];
		const struct topology_node *gpu = bo_index_find_gpu(state, topology, bo->gpu_id);

		if (gpu && bo->alloc_flags & KFD_BO_WITH_CONTENTS)
			ret = add_bo(shared, state, i, gpu);
	}
	if (!ret)
		count_attachments(shared, first, state, topology);
	return ret;
}

/* Calls @judge for each run of @list whose neighbours are @alike, also for runs of one. */
static void for_each_run(struct shared_bos *shared,
			 bool (*alike)(const struct shared_bo *, const struct shared_bo *),
			 void (*judge)(struct shared_bos *shared, struct shared_bo *run,
				       size_t count))
{
	size_t first = 0;

	for (size_t i = 1; i <= shared->count; i++) {
		if (i < shared->count && alike(&shared->list[first], &shared->list[i]))
			continue;
		if (i > first)
			judge(shared, &shared->list[first], i - first);
		first = i;
	}
}

static void note_problem(struct shared_bo *run, size_t count, const char *problem)
{
	for (size_t i = 0; i < count; i++)
		run[i].problem = problem;
}

/* The import of a buffer on another PCI device is an object with an offset of its own. Up to Linux
 * 6.7 there are no such imports, and inodes say nothing. */
static void judge_inode(struct shared_bos *shared, struct shared_bo *run, size_t count)
{
	(void)shared;
	for (size_t i = 1; i < count; i++) {
		if (!have_one_place(&run[0], &run[i]))
			note_problem(run, count, "it is imported on another PCI device");
	}
}

static bool is_first_of_device(const struct shared_bo *run, size_t index)
{
	for (size_t i = 0; i < index; i++) {
		if (run[i].device == run[index].device)
			return false;
	}
	return true;
}

/* At the scan of the last process of a run, all processes of the run have exported their BOs, and
 * the dma-bufs of that process and of the first one are open. */
static struct dmabuf_holders list_holders(const struct shared_bos *shared,
					  const struct shared_bo *run, size_t count)
{
	const struct shared_bo *last = &run[count - 1];
	struct dmabuf_holders holders = { .references = last->references, .bos = count };

	for (size_t i = 0; i < count; i++) {
		holders.descriptors +=
			run[i].process == last->process || run[i].process == shared->first_process;
		holders.other_devices += i && is_first_of_device(run, i);
		holders.attachments += run[i].attachments;
	}
	return holders;
}

/* An owner whose importers are outside the dump may also be held by something else, so this alone
 * is worth a warning only. */
static void judge_holders(struct shared_bos *shared, struct shared_bo *run, size_t count)
{
	const struct dmabuf_holders holders = list_holders(shared, run, count);
	bool has_owner = false;

	if (dmabuf_holders_are_known(&holders))
		return;
	for (size_t i = 0; i < count; i++)
		has_owner |= !kfd_bo_looks_imported(run[i].alloc_flags);
	for (size_t i = 0; i < count; i++) {
		run[i].held_elsewhere = true;
		if (!has_owner)
			run[i].problem = OUTSIDE;
	}
}

/* The images of the processes before may be written, and cannot name the object any more. */
static bool is_late(const struct shared_bos *shared, const struct shared_bo *run, size_t count)
{
	bool is_old = false, is_new = false;

	for (size_t i = 0; i < count; i++) {
		is_new |= run[i].process == shared->num_processes - 1;
		is_old |= run[i].process != shared->num_processes - 1;
	}
	return is_old && is_new;
}

static const char *find_problem(const struct shared_bo *run, size_t count,
				const struct shared_bo **ret_owner)
{
	*ret_owner = NULL;
	for (size_t i = 0; i < count; i++) {
		if (run[i].problem)
			return run[i].problem;
		if (run[i].size != run[0].size)
			return "its sizes differ";
		if (run[i].gpu_id != run[0].gpu_id)
			return "it is imported for another GPU";
		if (kfd_bo_looks_imported(run[i].alloc_flags))
			continue;
		if (*ret_owner)
			return "several processes look like its owner";
		*ret_owner = &run[i];
	}
	return *ret_owner ? NULL
			  : "its owner is not in the dump, or cannot be told from the others";
}

static void judge_place(struct shared_bos *shared, struct shared_bo *run, size_t count)
{
	const struct shared_bo *owner;
	const char *problem;

	if (count == 1)
		return;
	problem = find_problem(run, count, &owner);
	if (!problem && shared->num_objects == IMAGE_OBJECTS_MAX)
		problem = "too many others are";
	note_problem(run, count, problem);
	if (problem)
		return;
	shared->num_objects++;
	for (size_t i = 0; i < count; i++) {
		run[i].object = shared->num_objects;
		run[i].owner = owner->process;
		run[i].imported = &run[i] != owner;
	}
}

static void judge_late(struct shared_bos *shared, struct shared_bo *run, size_t count)
{
	for (size_t i = 0; is_late(shared, run, count) && i < count; i++) {
		if (run[i].process == shared->num_processes - 1)
			run[i].problem = "its sharers could not be listed in time";
	}
}

static void judge_late_process(struct shared_bos *shared, struct shared_bo *run, size_t count)
{
	bool is_own = run[0].process == shared->num_processes - 1;

	if (is_own && !is_late(shared, run, count))
		judge_place(shared, run, count);
}

static void sort(struct shared_bos *shared, int (*compare)(const void *, const void *))
{
	if (shared->count)
		qsort(shared->list, shared->count, sizeof(*shared->list), compare);
}

/* Its index in the session. */
static size_t number_of(const struct process_dump *dump)
{
	return (size_t)(dump->process - dump->session->processes);
}

/* Adds all processes that are known by now. */
static int scan_all(struct process_dump *dump)
{
	struct dump_session *session = dump->session;
	struct shared_bos *shared = session->shared;
	int ret = 0;

	shared->first_process = number_of(dump);
	for (size_t i = 0; !ret && i < session->num_processes; i++) {
		struct dumped_process *process = &session->processes[i];
		_cleanup_(kfd_state_done) struct kfd_state state = { 0 };

		if (process == dump->process) {
			ret = add_process(shared, i, &dump->state, dump->topology);
			continue;
		}
		/* It sees no GPU. */
		if (!process->paused)
			continue;
		ret = pause_checkpoint(session, process, &state);
		if (ret < 0)
			return ret;
		ret = add_process(shared, i, &state, dump->topology);
	}
	if (ret < 0)
		return log_error(ret, "processes: cannot list the BOs that they share");
	sort(shared, compare_inodes);
	for_each_run(shared, have_one_inode, judge_inode);
	if (session->files_are_listed)
		for_each_run(shared, have_one_inode, judge_holders);
	sort(shared, compare_places);
	for_each_run(shared, have_one_place, judge_place);
	sort(shared, compare_owners);
	return 0;
}

/* Adds the process of @dump, which was not known when others were scanned. */
static int scan_late(struct process_dump *dump)
{
	struct shared_bos *shared = dump->session->shared;
	int ret = add_process(shared, number_of(dump), &dump->state, dump->topology);

	if (ret < 0)
		return log_error(ret, "kfd %d: cannot list the BOs that it shares",
				 dump->process->id);
	sort(shared, compare_inodes);
	for_each_run(shared, have_one_inode, judge_late);
	sort(shared, compare_places);
	for_each_run(shared, have_one_place, judge_late);
	for_each_run(shared, have_one_place, judge_late_process);
	sort(shared, compare_owners);
	return 0;
}

static int scan(struct process_dump *dump)
{
	struct dump_session *session = dump->session;

	if (!session->shared) {
		session->shared = calloc(1, sizeof(*session->shared));
		return session->shared ? scan_all(dump)
				       : log_error(-ENOMEM, "processes: cannot list their BOs");
	}
	return number_of(dump) < session->shared->num_processes ? 0 : scan_late(dump);
}

static struct shared_bo *find(const struct process_dump *dump, uint32_t index)
{
	const struct shared_bos *shared = dump->session->shared;
	const struct shared_bo wanted = { .process = number_of(dump), .index = index };

	return shared && shared->count ? bsearch(&wanted, shared->list, shared->count,
						 sizeof(wanted), compare_owners)
				       : NULL;
}

const struct shared_bo *shared_bos_get(const struct process_dump *dump, uint32_t index)
{
	return find(dump, index);
}

bool shared_bos_is_private(const struct process_dump *dump, uint32_t index)
{
	const struct shared_bo *bo = find(dump, index);

	return bo && !bo->object && !bo->problem;
}

/* All tasks are stopped, so the BOs are those of the scan. */
static int check_unchanged(const struct process_dump *dump)
{
	for (uint32_t i = 0; i < dump->state.num_bos; i++) {
		const struct kfd_bo_bucket *bo = &dump->state.bos[i];
		const struct shared_bo *found = find(dump, i);

		if (!(bo->alloc_flags & KFD_BO_WITH_CONTENTS))
			continue;
		if (!found || found->offset != bo->offset || found->size != bo->size ||
		    found->alloc_flags != bo->alloc_flags)
			return log_error(-EAGAIN, "kfd %d: BO %u has changed during the dump",
					 dump->process->id, i);
	}
	return 0;
}

static bool maps_known_gpus(const struct process_dump *dump,
			    const struct kfd_priv_bo_record *record)
{
	for (uint32_t i = 0; i < record->num_gpus; i++) {
		if (!bo_index_find_gpu(&dump->state, dump->topology, record->gpu_ids[i]))
			return false;
	}
	return true;
}

/* A restore needs the record of an import. */
static const char *check_record(const struct process_dump *dump, const struct kfd_priv *priv,
				uint32_t index)
{
	struct kfd_priv_bo_record record;
	uint64_t bo_size;

	if (kfd_priv_find_bo_size(priv, &bo_size) < 0 || bo_size > KFD_PRIV_BO_SIZE_LINUX ||
	    kfd_priv_read_bo(priv, bo_size, index, &record) < 0 || !maps_known_gpus(dump, &record))
		return "the driver's record of it has an unknown layout";
	return record.handle > FREE_NUMBERS_MAX + dump->state.num_bos ? "its handle is too high"
								      : NULL;
}

static void check_records(const struct process_dump *dump)
{
	const struct kfd_priv priv = { dump->state.priv_data, dump->state.priv_data_size,
				       dump->state.num_devices, dump->state.num_bos,
				       dump->state.num_objects };

	for (uint32_t i = 0; i < dump->state.num_bos; i++) {
		struct shared_bo *bo = find(dump, i);

		if (bo && bo->imported && !bo->problem)
			bo->problem = check_record(dump, &priv, i);
	}
}

/* With AMDGPU_FORCE the dump goes on, and a BO with a problem becomes one of its own. */
static int refuse_problems(const struct process_dump *dump)
{
	const struct shared_bo *first = NULL;

	for (uint32_t i = 0; i < dump->state.num_bos; i++) {
		struct shared_bo *bo = find(dump, i);

		if (!bo || !bo->problem)
			continue;
		if (!first)
			first = bo;
		bo->object = 0;
		bo->imported = false;
	}
	if (!first)
		return 0;
	return preflight_refuse(
		dump->session, first->problem == OUTSIDE ? DUMP_BO_OUTSIDE : DUMP_BO_SHARED,
		"kfd %d: BO %u of %" PRIu64 " bytes at 0x%" PRIx64 ", flags 0x%x, (%s)",
		dump->process->id, first->index, first->size, dump->state.bos[first->index].addr,
		first->alloc_flags, first->problem);
}

static void warn_of_holders(const struct process_dump *dump)
{
	const struct shared_bo *first = NULL;
	uint32_t count = 0;

	for (uint32_t i = 0; i < dump->state.num_bos; i++) {
		const struct shared_bo *bo = find(dump, i);

		if (!bo || !bo->held_elsewhere || bo->problem)
			continue;
		first = first ? first : bo;
		count++;
	}
	if (first)
		log_warn(
			"kfd %d: BO %u of %" PRIu64 " bytes at 0x%" PRIx64 ", and %u more: the"
			" kernel counts more holders than the dump knows; a process outside the"
			" dump that shares the BO will not see the restored one; dump all processes"
			" that share it together",
			dump->process->id, first->index, first->size,
			dump->state.bos[first->index].addr, count - 1);
}

int shared_bos_check(struct process_dump *dump)
{
	int ret = scan(dump);

	if (!ret)
		ret = check_unchanged(dump);
	if (ret < 0)
		return ret;
	check_records(dump);
	ret = refuse_problems(dump);
	if (!ret)
		warn_of_holders(dump);
	return ret;
}

int shared_bos_check_seen(const struct dump_session *session)
{
	const struct shared_bos *shared = session->shared;

	for (size_t i = 0; shared && i < shared->count; i++) {
		const struct shared_bo *bo = &shared->list[i];
		const struct dumped_process *process = &session->processes[bo->process];

		if (bo->object && process->id == DUMP_NO_ID)
			return log_error(-EOPNOTSUPP,
					 "process %d: shares memory of GPU 0x%04x with a process of"
					 " the dump, but is not dumped; dump both together",
					 process->pid, bo->gpu_id);
	}
	return 0;
}

void shared_bos_done(struct dump_session *session)
{
	if (session->shared)
		free(session->shared->list);
	free(session->shared);
	session->shared = NULL;
}
