// SPDX-License-Identifier: GPL-2.0-only
/* Finds out what a process cannot do after a restore because a GPU has another gpu_id now.
 *
 * The process knows a GPU by the id of its first machine (user id). RESTORE tells the driver the
 * user id of each present GPU (actual id), and most ioctls translate it. These do not
 * (kfd_chardev.c in the kernel):
 * - EXPORT_DMABUF takes the id in a handle for an actual id. It fails, or exports a BO of the GPU
 *   that has this id.
 * - mmap() of the offset that CREATE_QUEUE returns for doorbells (up to Linux 7.2) fails, or maps
 * the
 *   doorbells of the GPU that has this id. A process maps them once, with its first queue. */
#include "restore/gpu_ids.h"

#include <errno.h>

#include "criu/log.h"
#include "kernel/kfd.h"
#include "restore/gpu_files.h"

/* What the process will do with a GPU. */
struct use {
	bool needs_doorbells;
	bool shares;
};

/* The BOs of the virtual memory API have no address, and an imported BO has no other flags than
 * these. A runtime exports BOs of both kinds again. The image does not name exported BOs. */
static bool is_shared(const KfdBoEntry *bo)
{
	const uint32_t import = KFD_BO_WRITABLE | KFD_BO_EXECUTABLE;
	uint32_t kind = bo->alloc_flags & KFD_BO_WITH_CONTENTS;

	return kind && (!bo->addr || bo->alloc_flags == (kind | import));
}

static struct use find_use(const CriuKfd *kfd, uint32_t gpu_id)
{
	struct use use = { .needs_doorbells = true };

	for (size_t i = 0; i < kfd->n_bo_entries; i++) {
		const KfdBoEntry *bo = kfd->bo_entries[i];

		if (bo->gpu_id != gpu_id)
			continue;
		if (bo->alloc_flags & KFD_BO_DOORBELL)
			use.needs_doorbells = false;
		use.shares |= is_shared(bo);
	}
	return use;
}

/* Another visible GPU has the id now. */
static int judge_taken(const struct restored_task *task, const struct topology_node *saved,
		       struct use use, bool force)
{
	uint32_t id = saved->gpu_id, now = gpu_files_local(task, saved)->gpu_id;
	const char *harm = use.shares ? "an export of its shared memory" : "its first queue";

	if (!use.shares && !use.needs_doorbells) {
		log_warn("kfd %d: GPU 0x%04x is now 0x%04x, and another GPU is 0x%04x: an export of"
			 " memory (IPC, RCCL, virtual memory API) fails or reaches that GPU",
			 task->kfd_id, id, now, id);
		return 0;
	}
	if (force) {
		log_warn("kfd %d: GPU 0x%04x is now 0x%04x, and another GPU is 0x%04x: %s can reach"
			 " that GPU",
			 task->kfd_id, id, now, id, harm);
		return 0;
	}
	return log_error(
		-EINVAL,
		"kfd %d: GPU 0x%04x is now 0x%04x, and another GPU is 0x%04x: %s can reach "
		"that GPU; restore on GPU 0x%04x, hide it with the device cgroup, or use "
		"other GPUs (AMDGPU_FORCE=1 relaxes this)",
		task->kfd_id, id, now, id, harm, id);
}

static int judge(const struct restored_task *task, const struct topology_node *saved, bool force)
{
	uint32_t id = saved->gpu_id, now = gpu_files_local(task, saved)->gpu_id;
	struct use use = find_use(task->kfd, id);

	if (id == now)
		return 0;
	if (topology_find_gpu(&task->local, id))
		return judge_taken(task, saved, use, force);
	log_warn(
		"kfd %d: GPU 0x%04x is now 0x%04x: exports of its memory (IPC, RCCL, virtual memory"
		" API)%s will fail",
		task->kfd_id, id, now, use.needs_doorbells ? ", and its first queue," : "");
	return 0;
}

int gpu_ids_check(const struct restored_task *task, bool force)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < task->saved.num_nodes; i++) {
		if (task->saved.nodes[i].gpu_id)
			ret = judge(task, &task->saved.nodes[i], force);
	}
	return ret;
}
