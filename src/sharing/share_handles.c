// SPDX-License-Identifier: GPL-2.0-only
/* Asks the driver for the share handles of an image before RESTORE uses them. imports.c compares
 * the shared BOs of the restored tasks with each other afterwards. */
#include "sharing/share_handles.h"

#include <errno.h>
#include <inttypes.h>
#include <time.h>

#include "amdgpu_plugin_util.h"
#include "criu/log.h"
#include "image/image_priv.h"
#include "kernel/kfd.h"
#include "kernel/kfd_priv.h"
#include "memory/gpu_files.h"
#include "memory/restore_shared.h"

/* The driver logs a line for each question, so waits get longer. They are counted, because CRIU may
 * change the task's clock. */
#define WAIT_SECONDS 10
static const long waits_ms[] = { 100, 200, 400, 1000, 2000, 2000, 2000, 2300 };

struct waiter {
	struct restore_session *session;
	int fd;
	/* A GPU of the task. */
	uint32_t gpu_id;
	/* Waits so far, for all handles. */
	size_t waits;
};

static int give_up(const struct restore_session *session, const KfdBoEntry *bo)
{
	const int id = session->task.kfd_id;

	if (!session->options->force)
		return log_error(
			-EBUSY,
			"kfd %d: BO at 0x%" PRIx64
			": a process that is not restored has a BO with its share handle (the job that was dumped, another copy of it, or an importer outside the dump), and the driver would give it to the task; end the process; AMDGPU_FORCE=1 gives the restored BO a new handle",
			id, bo->addr);
	log_warn(
		"kfd %d: BO at 0x%" PRIx64
		": gets a new share handle, because a process that is not restored has a BO with the old one, which programs cannot open any more",
		id, bo->addr);
	return 0;
}

static void wait_once(struct waiter *waiter)
{
	const long ms = waits_ms[waiter->waits];

	if (!waiter->waits++)
		log_info(
			"kfd %d: waiting up to %d s for processes that have ended, because share handles are in use",
			waiter->session->task.kfd_id, WAIT_SECONDS);
	(void)nanosleep(&(const struct timespec){ ms / 1000, ms % 1000 * 1000000 }, NULL);
}

/* Whether the restored BO keeps its handle or gets a new one. A task that shares the BO may have
 * run RESTORE, so that the handle is in use. It has decided before. */
static int decide_handle_name(struct waiter *waiter, const KfdBoEntry *bo, const uint32_t *handle,
			      enum object_name *ret_name)
{
	struct restore_session *session = waiter->session;
	const uint32_t object = bo->by_share_handle ? bo->object : 0;
	int ret = kfd_memory_has_share_handle(waiter->fd, waiter->gpu_id, handle);

	while (ret > 0) {
		*ret_name = restore_shared_name(session->shared, object, NAME_OPEN);
		if (*ret_name != NAME_OPEN)
			return 0;
		if (waiter->waits == ARRAY_SIZE(waits_ms)) {
			ret = give_up(session, bo);
			*ret_name = restore_shared_name(session->shared, object,
							ret < 0 ? NAME_OPEN : NAME_FRESH);
			return ret;
		}
		wait_once(waiter);
		ret = kfd_memory_has_share_handle(waiter->fd, waiter->gpu_id, handle);
	}
	if (ret < 0)
		return log_error(ret, "kfd %d: cannot ask for share handles", session->task.kfd_id);
	*ret_name = restore_shared_name(session->shared, object, NAME_SAVED);
	return 0;
}

/* Before RESTORE the driver knows a GPU by its actual id. */
static uint32_t first_gpu_id(const struct restored_task *task)
{
	const struct topology_node *saved = task->saved.nodes;

	while (!saved->gpu_id)
		saved++;
	return gpu_files_local(task, saved)->gpu_id;
}

int share_handles_await(struct restore_session *session, int fd)
{
	const CriuKfd *kfd = session->task.kfd;
	const struct kfd_priv priv = image_priv_in(kfd, &session->task.layout);
	struct waiter waiter = { session, fd, first_gpu_id(&session->task), 0 };
	struct kfd_priv_bo_record record;
	enum object_name name = NAME_OPEN;
	int ret = 0;

	for (uint32_t i = 0; !ret && i < priv.num_bos; i++) {
		/* RESTORE refuses records that cannot be read. */
		if (kfd_priv_read_bo(&priv, i, &record) < 0 ||
		    !kfd_priv_has_share_handle(&record.ipc))
			continue;
		ret = decide_handle_name(&waiter, kfd->bo_entries[i], record.ipc.handle, &name);
		if (ret < 0 || name != NAME_FRESH)
			continue;
		restore_shared_rename(session->shared, record.ipc.handle);
		kfd_priv_write_share_handle(&priv, i, record.ipc.handle, kfd->priv_data.data);
	}
	return ret;
}
