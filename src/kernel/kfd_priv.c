// SPDX-License-Identifier: GPL-2.0-only
/* Walks through the records of the private data, and never leaves its bounds. */
#include "kernel/kfd_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "amdgpu_plugin_util.h"

#define VERSION 1
/* Bit of the version word in data that only a reader which knows shared BOs may use. */
#define MARK           (1u << 31)
#define PROCESS_SIZE   8
#define DEVICE_SIZE    8
#define QUEUE_SIZE     120
#define QUEUE_RING     8
#define QUEUE_RPTR     24
#define QUEUE_WPTR     32
#define QUEUE_EOP      48
#define QUEUE_AREA     56
#define QUEUE_GPU_ID   64
#define QUEUE_TYPE     68
#define QUEUE_ID       76
#define QUEUE_GWS      92
#define QUEUE_CWSR     104
#define QUEUE_CTL_SIZE 108
#define QUEUE_MQD_SIZE 112
#define BO_USER_ADDR   0
#define BO_HANDLE      8
#define BO_GPU_IDS     12
/* Offsets from the end of the record. */
#define BO_IMPORTED 28
#define BO_SHARE    20
#define EVENT_SIZE  64
#define EVENT_PAGE  8
#define EVENT_ID    16
#define EVENT_TYPE  24
#define SVM_START   8
#define SVM_PAGES   16
#define SVM_SIZE    24
/* An SVM range has four attributes, and one for each device. */
#define SVM_ATTRIBUTES 4
#define ATTRIBUTE_SIZE 8

/* The data does not contain the size of a BO record, and the size differs between drivers: a record
 * has room for the ids of all GPUs that the driver supports, and a driver may append fields. The
 * plugin derives the size: the number of BOs is known, and the objects after the BO records fill
 * the data to the last byte. Linux 6.1 has room for 16 GPUs, Linux 6.18 for 64. AMD's out-of-tree
 * driver appends the fields of legacy IPC (kfd_criu_bo_priv_data in kfd_priv.h): is_imported,
 * ipc_flags, and the share handle. Its releases 6.7.0 and 6.12.12 have room for 64 GPUs. */
static const struct bo_layout {
	uint64_t size;
	uint32_t num_gpus;
	bool has_ipc;
} bo_layouts[] = { { 80, 16, false }, { 272, 64, false }, { 296, 64, true }, { 104, 16, true } };
/* Other sizes are multiples of 8, because a record begins with a 64-bit address. The smallest
 * record has this address, a handle and the id of one GPU. The largest has room for the ids of 1000
 * GPUs, and limits the number of sizes to try. */
#define BO_SIZE_STEP 8
#define BO_SIZE_MIN  16
#define BO_SIZE_MAX  4096
#define NUM_KNOWN    ARRAY_SIZE(bo_layouts)
#define NUM_SIZES    (NUM_KNOWN + (BO_SIZE_MAX - BO_SIZE_MIN) / BO_SIZE_STEP + 1)

/* The limit of objects in one search, over all sizes. The data of a driver has far fewer objects,
 * and a search through damaged data ends in seconds. */
#define SEARCH_OBJECTS (1u << 24)

enum object_type {
	OBJECT_QUEUE,
	OBJECT_EVENT,
	OBJECT_SVM,
};

struct walk {
	const struct kfd_priv *priv;
	uint64_t at;
	/* Bytes of a BO record. */
	uint64_t bo_size;
	bool svm;
	/* Takes the queues that the walk finds; may be NULL. */
	struct kfd_priv_queue *queues;
	size_t num_queues;
	/* Takes the SVM ranges that the walk finds; may be NULL. */
	struct proc_range *ranges;
	size_t num_ranges;
	/* The first event that RESTORE may refuse. */
	bool has_strange_event;
	struct kfd_priv_event strange_event;
	/* The first handle of an event that is not 0. */
	uint64_t event_page;
};

/* A search for the sizes of BO records for which the objects fill the data. */
struct search {
	const struct kfd_priv *priv;
	/* Arguments of bo_size_at(): the next size to try, and the end of the range. */
	size_t next, end;
	uint32_t objects_left;
};

static uint64_t bytes_left(const struct walk *walk)
{
	return walk->priv->size - walk->at;
}

static uint32_t number_at(const struct walk *walk, uint64_t offset)
{
	uint32_t number;

	memcpy(&number, walk->priv->bytes + walk->at + offset, sizeof(number));
	return number;
}

static uint64_t address_at(const struct walk *walk, uint64_t offset)
{
	uint64_t address;

	memcpy(&address, walk->priv->bytes + walk->at + offset, sizeof(address));
	return address;
}

static bool skip(struct walk *walk, uint64_t size)
{
	if (size > bytes_left(walk))
		return false;
	walk->at += size;
	return true;
}

/* A queue has a GPU and an MQD. This check rejects zeros, which the data is full of. */
static bool is_queue(const struct walk *walk)
{
	return bytes_left(walk) >= QUEUE_SIZE && number_at(walk, QUEUE_GPU_ID) &&
	       number_at(walk, QUEUE_MQD_SIZE);
}

static bool read_queue(struct walk *walk)
{
	uint64_t size;

	if (!is_queue(walk))
		return false;
	size = (uint64_t)QUEUE_SIZE + number_at(walk, QUEUE_CTL_SIZE) +
	       number_at(walk, QUEUE_MQD_SIZE);
	if (walk->queues)
		walk->queues[walk->num_queues++] = (struct kfd_priv_queue){
			.buffers = {
				[KFD_PRIV_QUEUE_RING] = address_at(walk, QUEUE_RING),
				[KFD_PRIV_QUEUE_RPTR] = address_at(walk, QUEUE_RPTR),
				[KFD_PRIV_QUEUE_WPTR] = address_at(walk, QUEUE_WPTR),
				[KFD_PRIV_QUEUE_EOP] = address_at(walk, QUEUE_EOP),
				[KFD_PRIV_QUEUE_AREA] = address_at(walk, QUEUE_AREA),
			},
			.offset = walk->at,
			.size = size,
			.gpu_id = number_at(walk, QUEUE_GPU_ID),
			.type = number_at(walk, QUEUE_TYPE),
			.id = number_at(walk, QUEUE_ID),
			.cwsr_size = number_at(walk, QUEUE_CWSR),
			.mqd_size = number_at(walk, QUEUE_MQD_SIZE),
			.ctl_stack_size = number_at(walk, QUEUE_CTL_SIZE),
		};
	return skip(walk, size);
}

/* The types that kfd_criu_restore_event() makes (kfd_events.c): signal, hardware exception, debug
 * and memory. */
static bool is_restored_event(uint32_t type)
{
	return type == 0 || type == 3 || type == 5 || type == 8;
}

static bool read_event(struct walk *walk)
{
	if (bytes_left(walk) < EVENT_SIZE)
		return false;
	if (!walk->has_strange_event && !is_restored_event(number_at(walk, EVENT_TYPE))) {
		walk->has_strange_event = true;
		walk->strange_event.id = number_at(walk, EVENT_ID);
		walk->strange_event.type = number_at(walk, EVENT_TYPE);
	}
	if (!walk->event_page)
		walk->event_page = address_at(walk, EVENT_PAGE);
	return skip(walk, EVENT_SIZE);
}

/* The driver counts in pages of the kernel. */
static bool read_svm_range(struct walk *walk)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	walk->svm = true;
	if (walk->ranges && bytes_left(walk) >= SVM_SIZE) {
		struct proc_range *range = &walk->ranges[walk->num_ranges++];

		range->start = address_at(walk, SVM_START) * page;
		range->end = range->start + address_at(walk, SVM_PAGES) * page;
	}
	return skip(walk, SVM_SIZE + (uint64_t)ATTRIBUTE_SIZE *
					     (SVM_ATTRIBUTES + (uint64_t)walk->priv->num_devices));
}

static bool read_object(struct walk *walk)
{
	if (bytes_left(walk) < sizeof(uint32_t))
		return false;
	switch (number_at(walk, 0)) {
	case OBJECT_QUEUE:
		return read_queue(walk);
	case OBJECT_EVENT:
		return read_event(walk);
	case OBJECT_SVM:
		return read_svm_range(walk);
	default:
		return false;
	}
}

static uint64_t devices_end(const struct kfd_priv *priv)
{
	return PROCESS_SIZE + (uint64_t)DEVICE_SIZE * priv->num_devices;
}

/* Whether the objects fill the data to the last byte if a BO record has @bo_size bytes. */
static bool fits(struct search *search, uint64_t bo_size, struct walk *walk)
{
	const struct kfd_priv *priv = walk->priv;

	walk->bo_size = bo_size;
	if (!skip(walk, devices_end(priv)) || !skip(walk, bo_size * priv->num_bos))
		return false;
	for (uint32_t i = 0; i < priv->num_objects; i++) {
		if (!search->objects_left || !read_object(walk))
			return false;
		search->objects_left--;
	}
	return !bytes_left(walk);
}

static uint64_t bo_size_at(size_t number)
{
	return number < NUM_KNOWN ? bo_layouts[number].size
				  : BO_SIZE_MIN + BO_SIZE_STEP * (number - NUM_KNOWN);
}

/* Finds the next size that fits, and stores its queues in @queues unless that is NULL. */
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
		/* Without BOs, every size gives the same result. */
		.end = priv->num_bos ? end : first + 1,
		.objects_left = SEARCH_OBJECTS,
	};
}

struct kfd_priv kfd_priv_of_state(const struct kfd_state *state)
{
	return (struct kfd_priv){ state->priv_data, state->priv_data_size, state->num_devices,
				  state->num_bos, state->num_objects };
}

bool kfd_priv_has_xnack(const struct kfd_priv *priv)
{
	uint32_t process[2] = { 0 };

	if (priv->size >= sizeof(process))
		memcpy(process, priv->bytes, sizeof(process));
	return process[1] == 1;
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
	/* A search that reached its limit may have missed SVM ranges. */
	if (!known || (!has_svm && !search.objects_left))
		return -EINVAL;
	*ret_has_svm = has_svm;
	return 0;
}

/* Sets up the search among the sizes of known drivers, or else among the others, and finds the
 * first that fits. */
static bool find_first(const struct kfd_priv *priv, struct kfd_priv_queue *queues,
		       struct search *ret_search, struct walk *ret_walk)
{
	*ret_search = search_sizes(priv, 0, NUM_KNOWN);
	if (find_next(ret_search, queues, ret_walk))
		return true;
	*ret_search = search_sizes(priv, NUM_KNOWN, NUM_SIZES);
	return find_next(ret_search, queues, ret_walk);
}

/* Finds the queues if all sizes that fit have the same queues. @queues has room for two lists of
 * @max. */
static int agree_on_queues(const struct kfd_priv *priv, struct kfd_priv_queue *queues, size_t max,
			   size_t *ret_num_queues)
{
	struct walk first, other;
	struct search search;

	if (!find_first(priv, queues, &search, &first))
		return search.objects_left ? -EINVAL : -ENOTUNIQ;
	while (find_next(&search, queues + max, &other)) {
		if (other.num_queues != first.num_queues ||
		    memcmp(other.queues, first.queues, first.num_queues * sizeof(*queues)) != 0)
			return -ENOTUNIQ;
	}
	if (!search.objects_left)
		return -ENOTUNIQ;
	*ret_num_queues = first.num_queues;
	return 0;
}

int kfd_priv_list_queues(const struct kfd_priv *priv, struct kfd_priv_queue **ret_queues,
			 size_t *ret_num_queues)
{
	size_t max = priv->size / QUEUE_SIZE + 1;
	_cleanup_free_ struct kfd_priv_queue *queues = NULL;
	uint32_t version;
	int ret;

	if (priv->size < PROCESS_SIZE)
		return -EINVAL;
	memcpy(&version, priv->bytes, sizeof(version));
	if ((version & ~MARK) != VERSION)
		return -EINVAL;
	queues = calloc(max, 2 * sizeof(*queues));
	if (!queues)
		return -ENOMEM;
	ret = agree_on_queues(priv, queues, max, ret_num_queues);
	if (!ret)
		*ret_queues = take_ptr(&queues);
	return ret;
}

int kfd_priv_find_strange_event(const struct kfd_priv *priv, struct kfd_priv_event *ret_event)
{
	struct walk first, other;
	struct search search;

	if (!find_first(priv, NULL, &search, &first))
		return -ENOENT;
	while (first.has_strange_event && find_next(&search, NULL, &other))
		first.has_strange_event = other.has_strange_event;
	if (!first.has_strange_event)
		return -ENOENT;
	*ret_event = first.strange_event;
	return 0;
}

int kfd_priv_find_layout(const struct kfd_priv *priv, uint64_t *ret_bo_size,
			 uint64_t *ret_event_page)
{
	struct search search;
	struct walk walk;

	if (!find_first(priv, NULL, &search, &walk))
		return -EINVAL;
	*ret_bo_size = walk.bo_size;
	*ret_event_page = walk.event_page;
	return 0;
}

int kfd_priv_find_bo_size(const struct kfd_priv *priv, uint64_t *ret_size)
{
	uint64_t event_page;

	return kfd_priv_find_layout(priv, ret_size, &event_page);
}

/* The one size of BO records that fits. Known sizes come first. */
static int find_only_bo_size(const struct kfd_priv *priv, uint64_t *ret_size)
{
	struct walk walk, other;
	struct search search;

	if (!find_first(priv, NULL, &search, &walk))
		return -EINVAL;
	*ret_size = walk.bo_size;
	return find_next(&search, NULL, &other) ? -EINVAL : 0;
}

/* A userptr BO has whole pages, and its address may be inside of the first. */
static struct proc_range range_of_bo(const struct kfd_priv *priv, uint64_t bo_size, uint32_t index,
				     uint64_t size)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), address;

	memcpy(&address, priv->bytes + devices_end(priv) + bo_size * index + BO_USER_ADDR,
	       sizeof(address));
	address -= address % page;
	return (struct proc_range){ address, address + size };
}

int kfd_priv_list_memory(const struct kfd_priv *priv, const struct kfd_bo_bucket *bos,
			 struct proc_range **ret_ranges, size_t *ret_num_ranges)
{
	struct search search = { .priv = priv, .objects_left = SEARCH_OBJECTS };
	struct walk walk = { .priv = priv };
	uint64_t bo_size;
	int ret = find_only_bo_size(priv, &bo_size);

	if (ret < 0)
		return ret;
	walk.ranges = calloc((size_t)priv->num_bos + priv->num_objects + 1, sizeof(*walk.ranges));
	if (!walk.ranges)
		return -ENOMEM;
	(void)fits(&search, bo_size, &walk);
	for (uint32_t i = 0; i < priv->num_bos; i++) {
		if (bos[i].alloc_flags & KFD_BO_USERPTR)
			walk.ranges[walk.num_ranges++] = range_of_bo(priv, bo_size, i, bos[i].size);
	}
	*ret_ranges = walk.ranges;
	*ret_num_ranges = walk.num_ranges;
	return 0;
}

static void write_bo(const struct kfd_priv *priv, uint64_t bo_size, const struct kfd_priv_bo *bo,
		     uint8_t *record)
{
	if (bo->index != KFD_PRIV_NO_BO)
		memcpy(record, priv->bytes + devices_end(priv) + bo_size * bo->index, bo_size);
	memcpy(record + BO_USER_ADDR, &bo->user_addr, sizeof(bo->user_addr));
}

static void write_queue(const struct kfd_priv *priv, const struct kfd_priv_queue *queue,
			uint8_t *record)
{
	memcpy(record, priv->bytes + queue->offset, queue->size);
	memset(record + QUEUE_GWS, 0, sizeof(uint32_t));
}

int kfd_priv_build(const struct kfd_priv *priv, const struct kfd_priv_parts *parts,
		   uint8_t **ret_data, size_t *ret_size)
{
	const uint32_t version = VERSION;
	uint64_t bo_size, bos, size;
	uint8_t *data;
	int ret = kfd_priv_find_bo_size(priv, &bo_size);

	if (ret < 0)
		return ret;
	bos = PROCESS_SIZE + (uint64_t)DEVICE_SIZE * parts->num_devices;
	size = bos + bo_size * parts->num_bos;
	data = calloc(1, size + (parts->queue ? parts->queue->size : 0));
	if (!data)
		return -ENOMEM;
	memcpy(data, &version, sizeof(version));
	for (uint32_t i = 0; i < parts->num_bos; i++)
		write_bo(priv, bo_size, &parts->bos[i], data + bos + bo_size * i);
	if (parts->queue) {
		write_queue(priv, parts->queue, data + size);
		size += parts->queue->size;
	}
	*ret_data = data;
	*ret_size = size;
	return 0;
}

static const struct bo_layout *find_layout(uint64_t bo_size)
{
	for (size_t i = 0; i < NUM_KNOWN; i++) {
		if (bo_layouts[i].size == bo_size)
			return &bo_layouts[i];
	}
	return NULL;
}

int kfd_priv_read_bo(const struct kfd_priv *priv, uint64_t bo_size, uint32_t index,
		     struct kfd_priv_bo_record *ret_record)
{
	const struct walk walk = { .priv = priv, .at = devices_end(priv) + bo_size * index };
	const struct bo_layout *layout = find_layout(bo_size);
	struct kfd_priv_bo_record record = { 0 };

	if (!layout || index >= priv->num_bos || walk.at > priv->size ||
	    bo_size > bytes_left(&walk))
		return -EINVAL;
	record.handle = number_at(&walk, BO_HANDLE);
	memcpy(record.gpu_ids, priv->bytes + walk.at + BO_GPU_IDS,
	       sizeof(uint32_t) * layout->num_gpus);
	while (record.num_gpus < layout->num_gpus && record.gpu_ids[record.num_gpus])
		record.num_gpus++;
	record.ipc.is_known = layout->has_ipc;
	if (layout->has_ipc) {
		record.ipc.is_imported = number_at(&walk, bo_size - BO_IMPORTED);
		memcpy(record.ipc.handle, priv->bytes + walk.at + bo_size - BO_SHARE,
		       sizeof(record.ipc.handle));
	}
	*ret_record = record;
	return 0;
}

void kfd_priv_write_share_handle(const struct kfd_priv *priv, uint32_t index,
				 const uint32_t *handle, uint8_t *bytes)
{
	uint64_t size;

	if (!kfd_priv_find_bo_size(priv, &size))
		memcpy(bytes + devices_end(priv) + size * index + size - BO_SHARE, handle,
		       KFD_SHARE_WORDS * sizeof(*handle));
}

int kfd_priv_cut_bos(const struct kfd_priv *priv, const bool *cut, uint8_t *bytes, size_t *ret_size)
{
	uint64_t bo_size, from, to;
	int ret = kfd_priv_find_bo_size(priv, &bo_size);

	if (ret < 0)
		return ret;
	from = to = devices_end(priv);
	for (uint32_t i = 0; i < priv->num_bos; i++, from += bo_size) {
		if (cut[i])
			continue;
		memmove(bytes + to, bytes + from, bo_size);
		to += bo_size;
	}
	memmove(bytes + to, bytes + from, priv->size - from);
	*ret_size = priv->size - (from - to);
	return 0;
}

static void change_version(uint8_t *bytes, size_t size, bool marked)
{
	uint32_t version;

	if (size < sizeof(version))
		return;
	memcpy(&version, bytes, sizeof(version));
	version = marked ? version | MARK : version & ~MARK;
	memcpy(bytes, &version, sizeof(version));
}

void kfd_priv_mark(uint8_t *bytes, size_t size)
{
	change_version(bytes, size, true);
}

void kfd_priv_unmark(uint8_t *bytes, size_t size)
{
	change_version(bytes, size, false);
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
	/* The kernel reserves the record of a device and sets it to zero. */
	memset(to + before, 0, more);
	memcpy(to + before + more, priv->bytes + before, priv->size - before);
}
