// SPDX-License-Identifier: GPL-2.0-only
/* Restores the open dma-bufs of a task. memory/restore_shared.h has the table through which the
 * task finds the BO of another one. */
#include "restore/restore_dmabuf.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "criu/host.h"
#include "criu/log.h"
#include "image/image_validate.h"
#include "memory/restore_shared.h"
#include "restore/restore.h"
#include "restore/task_image.h"
#include "session/restore_session.h"
#include "sharing/imports.h"

/* Two tasks may each have a dma-buf of the other's BO. Each publishes its own BOs before it waits
 * for the other. */
static int publish_own(struct restore_session *session, const CriuDmabufNode *image)
{
	struct restored_task *task = &session->task;
	CriuRenderNode names = CRIU_RENDER_NODE__INIT;
	int ret;

	/* In a stream the image names those of KFD state. */
	names.owners = image->owners;
	names.n_owners = image->n_owners;
	ret = task_image_read(session, &names);
	if (ret < 0 || task->rebuilt)
		return ret == -ENOENT ? 0 : ret;
	ret = restore_kfd(session, task->kfd_id, NULL);
	if (ret < 0)
		return ret;
	task->early_fd = ret;
	task->has_early_fd = true;
	return 0;
}

static int fetch(const struct restore_session *session, int id, const CriuDmabufNode *image)
{
	struct awaited_object awaited = {
		.number = image->object,
		.owner = (pid_t)image->owner_pid,
	};
	struct object object = { 0 };
	int ret;

	(void)snprintf(awaited.name, sizeof(awaited.name), "dma-buf %d", id);
	ret = imports_await(session, &awaited, &object);
	if (ret < 0)
		return ret;
	ret = host_fetch_fd(object.store_id);
	if (ret < 0)
		return log_error(ret, "dma-buf %d: cannot fetch it from process %u", id,
				 image->owner_pid);
	log_info("dma-buf %d: restored, of a BO of process %u", id, image->owner_pid);
	return ret;
}

int restore_dmabuf_open(struct restore_session *session, int id, const CriuDmabufNode *image)
{
	int ret = image_validate_dmabuf(id, image);

	session->task.vpid = getpid();
	if (!ret)
		ret = publish_own(session, image);
	if (!ret)
		ret = fetch(session, id, image);
	if (ret < 0)
		restore_shared_fail(session->shared, session->task.vpid);
	return ret;
}
