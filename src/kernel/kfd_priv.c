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
 * has room for the ids of all GPUs that the driver supports, and a driver may append fields. Linux
 * 6.1 has room for 16 GPUs, Linux 6.18 for 64. AMD's out-of-tree driver appends the fields of
 * legacy IPC (kfd_criu_bo_priv_data in kfd_priv.h): is_imported, ipc_flags, and the share handle.
 * Its releases 6.7.0 and 6.12.12 have room for 64 GPUs. */
static const struct bo_layout {
	uint64_t size;
	uint32_t num_gpus;
	bool has_ipc;
} bo_layouts[] = { { 80, 16, false }, { 272, 64, false }, { 296, 64, true }, { 104, 16, true } };

enum object_type {
	OBJECT_QUEUE,
	OBJECT_EVENT,
	OBJECT_SVM,
};

struct walk {
	const struct kfd_priv *priv;
	uint64_t at;
	struct kfd_layout layout;
	/* Takes the queues that the walk finds; may be NULL. */
	struct kfd_priv_queue *queues;
	/* Takes the SVM ranges that the walk finds; may be NULL. */
	struct proc_range *ranges;
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
		walk->queues[walk->layout.num_queues] = (struct kfd_priv_queue){
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
	walk->layout.num_queues++;
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
	if (!walk->layout.has_unsupported_event &&
	    !is_restored_event(number_at(walk, EVENT_TYPE))) {
		walk->layout.has_unsupported_event = true;
		walk->layout.unsupported_event.id = number_at(walk, EVENT_ID);
		walk->layout.unsupported_event.type = number_at(walk, EVENT_TYPE);
	}
	if (!walk->layout.event_page)
		walk->layout.event_page = address_at(walk, EVENT_PAGE);
	return skip(walk, EVENT_SIZE);
}

/* The driver counts in pages of the kernel. */
static bool read_svm_range(struct walk *walk)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	if (walk->ranges && bytes_left(walk) >= SVM_SIZE) {
		struct proc_range *range = &walk->ranges[walk->layout.num_svm_ranges];

		range->start = address_at(walk, SVM_START) * page;
		range->end = range->start + address_at(walk, SVM_PAGES) * page;
	}
	walk->layout.num_svm_ranges++;
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

/* Of a known layout. */
static uint64_t bo_at(const struct kfd_priv *priv, uint32_t index)
{
	return devices_end(priv) + priv->layout.bo_size * index;
}

/* Whether the objects fill the data to the last byte if a BO record has @bo_size bytes. */
static bool fits(struct walk *walk, uint64_t bo_size)
{
	const struct kfd_priv *priv = walk->priv;

	if (!skip(walk, devices_end(priv)) || !skip(walk, bo_size * priv->num_bos))
		return false;
	for (uint32_t i = 0; i < priv->num_objects; i++) {
		if (!read_object(walk))
			return false;
	}
	return !bytes_left(walk);
}

static bool has_known_version(const struct kfd_priv *priv)
{
	uint32_t version;

	if (priv->size < PROCESS_SIZE)
		return false;
	memcpy(&version, priv->bytes, sizeof(version));
	return (version & ~MARK) == VERSION;
}

/* Without BOs, all layouts are the same. */
struct kfd_layout kfd_priv_parse(const struct kfd_priv *priv)
{
	const size_t count = priv->num_bos ? ARRAY_SIZE(bo_layouts) : 1;
	struct kfd_layout found = { 0 };

	for (size_t i = 0; has_known_version(priv) && i < count; i++) {
		struct walk walk = { .priv = priv };

		if (!fits(&walk, bo_layouts[i].size))
			continue;
		if (found.is_known)
			return (struct kfd_layout){ .is_ambiguous = true };
		found = walk.layout;
		found.is_known = true;
		found.bo_size = bo_layouts[i].size;
		found.bo_gpus = bo_layouts[i].num_gpus;
		found.bo_has_ipc = bo_layouts[i].has_ipc;
	}
	return found;
}

static int check_layout(const struct kfd_priv *priv)
{
	if (priv->layout.is_known)
		return 0;
	return priv->layout.is_ambiguous ? -ENOTUNIQ : -EINVAL;
}

struct kfd_priv kfd_priv_of_state(const struct kfd_state *state)
{
	struct kfd_priv priv = { state->priv_data, state->priv_data_size, state->num_devices,
				 state->num_bos,   state->num_objects,    { 0 } };

	priv.layout = kfd_priv_parse(&priv);
	return priv;
}

bool kfd_priv_has_xnack(const struct kfd_priv *priv)
{
	uint32_t process[2] = { 0 };

	if (priv->size >= sizeof(process))
		memcpy(process, priv->bytes, sizeof(process));
	return process[1] == 1;
}

int kfd_priv_list_queues(const struct kfd_priv *priv, struct kfd_priv_queue **ret_queues,
			 size_t *ret_num_queues)
{
	struct walk walk = { .priv = priv };
	int ret = check_layout(priv);

	if (ret < 0)
		return ret;
	walk.queues = calloc(priv->layout.num_queues + 1, sizeof(*walk.queues));
	if (!walk.queues)
		return -ENOMEM;
	(void)fits(&walk, priv->layout.bo_size);
	*ret_queues = walk.queues;
	*ret_num_queues = walk.layout.num_queues;
	return 0;
}

/* A userptr BO has whole pages, and its address may be inside of the first. */
static struct proc_range range_of_bo(const struct kfd_priv *priv, uint32_t index, uint64_t size)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), address;

	memcpy(&address, priv->bytes + bo_at(priv, index) + BO_USER_ADDR, sizeof(address));
	address -= address % page;
	return (struct proc_range){ address, address + size };
}

int kfd_priv_list_memory(const struct kfd_priv *priv, const struct kfd_bo_bucket *bos,
			 struct proc_range **ret_ranges, size_t *ret_num_ranges)
{
	struct walk walk = { .priv = priv };
	int ret = check_layout(priv);
	size_t count;

	if (ret < 0)
		return ret;
	count = priv->layout.num_svm_ranges;
	walk.ranges = calloc(count + priv->num_bos + 1, sizeof(*walk.ranges));
	if (!walk.ranges)
		return -ENOMEM;
	(void)fits(&walk, priv->layout.bo_size);
	for (uint32_t i = 0; i < priv->num_bos; i++) {
		if (bos[i].alloc_flags & KFD_BO_USERPTR)
			walk.ranges[count++] = range_of_bo(priv, i, bos[i].size);
	}
	*ret_ranges = walk.ranges;
	*ret_num_ranges = count;
	return 0;
}

static void write_bo(const struct kfd_priv *priv, const struct kfd_priv_bo *bo, uint8_t *record)
{
	if (bo->index != KFD_PRIV_NO_BO)
		memcpy(record, priv->bytes + bo_at(priv, bo->index), priv->layout.bo_size);
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
	const uint64_t bo_size = priv->layout.bo_size;
	const uint32_t version = VERSION;
	uint64_t bos, size;
	uint8_t *data;
	int ret = check_layout(priv);

	if (ret < 0)
		return ret;
	bos = PROCESS_SIZE + (uint64_t)DEVICE_SIZE * parts->num_devices;
	size = bos + bo_size * parts->num_bos;
	data = calloc(1, size + (parts->queue ? parts->queue->size : 0));
	if (!data)
		return -ENOMEM;
	memcpy(data, &version, sizeof(version));
	for (uint32_t i = 0; i < parts->num_bos; i++)
		write_bo(priv, &parts->bos[i], data + bos + bo_size * i);
	if (parts->queue) {
		write_queue(priv, parts->queue, data + size);
		size += parts->queue->size;
	}
	*ret_data = data;
	*ret_size = size;
	return 0;
}

int kfd_priv_read_bo(const struct kfd_priv *priv, uint32_t index,
		     struct kfd_priv_bo_record *ret_record)
{
	const struct kfd_layout *layout = &priv->layout;
	const struct walk walk = { .priv = priv, .at = bo_at(priv, index) };
	struct kfd_priv_bo_record record = { 0 };

	if (!layout->is_known || index >= priv->num_bos || bo_at(priv, index + 1) > priv->size)
		return -EINVAL;
	record.handle = number_at(&walk, BO_HANDLE);
	memcpy(record.gpu_ids, priv->bytes + walk.at + BO_GPU_IDS,
	       sizeof(uint32_t) * layout->bo_gpus);
	while (record.num_gpus < layout->bo_gpus && record.gpu_ids[record.num_gpus])
		record.num_gpus++;
	record.ipc.is_known = layout->bo_has_ipc;
	if (layout->bo_has_ipc) {
		record.ipc.is_imported = number_at(&walk, layout->bo_size - BO_IMPORTED);
		memcpy(record.ipc.handle, priv->bytes + walk.at + layout->bo_size - BO_SHARE,
		       sizeof(record.ipc.handle));
	}
	*ret_record = record;
	return 0;
}

void kfd_priv_write_share_handle(const struct kfd_priv *priv, uint32_t index,
				 const uint32_t *handle, uint8_t *bytes)
{
	if (priv->layout.is_known)
		memcpy(bytes + bo_at(priv, index + 1) - BO_SHARE, handle,
		       KFD_SHARE_WORDS * sizeof(*handle));
}

int kfd_priv_cut_bos(const struct kfd_priv *priv, const bool *cut, uint8_t *bytes, size_t *ret_size)
{
	const uint64_t bo_size = priv->layout.bo_size;
	uint64_t from, to;
	int ret = check_layout(priv);

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
