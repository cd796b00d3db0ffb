// SPDX-License-Identifier: GPL-2.0-only
/* Looks at the queues of a task's image before the driver gets them. kfd_queue.c reads their
 * hardware state. */
#include "restore/queue_check.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include "amdgpu_plugin_topology.h"
#include "amdgpu_plugin_util.h"
#include "criu/log.h"
#include "image/image.h"
#include "image/image_priv.h"
#include "kernel/kfd_priv.h"
#include "kernel/kfd_queue.h"
#include "memory/gpu_files.h"
#include "session/restore_session.h"

/* Each queue of a copy engine needs the number of its partition: see kfd_queue_changes_partition().
 */
static int add_copy_queue(const CriuKfd *kfd, const struct kfd_priv_queue *queue,
			  struct map_tree *tree)
{
	const KfdDeviceEntry *device = image_find_device(kfd, queue->gpu_id);

	return device && queue->type != KFD_PRIV_QUEUE_COMPUTE
		       ? map_tree_add_copy_node(tree, device->node_id)
		       : 0;
}

int queue_check_add_image(const CriuKfd *kfd, struct map_tree *tree)
{
	const struct kfd_priv priv = image_priv_of(kfd);
	_cleanup_free_ struct kfd_priv_queue *queues = NULL;
	size_t num_queues = 0;
	int ret = map_tree_add_kfd(tree, kfd);

	if (ret < 0)
		return ret;
	ret = kfd_priv_list_queues(&priv, &queues, &num_queues);
	/* queue_check_task() checks data that it cannot read. */
	if (ret < 0)
		return ret == -ENOMEM ? ret : 0;
	for (size_t i = 0; !ret && i < num_queues; i++)
		ret = add_copy_queue(kfd, &queues[i], tree);
	return ret;
}

struct check {
	struct restored_task *task;
	struct kfd_priv priv;
	uint32_t kfd_minor;
	bool force;
};

/* The driver would copy the control stack behind memory that has no room for one
 * (allocate_mqd() in kfd_mqd_manager_v9.c). */
static bool cannot_keep_waves(const struct kfd_queue *queue)
{
	return queue->saved->type == KFD_PRIV_QUEUE_COMPUTE && !kfd_queue_driver_saves_waves();
}

static const struct rule {
	bool (*is_broken)(const struct kfd_queue *queue);
	const char *what;
	bool can_be_forced;
	bool asks_driver;
} rules[] = {
	{ kfd_queue_has_odd_size,
	  "has hardware state of a size that no driver saves; use another image", false, false },
	{ kfd_queue_has_kernel_rights,
	  "has the rights of the kernel in its saved state, which no driver gives to a process; use another image",
	  false, false },
	{ kfd_queue_exceeds_stack, "has a larger control stack than this GPU; use another image",
	  false, false },
	{ cannot_keep_waves,
	  "needs a driver that saves running waves; load amdgpu with cwsr_enable=1", false, true },
	{ kfd_queue_reads_beyond,
	  "was saved with fewer XCCs than this GPU has, and this kernel would read the others from foreign memory of its own; dump the job again under a kernel that saves all XCCs (Linux 6.18 or newer)",
	  false, true },
	{ kfd_queue_exceeds_xccs,
	  "was saved with all XCCs, and this kernel restores one XCC, so it would hang; restore under a kernel that restores all XCCs (Linux 6.18 or newer)",
	  false, true },
	{ kfd_queue_lacks_xccs,
	  "was saved with fewer XCCs than this GPU has, so it would hang; dump the job again under a kernel that saves all XCCs (Linux 6.18 or newer)",
	  true, false },
	{ kfd_queue_may_overrun,
	  "would be on a partition of a GPU, where the kernel may write over its own memory (Linux 6.18 to 7.2, AMD's out-of-tree drivers before 7.1); use mode SPX, or a kernel with the change \"use node XCC count for v9 CRIU control stack restore\" (Linux 7.3, AMD's out-of-tree driver 7.1)",
	  true, true },
	{ kfd_queue_changes_partition,
	  "of a copy engine would be on a partition with another number than at the dump, where its doorbell is another; give the task a partition with the number of the dump",
	  true, false },
	{ kfd_queue_loses_waves,
	  "was saved without its control stack, so its running waves are lost; dump the job again under another kernel than Linux 7.2 and 7.3, and AMD's out-of-tree driver 7.1",
	  true, false },
};

static int refuse_queue(const struct check *check, const struct kfd_queue *queue,
			const struct rule *rule)
{
	const struct kfd_priv_queue *saved = queue->saved;

	if (rule->can_be_forced)
		return log_refusal(
			check->force, -EOPNOTSUPP, "kfd %d: queue %u of type %u on GPU 0x%04x %s",
			check->task->kfd_id, saved->id, saved->type, saved->gpu_id, rule->what);
	return log_error(-EOPNOTSUPP, "kfd %d: queue %u of type %u on GPU 0x%04x %s",
			 check->task->kfd_id, saved->id, saved->type, saved->gpu_id, rule->what);
}

/* Images of other programs have what the driver of the dump has saved. */
static int repair(struct check *check, const struct kfd_queue *queue)
{
	ProtobufCBinaryData *data = &check->task->kfd->priv_data;
	uint8_t *bytes = NULL;
	size_t size = 0;
	int ret = kfd_queue_repair(queue, &bytes, &size);

	if (ret < 0)
		return log_error(
			ret,
			"kfd %d: cannot give the state of queue %u the form that the driver takes",
			check->task->kfd_id, queue->saved->id);
	if (!ret)
		return 0;
	free(data->data);
	data->data = bytes;
	data->len = size;
	check->priv = image_priv_in(check->task->kfd, &check->task->layout);
	return 0;
}

static int check_queue(struct check *check, const struct kfd_priv_queue *saved)
{
	const struct topology_node *gpu = topology_find_gpu(&check->task->saved, saved->gpu_id);
	struct kfd_queue queue = { .priv = &check->priv,
				   .saved = saved,
				   .topology = &check->task->local,
				   .kfd_minor = check->kfd_minor,
				   .saved_gpu = gpu };
	int ret = 0;

	if (!gpu)
		return log_error(-EINVAL,
				 "kfd %d: queue %u is on GPU 0x%04x, which the image lacks",
				 check->task->kfd_id, saved->id, saved->gpu_id);
	queue.gpu = gpu_files_local(check->task, gpu);
	for (size_t i = 0; !ret && i < ARRAY_SIZE(rules); i++) {
		if (rules[i].asks_driver && !check->kfd_minor)
			continue;
		if (rules[i].is_broken(&queue))
			ret = refuse_queue(check, &queue, &rules[i]);
	}
	return ret < 0 ? ret : repair(check, &queue);
}

/* The driver may read queues where the plugin cannot, and would copy their hardware state. */
static int refuse_layout(const struct check *check)
{
	const struct kfd_priv *priv = &check->priv;

	return log_refusal(
		check->force, -EOPNOTSUPP,
		"kfd %d: its private data (%zu bytes for %u GPUs, %u BOs and %u objects) have a layout that this plugin does not know, so it cannot check the queues in them; a newer plugin may know it",
		check->task->kfd_id, priv->size, priv->num_devices, priv->num_bos,
		priv->num_objects);
}

int queue_check_task(struct restored_task *task, uint32_t kfd_minor, bool force)
{
	struct check check = { .task = task,
			       .priv = image_priv_in(task->kfd, &task->layout),
			       .kfd_minor = kfd_minor,
			       .force = force };
	_cleanup_free_ struct kfd_priv_queue *queues = NULL;
	size_t num_queues = 0;
	int ret = kfd_priv_list_queues(&check.priv, &queues, &num_queues);

	if (ret == -EINVAL)
		return refuse_layout(&check);
	if (ret < 0)
		return log_error(ret, "kfd %d: cannot list its queues", task->kfd_id);
	/* From the last to the first: a repair moves what is behind the queue. */
	for (size_t i = num_queues; !ret && i-- > 0;)
		ret = check_queue(&check, &queues[i]);
	return ret;
}
