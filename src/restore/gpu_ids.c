// SPDX-License-Identifier: GPL-2.0-only
/* Finds out what a process cannot do after a restore because a GPU has another gpu_id now.
 *
 * The process knows a GPU by the id of its first machine (user id). RESTORE tells the driver the
 * user id of each present GPU (actual id), and most ioctls translate it. These do not
 * (kfd_chardev.c in the kernel):
 * - EXPORT_DMABUF takes the id in a handle for an actual id. It fails, or exports a BO of the GPU
 *   that has this id.
 * - mmap() of /dev/kfd takes the id in an offset for an actual id (up to Linux 7.2). CREATE_QUEUE
 *   returns the offset of doorbells with the user id. A mapping fails, or is that of the GPU that
 *   has this id. A process maps doorbells once, with its first queue. */
#include "restore/gpu_ids.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "criu/log.h"
#include "devices/extra_gpus.h"
#include "kernel/kfd.h"
#include "memory/gpu_files.h"

/* What the process will do with a GPU. */
struct use {
	bool needs_doorbells;
	bool shares;
};

/* The BOs of the virtual memory API have no address, and an imported BO has no other flags than
 * these. A runtime exports BOs of both kinds again. The image does not name exported BOs. */
static bool is_shared(const KfdBoEntry *bo)
{
	return bo->alloc_flags & KFD_BO_WITH_CONTENTS &&
	       (!bo->addr || kfd_bo_looks_imported(bo->alloc_flags));
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
static int check_taken(const struct restored_task *task, const struct topology_node *saved,
		       struct use use, bool force)
{
	uint32_t id = saved->gpu_id, now = gpu_files_local(task, saved)->gpu_id;
	const char *harm = use.shares ? "an export of its shared memory" : "its first queue";

	if (!use.shares && !use.needs_doorbells) {
		log_warn(
			"kfd %d: GPU 0x%04x is now 0x%04x, and another GPU is 0x%04x: an export of memory (IPC, RCCL, virtual memory API) fails or reaches that GPU",
			task->kfd_id, id, now, id);
		return 0;
	}
	return log_refusal(
		force, -EINVAL,
		"kfd %d: GPU 0x%04x is now 0x%04x, and another GPU is 0x%04x: %s can reach that GPU; restore on GPU 0x%04x, hide it with the device cgroup, or use other GPUs",
		task->kfd_id, id, now, id, harm, id);
}

static int check_gpu(const struct restored_task *task, const struct topology_node *saved,
		     enum gpu_ids_mmap mmap_ids, bool force)
{
	uint32_t id = saved->gpu_id, now = gpu_files_local(task, saved)->gpu_id;
	const struct topology_node *other = topology_find_gpu(&task->local, id);
	struct use use = find_use(task->kfd, id);
	/* The driver finds no GPU for this process by the id of a hidden one. */
	bool taken = other && !extra_gpus_is_hidden(task, other);

	/* What happens to doorbells depends on the kernel, and to shared memory it does not. */
	if (id == now || (mmap_ids == MMAP_UNASKED && (!taken || !use.shares)))
		return 0;
	use.needs_doorbells &= mmap_ids != MMAP_USER_IDS;
	if (taken)
		return check_taken(task, saved, use, force);
	log_warn(
		"kfd %d: GPU 0x%04x is now 0x%04x: exports of its memory (IPC, RCCL, virtual memory API)%s will fail",
		task->kfd_id, id, now, use.needs_doorbells ? ", and its first queue," : "");
	return 0;
}

/* Whether the driver knows a GPU with @id in mmap offsets: 1, 0 or -errno. */
static int can_map(int fd, uint32_t id)
{
	uint64_t doorbells = (uint64_t)KFD_MMAP_DOORBELL << KFD_MMAP_TYPE_SHIFT;
	size_t size = (size_t)sysconf(_SC_PAGESIZE);
	void *memory = mmap(NULL, size, PROT_NONE, MAP_SHARED, fd,
			    (off_t)kfd_mmap_offset_of(doorbells, id));

	if (memory != MAP_FAILED) {
		(void)munmap(memory, size);
		return 1;
	}
	/* The driver looks for the GPU before it compares the size. */
	return errno == EINVAL ? 1 : errno == ENODEV ? 0 : -errno;
}

int gpu_ids_probe(int fd, const struct kfd_state *state, enum gpu_ids_mmap *ret_mmap)
{
	bool changed = false;

	for (uint32_t i = 0; i < state->num_devices; i++) {
		const struct kfd_device_bucket *device = &state->devices[i];
		int known;

		changed |= device->user_gpu_id != device->actual_gpu_id;
		if (kfd_state_find_device(state, device->actual_gpu_id))
			continue;
		known = can_map(fd, device->actual_gpu_id);
		if (known < 0)
			return known;
		*ret_mmap = known ? MMAP_ACTUAL_IDS : MMAP_USER_IDS;
		return 0;
	}
	*ret_mmap = changed ? MMAP_UNKNOWN : MMAP_SAME_IDS;
	return 0;
}

static bool exchanges_ids(const struct restored_task *task)
{
	/* The driver would tell if it had one GPU more. */
	bool exchanged = !task->hides_others, changed = false;

	for (size_t i = 0; i < task->saved.num_nodes; i++) {
		const struct topology_node *saved = &task->saved.nodes[i];
		uint32_t now;

		if (!saved->gpu_id)
			continue;
		now = gpu_files_local(task, saved)->gpu_id;
		changed |= saved->gpu_id != now;
		exchanged &= topology_find_gpu(&task->saved, now) != NULL;
	}
	return changed && exchanged;
}

int gpu_ids_check(const struct restored_task *task, enum gpu_ids_mmap mmap_ids, bool force)
{
	bool unknown = mmap_ids == MMAP_UNASKED ? exchanges_ids(task) : mmap_ids == MMAP_UNKNOWN;
	int ret = 0;

	if (unknown)
		ret = log_refusal(
			force, -EINVAL,
			"kfd %d: its GPUs exchange their gpu_ids, so the plugin cannot find out whether this kernel maps doorbells by the old or by the new id (AMDGPU_FORCE=1 assumes Linux 7.2 or older); restore on GPUs with other ids",
			task->kfd_id);
	for (size_t i = 0; !ret && i < task->saved.num_nodes; i++) {
		if (task->saved.nodes[i].gpu_id)
			ret = check_gpu(task, &task->saved.nodes[i], mmap_ids, force);
	}
	return ret;
}
