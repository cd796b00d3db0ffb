// SPDX-License-Identifier: GPL-2.0-only
/* Walks the private data from record to record, inside its bounds whatever it says. Contents of
 * records are the driver's business. */
#include "kernel/kfd_priv.h"

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

/* Nothing in the data tells the size of a BO's record, and it differs between drivers: the record
 * has room for the ids of all GPUs that the driver supports, and a driver may append fields. The
 * size follows from the rest of the data: the number of BOs is known, and behind their records the
 * objects fill the data to the last byte. Known drivers have room for 16 GPUs (Linux 6.1), for 64
 * (Linux 6.18), and for 64 with the state of a shared BO behind them (AMD's out-of-tree driver). */
static const uint64_t known_bo_sizes[] = { 80, 272, 296 };
/* Any other size is a multiple of 8, as a record begins with a 64-bit address. The smallest record
 * that can be has that address, a handle and the id of one GPU. The largest has room for the ids of
 * 1000 GPUs, and bounds the number of sizes to try. */
#define BO_SIZE_STEP 8
#define BO_SIZE_MIN  16
#define BO_SIZE_MAX  4096
#define NUM_KNOWN    ARRAY_SIZE(known_bo_sizes)
#define NUM_SIZES    (NUM_KNOWN + (BO_SIZE_MAX - BO_SIZE_MIN) / BO_SIZE_STEP + 1)

/* Objects that one search passes, all sizes together: a driver's data takes a small part of it, and
 * damaged data must not take minutes. */
#define SEARCH_OBJECTS (1u << 24)

enum object_type {
	OBJECT_QUEUE,
	OBJECT_EVENT,
	OBJECT_SVM,
};

struct walk {
	const struct kfd_priv *priv;
	uint64_t at;
	bool svm;
	/* Room for the queues that the walk passes, or NULL. */
	struct kfd_priv_queue *queues;
	size_t num_queues;
};

/* A search for the sizes of BO records with which objects fill the data. */
struct search {
	const struct kfd_priv *priv;
	/* The next size to try, by its number, and the first not to try any more. */
	size_t next, end;
	uint32_t objects_left;
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

/* A queue has a GPU and an MQD. Zeros, of which data are full, are no queue. */
static bool is_queue(const struct walk *walk)
{
	return left(walk) >= QUEUE_SIZE && number_at(walk, QUEUE_GPU_ID) &&
	       number_at(walk, QUEUE_MQD_SIZE);
}

static bool pass_queue(struct walk *walk)
{
	if (!is_queue(walk))
		return false;
	if (walk->queues)
		walk->queues[walk->num_queues++] = (struct kfd_priv_queue){
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

static uint64_t devices_end(const struct kfd_priv *priv)
{
	return PROCESS_SIZE + (uint64_t)DEVICE_SIZE * priv->num_devices;
}

/* Whether objects fill the data to the last byte if BOs have records of @bo_size. */
static bool fits(struct search *search, uint64_t bo_size, struct walk *walk)
{
	const struct kfd_priv *priv = walk->priv;

	if (!pass(walk, devices_end(priv)) || !pass(walk, bo_size * priv->num_bos))
		return false;
	for (uint32_t i = 0; i < priv->num_objects; i++) {
		if (!search->objects_left || !pass_object(walk))
			return false;
		search->objects_left--;
	}
	return !left(walk);
}

static uint64_t bo_size_at(size_t number)
{
	return number < NUM_KNOWN ? known_bo_sizes[number]
				  : BO_SIZE_MIN + BO_SIZE_STEP * (number - NUM_KNOWN);
}

/* The next size that fits. Its queues go to @queues, unless that is NULL. */
static bool find_next(struct search *search, struct kfd_priv_queue *queues, struct walk *ret_walk)
{
	while (search->next < search->end) {
		struct walk walk = { .priv = search->priv, .queues = queues };

		if (fits(search, bo_size_at(search->next++), &walk)) {
			*ret_walk = walk;
			return true;
		}
	}
	return false;
}

static struct search search_sizes(const struct kfd_priv *priv, size_t first, size_t end)
{
	return (struct search){
		.priv = priv,
		.next = first,
		/* Without BOs, all sizes are the same. */
		.end = priv->num_bos ? end : first + 1,
		.objects_left = SEARCH_OBJECTS,
	};
}

int kfd_priv_has_svm(const struct kfd_priv *priv, bool *ret_has_svm)
{
	struct search search = search_sizes(priv, 0, NUM_SIZES);
	bool known = false, has_svm = false;
	struct walk walk;

	while (!has_svm && find_next(&search, NULL, &walk)) {
		known = true;
		has_svm = walk.svm;
	}
	/* A search that was cut short may have missed SVM ranges. */
	if (!known || (!has_svm && !search.objects_left))
		return -EINVAL;
	*ret_has_svm = has_svm;
	return 0;
}

/* The queues that all fitting sizes agree on. @queues has room for two lists of @max.
 * -ENOENT: none fits. */
static int agree_on_queues(struct search *search, struct kfd_priv_queue *queues, size_t max,
			   size_t *ret_num_queues)
{
	struct walk first, other;

	if (!find_next(search, queues, &first))
		return search->objects_left ? -ENOENT : -EINVAL;
	while (find_next(search, queues + max, &other)) {
		if (other.num_queues != first.num_queues ||
		    memcmp(other.queues, first.queues, first.num_queues * sizeof(*queues)) != 0)
			return -EINVAL;
	}
	if (!search->objects_left)
		return -EINVAL;
	*ret_num_queues = first.num_queues;
	return 0;
}

int kfd_priv_list_queues(const struct kfd_priv *priv, struct kfd_priv_queue **ret_queues,
			 size_t *ret_num_queues)
{
	size_t max = priv->size / QUEUE_SIZE + 1;
	struct search known = search_sizes(priv, 0, NUM_KNOWN);
	struct search unknown = search_sizes(priv, NUM_KNOWN, NUM_SIZES);
	struct kfd_priv_queue *queues;
	uint32_t version;
	int ret;

	if (priv->size < PROCESS_SIZE)
		return -EINVAL;
	memcpy(&version, priv->bytes, sizeof(version));
	if (version != VERSION)
		return -EINVAL;
	queues = calloc(max, 2 * sizeof(*queues));
	if (!queues)
		return -ENOMEM;
	ret = agree_on_queues(&known, queues, max, ret_num_queues);
	if (ret == -ENOENT)
		ret = agree_on_queues(&unknown, queues, max, ret_num_queues);
	if (ret < 0) {
		free(queues);
		return -EINVAL;
	}
	*ret_queues = queues;
	return 0;
}

size_t kfd_priv_size_with(const struct kfd_priv *priv, uint32_t num_more)
{
	return priv->size + (size_t)DEVICE_SIZE * num_more;
}

void kfd_priv_copy_with(const struct kfd_priv *priv, uint32_t num_more, uint8_t *to)
{
	size_t before = (size_t)devices_end(priv), more = (size_t)DEVICE_SIZE * num_more;

	if (before > priv->size)
		before = priv->size;
	memcpy(to, priv->bytes, before);
	/* The record of a device is reserved, and zero. */
	memset(to + before, 0, more);
	memcpy(to + before + more, priv->bytes + before, priv->size - before);
}
