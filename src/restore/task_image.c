// SPDX-License-Identifier: GPL-2.0-only
/* Finds the image of a task's KFD state, checks it, and maps its GPUs to those of this machine.
 * restore.c rebuilds the state. */
#include "restore/task_image.h"

#include <errno.h>
#include <unistd.h>

#include "amdgpu_plugin_topology.h"
#include "criu/host.h"
#include "criu/log.h"
#include "image/image.h"
#include "kernel/render_node.h"
#include "restore/extra_gpus.h"
#include "restore/mappings.h"

void task_image_forget(struct restored_task *task)
{
	map_done(&task->map);
	topology_done(&task->saved);
	topology_done(&task->local);
	if (task->kfd)
		criu_kfd__free_unpacked(task->kfd, NULL);
	task->kfd = NULL;
}

struct kfd_priv task_image_priv(const struct restored_task *task)
{
	return (struct kfd_priv){
		.bytes = task->kfd->priv_data.data,
		.size = task->kfd->priv_data.len,
		.num_devices = task->kfd->num_of_gpus,
		.num_bos = (uint32_t)task->kfd->n_bo_entries,
		.num_objects = task->kfd->num_of_objects,
	};
}

static int read_topologies(struct restored_task *task)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < task->kfd->n_device_entries; i++)
		ret = device_entry_read(task->kfd->device_entries[i], &task->saved);
	if (ret < 0)
		return log_error(ret, "kfd %d: cannot read the saved topology", task->kfd_id);
	ret = topology_read(TOPOLOGY_SYSFS, &task->local);
	if (ret < 0)
		return log_error(ret, "kfd %d: cannot read %s", task->kfd_id, TOPOLOGY_SYSFS);
	map_note_unreachable(&task->local, render_node_open);
	return 0;
}

static int map_task(const struct restore_session *session, struct restored_task *task)
{
	const struct kfd_priv priv = task_image_priv(task);
	int ret;

	ret = map_decide(&task->saved, &task->local, &session->options->map, &task->map);
	if (!ret)
		ret = map_explain(&task->map);
	if (!ret)
		ret = extra_gpus_check(task->kfd_id, &task->map, &task->local, &priv);
	if (ret < 0)
		map_done(&task->map);
	return ret;
}

int task_image_prepare(struct restore_session *session)
{
	struct restored_task *task = &session->task;
	int ret;

	if (task->prepared)
		return 0;
	task->mappings->num_pending =
		task->kfd->has_num_of_mappings ? (int64_t)task->kfd->num_of_mappings : -1;
	task->mappings->host_copies = host_copies_mapping_fd();
	ret = image_validate_kfd(task->kfd_id, task->kfd);
	if (!ret)
		ret = read_topologies(task);
	if (!ret)
		ret = map_task(session, task);
	task->prepared = !ret;
	if (ret < 0)
		task_image_forget(task);
	return ret;
}

const KfdOwner *restore_find_owner(const struct restored_task *task, const CriuRenderNode *render)
{
	for (size_t i = 0; i < render->n_owners; i++) {
		if ((pid_t)render->owners[i]->pid == task->vpid)
			return render->owners[i];
	}
	return NULL;
}

/* A stream has each image once, so the task keeps the image until CRIU restores its /dev/kfd. */
static int find_in_stream(struct restored_task *task, const CriuRenderNode *render)
{
	const KfdOwner *owner = restore_find_owner(task, render);
	int ret;

	/* An older version of the plugin has written the image. The file is the task's compute
	 * file, so it must be the one that RESTORE gets. */
	if (!owner && render->has_compute_pid && (pid_t)render->compute_pid == task->vpid)
		return log_error(-EINVAL,
				 "render node %u: the image does not say which one has the state of"
				 " process %d, and a stream cannot be searched for it",
				 render->id, task->vpid);
	if (!owner)
		return -ENOENT;
	ret = image_read_kfd((int)owner->kfd_id, &task->kfd);
	if (ret == -ENOENT)
		return log_error(-ENODATA,
				 "kfd %u: the image of process %d is missing, or another process"
				 " has read it",
				 owner->kfd_id, task->vpid);
	task->kfd_id = (int)owner->kfd_id;
	return ret;
}

static int find_in_files(struct restored_task *task)
{
	int ret = task->has_none ? -ENOENT
				 : image_dir_find_kfd(task->vpid, &task->kfd_id, &task->kfd);

	task->has_none = ret == -ENOENT;
	return ret;
}

static int find_image(struct restored_task *task, const CriuRenderNode *render)
{
	if (task->kfd)
		return 0;
	return image_is_streamed() ? find_in_stream(task, render) : find_in_files(task);
}

int restore_prepare(struct restore_session *session, const CriuRenderNode *render)
{
	struct restored_task *task = &session->task;
	int ret;

	task->vpid = getpid();
	ret = find_image(task, render);
	if (ret < 0)
		return ret;
	ret = task_image_prepare(session);
	/* -ENOENT would mean that the task has no KFD state. */
	return ret == -ENOENT ? -ENODEV : ret;
}
