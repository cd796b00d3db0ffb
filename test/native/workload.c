// SPDX-License-Identifier: GPL-2.0-only
/* Parses workloads and holds the profiles of real programs. The header describes the syntax. */
#include "workload.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "not_shared.h"

/* Addresses that sanitizers of all kinds leave free. */
#define FIRST_ADDRESS 0x7e9000000000ull
#define TASK_ROOM     (16ull << 30)
#define GAP           (2ull << 20)

#define ITEM_MAX    128
#define COUNT_MAX   1000000u
#define GOLDEN      0x9e3779b97f4a7c15ull
#define DEFAULT_MAP 16u
#define TASKS_MAX   64u

/* Buffer counts and sizes per GPU, taken from real programs. */
static const struct {
	const char *name;
	const char *text;
} profiles[] = {
	{ "P1-issue2663",
	  "1x140M,8x4K-64K,40x2M,18x20M,1x90M,1x32K:E,5x4K:G,83x4K-4M:U,1x8K:D,1x4K:M,"
	  "events=82,zero=30" },
	{ "P2-train", "1x140M,3x2M,144x20M,170x16M,48x24M,24x28M,4x120M,20x64K-8M,1x32K:E,6x4K:G,"
		      "57x4K-32M:U,1x8K:D,1x4K:M,events=150,zero=15" },
	{ "P4-serve",
	  "1x140M,1x2M,32x32M,32x48M,32x112M,32x224M,2x1002M,32x1204M,30x64K-16M,1x32K:E,6x4K:G,"
	  "60x4K-4M:U,1x8K:D,1x4K:M,events=200,zero=85" },
	{ "P7-small", "20000x4K-64K,1x32K:E,1x8K:D,1x4K:M,events=30" },
};

static int complain(const char *item, const char *problem)
{
	(void)fprintf(stderr, "workload: \"%s\": %s\n", item, problem);
	return -EINVAL;
}

/* Parses a size with suffix K, M or G and moves *@text behind it. */
static bool take_size(const char **text, uint64_t *ret_size)
{
	static const char units[] = "KMG";
	const char *unit;
	char *end;

	*ret_size = strtoull(*text, &end, 10);
	if (end == *text)
		return false;
	unit = *end ? strchr(units, *end) : NULL;
	if (unit) {
		*ret_size <<= 10 * (unit - units + 1);
		end++;
	}
	*text = end;
	return true;
}

static uint64_t scaled(const struct workload *workload, uint64_t size)
{
	size = size / workload->scale_by * workload->scale_times;
	size = (size + WORKLOAD_PAGE - 1) / WORKLOAD_PAGE * WORKLOAD_PAGE;
	return size ? size : WORKLOAD_PAGE;
}

static int add_bo(struct workload *workload, struct workload_bo bo)
{
	struct workload_bo *grown;

	/* the array grows in powers of two */
	if (!(workload->num_bos & (workload->num_bos + 1))) {
		grown = realloc(workload->bos, (workload->num_bos + 1) * 2 * sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		workload->bos = grown;
	}
	workload->bos[workload->num_bos++] = bo;
	return 0;
}

/* Doorbells, registers and buffers of queues have a fixed size. */
static uint64_t size_of(const struct workload *workload, char kind, uint64_t size)
{
	return strchr("DMQPWSE", kind) ? size : scaled(workload, size);
}

static int add_item(struct workload *workload, const char *item)
{
	uint64_t count, low, high;
	const char *text = item;
	char kind = 'V';

	if (!take_size(&text, &count) || *text++ != 'x' || !take_size(&text, &low))
		return complain(item, "is no COUNTxSIZE, setting or profile");
	high = low;
	if (*text == '-' && (text++, !take_size(&text, &high)))
		return complain(item, "has a range without an end");
	if (*text == ':' && text[1])
		kind = text[1], text += 2;
	if (*text || !strchr("VCGHNBIUDMQPWSE", kind) || count > COUNT_MAX || !low || high < low)
		return complain(item, "is not understood");
	count = count * workload->count_times / workload->count_by;
	count = count ? count : 1;
	for (uint64_t i = 0; i < count; i++) {
		uint64_t step = count > 1 ? (high - low) / (count - 1) : 0;
		struct workload_bo bo = { .kind = kind, .size = low + i * step };
		int ret = add_bo(workload, bo);

		if (ret < 0)
			return ret;
	}
	return 0;
}

/* "N/M" */
static bool take_ratio(const char **text, uint64_t *ret_times, uint64_t *ret_by)
{
	if (!take_size(text, ret_times) || **text != '/')
		return false;
	(*text)++;
	return take_size(text, ret_by) && *ret_by;
}

static bool is_named(const char *item, const char *name)
{
	return !strncmp(item, name, strlen(name)) && item[strlen(name)] == '=';
}

static int set_ratio(struct workload *workload, const char *item)
{
	const char *rest = strchr(item, '=') + 1;
	bool good;

	if (is_named(item, "scale"))
		good = take_ratio(&rest, &workload->scale_times, &workload->scale_by);
	else
		good = take_ratio(&rest, &workload->count_times, &workload->count_by);
	return good && !*rest ? 0 : complain(item, "is no N/M");
}

static bool set_flag(struct workload *workload, const char *item, bool on)
{
	const struct {
		const char *name;
		bool *flag;
	} flags[] = {
		{ "apart", &workload->apart }, { "broker", &workload->broker },
		{ "both", &workload->both },   { "cpu", &workload->cpu },
		{ "lost", &workload->lost },   { "host", &workload->host },
		{ "memfd", &workload->memfd }, { "gone", &workload->gone },
		{ "xnack", &workload->xnack }, { "verify", &workload->verify },
	};

	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		if (!is_named(item, flags[i].name))
			continue;
		*flags[i].flag = on;
		return true;
	}
	return false;
}

static int set_number(struct workload *workload, const char *item)
{
	const char *rest = strchr(item, '=') + 1;
	uint64_t number;

	if (!take_size(&rest, &number) || *rest)
		return complain(item, "is no number");
	if (is_named(item, "gpus") && number)
		workload->gpus = (uint32_t)number;
	else if (is_named(item, "zero") && number <= 100)
		workload->zero_percent = (uint32_t)number;
	else if (is_named(item, "events"))
		workload->events = (uint32_t)number;
	else if (is_named(item, "strange"))
		workload->strange = (uint32_t)number;
	else if (is_named(item, "kfds"))
		workload->kfds = (uint32_t)number;
	else if (is_named(item, "contexts"))
		workload->contexts = (uint32_t)number;
	else if (is_named(item, "opened"))
		workload->opened = (uint32_t)number;
	else if (is_named(item, "tasks") && number && number <= TASKS_MAX)
		workload->tasks = (uint32_t)number;
	else if (is_named(item, "map"))
		workload->map = (uint32_t)number;
	else if (is_named(item, "shared"))
		workload->shared = (uint32_t)number;
	else if (is_named(item, "owner"))
		workload->owner = (uint32_t)number;
	else if (is_named(item, "outside") && number < TASKS_MAX)
		workload->outside = (uint32_t)number;
	else if (is_named(item, "peer"))
		workload->peer = (uint32_t)number;
	else if (is_named(item, "dmabufs"))
		workload->dmabufs = (uint32_t)number;
	else if (is_named(item, "legacy"))
		workload->legacy = (uint32_t)number;
	else if (is_named(item, "seed"))
		workload->seed = number;
	else if (!set_flag(workload, item, number != 0))
		return complain(item, "is no setting");
	return 0;
}

static int set(struct workload *workload, const char *item)
{
	if (is_named(item, "scale") || is_named(item, "count"))
		return set_ratio(workload, item);
	return set_number(workload, item);
}

static int parse_items(struct workload *workload, const char *text);

static int parse_item(struct workload *workload, const char *item)
{
	if (strchr(item, '='))
		return set(workload, item);
	for (size_t i = 0; i < sizeof(profiles) / sizeof(profiles[0]); i++) {
		if (!strcmp(profiles[i].name, item))
			return parse_items(workload, profiles[i].text);
	}
	return workload->settled ? add_item(workload, item) : 0;
}

static int parse_items(struct workload *workload, const char *text)
{
	char item[ITEM_MAX];
	int ret = 0;

	while (!ret && *text) {
		size_t length = strcspn(text, ",");

		if (length >= sizeof(item))
			return complain(text, "is too long");
		memcpy(item, text, length);
		item[length] = '\0';
		if (length)
			ret = parse_item(workload, item);
		text += length + (text[length] == ',');
	}
	return ret;
}

/* The driver writes to this buffer, so it holds no pattern. */
static bool is_for_driver(const struct workload_bo *bo)
{
	return strchr("QPWSE", bo->kind) != NULL;
}

/* Repeats the items of one GPU on each GPU, after parsing has read all settings. */
static int spread(struct workload *workload)
{
	size_t per_gpu = workload->num_bos;
	uint32_t mapped = 0;
	int ret = 0;

	for (size_t i = 0; i < per_gpu; i++) {
		struct workload_bo *bo = &workload->bos[i];

		bo->size = size_of(workload, bo->kind, bo->size);
		bo->written = bo->size / 100 * (100 - workload->zero_percent);
		bo->written = (bo->written + 7) / 8 * 8;
		if (!workload->zero_percent)
			bo->written = bo->size;
		if (is_for_driver(bo))
			bo->written = 0;
		bo->mapped = !workload_has_content(bo);
		if (!bo->mapped && !is_for_driver(bo))
			bo->mapped = mapped++ < workload->map;
	}
	for (uint32_t gpu = 1; !ret && gpu < workload->gpus; gpu++) {
		for (size_t i = 0; !ret && i < per_gpu; i++) {
			struct workload_bo bo = workload->bos[i];

			bo.gpu = gpu;
			ret = add_bo(workload, bo);
		}
	}
	return ret;
}

int workload_parse(const char *text, struct workload *ret_workload)
{
	int ret;

	*ret_workload = (struct workload){
		.gpus = 1,
		.opened = UINT32_MAX,
		.owner = WORKLOAD_ALL,
		.count_times = 1,
		.count_by = 1,
		.scale_times = 1,
		.scale_by = 1,
		.seed = 1,
		.kfds = 1,
		.tasks = 1,
		.map = DEFAULT_MAP,
		.verify = true,
	};
	/* settings also apply to the items before them */
	ret = parse_items(ret_workload, text);
	ret_workload->settled = true;
	if (!ret)
		ret = parse_items(ret_workload, text);
	return ret < 0 ? ret : spread(ret_workload);
}

void workload_done(struct workload *workload)
{
	free(workload->bos);
	*workload = (struct workload){ 0 };
}

struct workload workload_of_task(const struct workload *workload, uint32_t task)
{
	struct workload other = *workload;

	other.task = task;
	other.seed += task;
	return other;
}

uint64_t workload_first_address(const struct workload *workload)
{
	return FIRST_ADDRESS + workload->task * TASK_ROOM;
}

uint64_t workload_next_address(uint64_t address, const struct workload_bo *bo)
{
	/* small buffers lie side by side, as allocators place them */
	uint64_t gap = bo->size >= GAP ? GAP : WORKLOAD_PAGE;

	return (address + bo->size + gap) / WORKLOAD_PAGE * WORKLOAD_PAGE;
}

uint64_t workload_second_address(uint64_t address)
{
	return address - WORKLOAD_SECOND_DISTANCE;
}

uint64_t workload_import_address(const struct workload *workload, size_t index)
{
	uint64_t address = workload_first_address(workload);

	for (size_t i = 0; i < index; i++)
		address = workload_next_address(address, &workload->bos[i]);
	return address - WORKLOAD_IMPORT_DISTANCE;
}

bool workload_is_broker(const struct workload *workload)
{
	return workload->broker && !workload->task;
}

uint64_t workload_slot_word(uint32_t owner, size_t index, uint32_t slot)
{
	return 0x5348415245440000ull + (owner << 12) + (index << 4) + slot;
}

bool workload_makes(const struct workload *workload, size_t index)
{
	if (workload_is_broker(workload))
		return false;
	return !workload_is_shared(workload, index) || workload->owner == WORKLOAD_ALL ||
	       workload->owner == workload->task;
}

bool workload_keeps(const struct workload *workload, size_t index)
{
	return workload_makes(workload, index) &&
	       !(workload->gone && workload_is_shared(workload, index));
}

bool workload_imports(const struct workload *workload, uint32_t owner)
{
	if (workload_is_broker(workload) || (workload->broker && !owner))
		return false;
	return (workload->tasks == 1 || owner != workload->task) &&
	       (workload->owner == WORKLOAD_ALL || workload->owner == owner);
}

bool workload_is_shared(const struct workload *workload, size_t index)
{
	return index < workload->shared;
}

bool workload_is_buffer(const struct workload_bo *bo)
{
	return bo->kind != 'S';
}

bool workload_has_content(const struct workload_bo *bo)
{
	return workload_is_buffer(bo) && (strchr("VCGHNBI", bo->kind) || is_for_driver(bo));
}

bool workload_has_pattern(const struct workload *workload, size_t index)
{
	const struct workload_bo *bo = &workload->bos[index];

	return workload_has_content(bo) && bo->kind != 'E';
}

uint64_t workload_content_bytes(const struct workload *workload)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < workload->num_bos; i++)
		bytes += workload_has_content(&workload->bos[i]) ? workload->bos[i].size : 0;
	return bytes;
}

/* The first word is never zero, and each buffer has a different sequence. */
static uint64_t first_word(const struct workload *workload, size_t index)
{
	return (workload->seed << 40 ^ (index + 1)) * GOLDEN | 1;
}

/* The number of words in [@offset, +@size) that hold the pattern. */
static uint64_t pattern_words(const struct workload_bo *bo, uint64_t offset, uint64_t size)
{
	uint64_t left = offset < bo->written ? bo->written - offset : 0;

	return (left < size ? left : size) / sizeof(uint64_t);
}

NOT_SHARED void workload_fill(const struct workload *workload, size_t index, uint64_t offset,
			      void *memory, uint64_t size)
{
	uint64_t value = first_word(workload, index) + offset / sizeof(value) * GOLDEN;
	uint64_t count = pattern_words(&workload->bos[index], offset, size), *words = memory;

	for (uint64_t i = 0; i < count; i++)
		words[i] = value + i * GOLDEN;
	memset(words + count, 0, size - count * sizeof(*words));
}

NOT_SHARED uint64_t workload_check(const struct workload *workload, size_t index, uint64_t offset,
				   const void *memory, uint64_t size)
{
	uint64_t value = first_word(workload, index) + offset / sizeof(value) * GOLDEN, i;
	uint64_t count = pattern_words(&workload->bos[index], offset, size);
	const uint64_t *words = memory;

	for (i = 0; i < count && words[i] == value + i * GOLDEN; i++)
		;
	while (i >= count && i < size / sizeof(*words) && !words[i])
		i++;
	return i * sizeof(*words);
}
