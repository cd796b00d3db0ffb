// SPDX-License-Identifier: GPL-2.0-only
/* Walks the private data from record to record, inside its bounds whatever it says. Contents of
 * records are the driver's business. */
#include "amdgpu_plugin_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "amdgpu_plugin_util.h"

#define VERSION        1
#define PROCESS_SIZE   8
#define DEVICE_SIZE    8
#define QUEUE_SIZE     120
#define QUEUE_GPU_ID   64
#define QUEUE_TYPE     68
#define QUEUE_ID       76
#define QUEUE_CWSR     104
#define QUEUE_CTL_SIZE 108
#define QUEUE_MQD_SIZE 112
#define EVENT_SIZE     64
#define SVM_SIZE       24
/* SVM ranges have four attributes and one a device. */
#define SVM_ATTRIBUTES 4
#define ATTRIBUTE_SIZE 8

/* Of a BO's record: kernels up to 6.x can list 16 GPUs in it, later ones 64. */
static const size_t bo_sizes[] = { 80, 272 };

enum object_type {
	OBJECT_QUEUE,
	OBJECT_EVENT,
	OBJECT_SVM,
};

struct walk {
	const struct priv_data *priv;
	uint64_t at;
	bool svm;
	/* Room for those that have been met; NULL: nobody wants them. */
	struct priv_queue *queues;
	size_t num_queues;
};

static uint64_t left(const struct walk *walk)
{
	return walk->priv->size - walk->at;
}

static uint32_t number_at(const struct walk *walk, uint64_t offset)
{
	uint32_t number;

	memcpy(&number, walk->priv->bytes + walk->at + offset, sizeof(number));
	return number;
}

static bool pass(struct walk *walk, uint64_t size)
{
	if (size > left(walk))
		return false;
	walk->at += size;
	return true;
}

static bool pass_queue(struct walk *walk)
{
	if (left(walk) < QUEUE_SIZE)
		return false;
	if (walk->queues)
		walk->queues[walk->num_queues++] = (struct priv_queue){
			.gpu_id = number_at(walk, QUEUE_GPU_ID),
			.type = number_at(walk, QUEUE_TYPE),
			.id = number_at(walk, QUEUE_ID),
			.cwsr_size = number_at(walk, QUEUE_CWSR),
			.mqd_size = number_at(walk, QUEUE_MQD_SIZE),
		};
	return pass(walk, (uint64_t)QUEUE_SIZE + number_at(walk, QUEUE_CTL_SIZE) +
				  number_at(walk, QUEUE_MQD_SIZE));
}

static bool pass_object(struct walk *walk)
{
	if (left(walk) < sizeof(uint32_t))
		return false;
	switch (number_at(walk, 0)) {
	case OBJECT_QUEUE:
		return pass_queue(walk);
	case OBJECT_EVENT:
		return pass(walk, EVENT_SIZE);
	case OBJECT_SVM:
		walk->svm = true;
		return pass(walk, SVM_SIZE + (uint64_t)ATTRIBUTE_SIZE *
						     (SVM_ATTRIBUTES +
						      (uint64_t)walk->priv->num_devices));
	default:
		return false;
	}
}

static uint64_t devices_end(const struct priv_data *priv)
{
	return PROCESS_SIZE + (uint64_t)DEVICE_SIZE * priv->num_devices;
}

/* Whether objects fill the data to the last byte if BOs have records of @bo_size. */
static bool fits(struct walk *walk, uint64_t bo_size)
{
	const struct priv_data *priv = walk->priv;

	if (!pass(walk, devices_end(priv)) || !pass(walk, bo_size * priv->num_bos))
		return false;
	for (uint32_t i = 0; i < priv->num_objects; i++) {
		if (!pass_object(walk))
			return false;
	}
	return !left(walk);
}

int priv_has_svm(const struct priv_data *priv, bool *ret_has_svm)
{
	bool known = false, has_svm = false;

	for (size_t i = 0; i < ARRAY_SIZE(bo_sizes); i++) {
		struct walk walk = { .priv = priv };

		if (!fits(&walk, bo_sizes[i]))
			continue;
		known = true;
		has_svm |= walk.svm;
	}
	if (!known)
		return -EINVAL;
	*ret_has_svm = has_svm;
	return 0;
}

int priv_list_queues(const struct priv_data *priv, struct priv_queue **ret_queues,
		     size_t *ret_num_queues)
{
	struct priv_queue *queues;
	uint32_t version;

	if (priv->size < PROCESS_SIZE)
		return -EINVAL;
	memcpy(&version, priv->bytes, sizeof(version));
	if (version != VERSION)
		return -EINVAL;
	queues = calloc(priv->size / QUEUE_SIZE + 1, sizeof(*queues));
	if (!queues)
		return -ENOMEM;
	for (size_t i = 0; i < ARRAY_SIZE(bo_sizes); i++) {
		struct walk walk = { .priv = priv, .queues = queues };

		if (!fits(&walk, bo_sizes[i]))
			continue;
		*ret_queues = queues;
		*ret_num_queues = walk.num_queues;
		return 0;
	}
	free(queues);
	return -EINVAL;
}

size_t priv_size_with(const struct priv_data *priv, uint32_t num_more)
{
	return priv->size + (size_t)DEVICE_SIZE * num_more;
}

void priv_copy_with(const struct priv_data *priv, uint32_t num_more, uint8_t *to)
{
	size_t before = (size_t)devices_end(priv), more = (size_t)DEVICE_SIZE * num_more;

	if (before > priv->size)
		before = priv->size;
	memcpy(to, priv->bytes, before);
	/* The record of a device is reserved, and zero. */
	memset(to + before, 0, more);
	memcpy(to + before + more, priv->bytes + before, priv->size - before);
}
