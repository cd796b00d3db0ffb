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
#include "dump/dump_image.h"
#include "image/image.h"
#include "kernel/kfd.h"
#include "kernel/kfd_priv.h"
#include "pause/pause.h"
#include "preflight/bo_index.h"

/* At the restore, a task allocates a page for each free number below the handle of an import. */
#define FREE_NUMBERS_MAX 65536u

struct shared_bos {
	/* By process and index. */
	struct shared_bo *list;
	size_t count;
	/* The processes in the list are the first ones of the session. */
	size_t num_processes;
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

static int add_bo(struct shared_bos *shared, const struct kfd_bo_bucket *bo, uint32_t index,
		  const struct topology_node *gpu)
{
	struct stat file;

	if (fstat((int)bo->dmabuf_fd, &file) < 0)
		return -errno;
	shared->list[shared->count++] = (struct shared_bo){
		.process = shared->num_processes - 1,
		.index = index,
		.device = bo_index_device(gpu),
		.gpu_id = gpu->actual_gpu_id,
		.alloc_flags = bo->alloc_flags,
		.offset = bo->offset,
		.size = bo->size,
		.inode = file.st_ino,
	};
	return 0;
}

static int add_process(struct shared_bos *shared, size_t process, const struct kfd_state *state,
		       const struct topology *topology)
{
	int ret = array_grow(&shared->list, shared->count + state->num_bos + 1,
			     sizeof(*shared->list));

	shared->num_processes = process + 1;
	for (uint32_t i = 0; !ret && i < state->num_bos; i++) {
		const struct kfd_bo_bucket *bo = &state->bos[i];
		const struct topology_node *gpu = bo_index_find_gpu(state, topology, bo->gpu_id);

		if (gpu && bo->alloc_flags & KFD_BO_WITH_CONTENTS)
			ret = add_bo(shared, bo, i, gpu);
	}
	return ret;
}

/* Calls @judge for each run of @list whose neighbours are @alike. */
static void for_each_run(struct shared_bos *shared,
			 bool (*alike)(const struct shared_bo *, const struct shared_bo *),
			 void (*judge)(struct shared_bos *shared, struct shared_bo *run,
				       size_t count))
{
	size_t first = 0;

	for (size_t i = 1; i <= shared->count; i++) {
		if (i < shared->count && alike(&shared->list[first], &shared->list[i]))
			continue;
		if (i - first > 1)
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
	const char *problem = find_problem(run, count, &owner);

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
		dump->session, DUMP_BO_SHARED,
		"kfd %d: BO %u of %" PRIu64 " bytes at 0x%" PRIx64 ", flags 0x%x, (%s)",
		dump->process->id, first->index, first->size, dump->state.bos[first->index].addr,
		first->alloc_flags, first->problem);
}

int shared_bos_check(struct process_dump *dump)
{
	int ret = scan(dump);

	if (!ret)
		ret = check_unchanged(dump);
	if (ret < 0)
		return ret;
	check_records(dump);
	return refuse_problems(dump);
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
