// SPDX-License-Identifier: GPL-2.0-only
/* Fuzzes the private data of KFD: counts of devices, BOs and objects, extra devices,
 * and the bytes. */
#include "fuzz.h"

#include <string.h>

#include "kernel/kfd_priv.h"
#include "kernel/kfd_queue.h"

/* The copy has the added records, and all bytes of the original. */
static void check_copy(const struct kfd_priv *priv, uint32_t num_more)
{
	size_t size = kfd_priv_size_with(priv, num_more);
	uint8_t *copy = malloc(size ? size : 1);
	size_t added = size - priv->size, at = 0;

	promise(copy && added == (size_t)num_more * 8);
	kfd_priv_copy_with(priv, num_more, copy);
	while (at < priv->size && copy[at] == priv->bytes[at])
		at++;
	promise(priv->size == 0 ||
		!memcmp(copy + size - (priv->size - at), priv->bytes + at, priv->size - at));
	free(copy);
}

/* Its record has the sizes of what follows, and needs no repair. */
static void check_repaired(const struct kfd_queue *queue, const uint8_t *bytes, size_t size)
{
	struct kfd_priv priv = *queue->priv;
	struct kfd_priv_queue saved = *queue->saved;
	struct kfd_queue repaired = *queue;
	uint8_t *more;

	priv.bytes = bytes;
	priv.size = size;
	memcpy(&saved.ctl_stack_size, bytes + saved.offset + 108, sizeof(saved.ctl_stack_size));
	memcpy(&saved.mqd_size, bytes + saved.offset + 112, sizeof(saved.mqd_size));
	saved.size = saved.size - queue->saved->mqd_size - queue->saved->ctl_stack_size +
		     saved.mqd_size + saved.ctl_stack_size;
	promise(size == queue->priv->size - queue->saved->size + saved.size);
	repaired.priv = &priv;
	repaired.saved = &saved;
	promise(!kfd_queue_repair(&repaired, &more, &size));
}

/* As if the driver of an MI300 had saved the queue. */
static void check_queue(const struct kfd_priv *priv, const struct kfd_priv_queue *saved)
{
	const struct topology_node gpu = { .gpu_id = 1,
					   .gfx_target_version = TOPOLOGY_GFX940,
					   .num_xcc = 8,
					   .ctl_stack_size = 12288 };
	const struct kfd_queue queue = {
		.priv = priv, .saved = saved, .gpu = &gpu, .kfd_minor = 18
	};
	uint8_t *bytes;
	size_t size;

	promise(saved->offset <= priv->size && saved->size <= priv->size - saved->offset);
	(void)kfd_queue_has_kernel_rights(&queue);
	(void)kfd_queue_exceeds_stack(&queue);
	(void)kfd_queue_lacks_xccs(&queue);
	(void)kfd_queue_loses_waves(&queue);
	if (kfd_queue_repair(&queue, &bytes, &size) <= 0)
		return;
	check_repaired(&queue, bytes, size);
	free(bytes);
}

static void check_queue_list(const struct kfd_priv *priv)
{
	struct kfd_priv_queue *queues;
	size_t num_queues;
	int ret = kfd_priv_list_queues(priv, &queues, &num_queues);

	promise(!ret || ret == -EINVAL || ret == -ENOTUNIQ);
	if (ret < 0)
		return;
	promise(num_queues <= priv->num_objects);
	for (size_t i = 0; i < num_queues; i++) {
		promise(queues[i].gpu_id && queues[i].mqd_size <= priv->size);
		check_queue(priv, &queues[i]);
	}
	free(queues);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct fuzz_input input = { bytes, size };
	struct kfd_priv priv = {
		.num_devices = (uint32_t)fuzz_take_number(&input, 4),
		.num_bos = (uint32_t)fuzz_take_number(&input, 4),
		.num_objects = (uint32_t)fuzz_take_number(&input, 4),
	};
	uint32_t num_more = (uint32_t)fuzz_take_number(&input, 1);
	priv.bytes = fuzz_take_bytes(&input, input.size, &priv.size);
	if (!priv.size)
		return 0;
	priv.layout = kfd_priv_parse(&priv);
	promise(!priv.layout.is_known || !priv.layout.is_ambiguous);
	check_queue_list(&priv);
	check_copy(&priv, num_more);
	return 0;
}
