// SPDX-License-Identifier: GPL-2.0-only
/* Reads the injector's table, and tells about a place what needs no symbols. symbols.c knows the
 * lines. */
#include "places.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "amdgpu_plugin_util.h"
#include "kernel/kfd.h"

/* Errors that lead to a retry, or are no failure. */
static const char *const soft_faults[] = { "EINTR", "short", "EAGAIN" };

static const char *const criu_ops[] = {
	[KFD_PROCESS_INFO] = "PROCESS_INFO",
	[KFD_CHECKPOINT] = "CHECKPOINT",
	[KFD_UNPAUSE] = "UNPAUSE",
	[KFD_RESTORE] = "RESTORE",
	[KFD_RESUME] = "RESUME",
};

struct table *table_read(const char *path)
{
	struct table *table = must(calloc(1, sizeof(*table)));
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 && errno != ENOENT)
		fail("%s: %s", path, strerror(errno));
	if (fd >= 0)
		(void)pread_full(fd, table, sizeof(*table), 0);
	return table;
}

static int compare_chains(const struct place *a, const struct place *b)
{
	uint64_t at_a = a->num_frames, at_b = b->num_frames;

	while (at_a && at_b) {
		uint64_t frame_a = a->frames[--at_a], frame_b = b->frames[--at_b];

		if (frame_a != frame_b)
			return frame_a < frame_b ? -1 : 1;
	}
	return (at_a > 0) - (at_b > 0);
}

static int compare_places(const void *one, const void *other)
{
	const struct place *a = *(const struct place *const *)one,
			   *b = *(const struct place *const *)other;
	int order = compare_chains(a, b);

	if (!order)
		order = strcmp(a->name, b->name);
	/* one with another detail */
	return order ? order : (a > b) - (a < b);
}

void places_list(const struct table *table, struct places *ret_places)
{
	struct places places = { must(calloc(PLACES_MAX, sizeof(*places.items))), 0 };

	for (size_t i = 0; i < PLACES_MAX; i++) {
		if (table->places[i].hash)
			places.items[places.count++] = &table->places[i];
	}
	qsort(places.items, places.count, sizeof(*places.items), compare_places);
	*ret_places = places;
}

void places_done(struct places *places)
{
	free(places->items);
	*places = (struct places){ 0 };
}

unsigned int frame_library(uint64_t frame)
{
	return (unsigned int)(frame >> FRAME_BITS);
}

uint64_t frame_offset(uint64_t frame)
{
	return frame & ((1ull << FRAME_BITS) - 1);
}

static uint64_t own_frame(const struct place *place)
{
	for (uint64_t i = 0; i < place->num_frames; i++) {
		if (!frame_library(place->frames[i]))
			return i;
	}
	return 0;
}

uint64_t place_own_frame(const struct place *place)
{
	return place->frames[own_frame(place)];
}

uint64_t place_caller_frame(const struct place *place)
{
	uint64_t caller = own_frame(place) + 1;

	return caller < place->num_frames ? place->frames[caller] : 0;
}

bool place_is_own(const struct place *place)
{
	return !frame_library(place->frames[0]);
}

bool place_opens(const struct place *place)
{
	static const char *const names[] = { "open", "openat", "fopen" };

	for (size_t i = 0; place_is_own(place) && i < ARRAY_SIZE(names); i++) {
		if (!strcmp(place->name, names[i]))
			return true;
	}
	return false;
}

void place_add_call(const struct place *place, struct text *text)
{
	uint32_t request = (uint32_t)place->detail;
	uint64_t op = place->detail >> 32;

	text_add(text, "%s", place->name);
	if (strcmp(place->name, "ioctl") != 0)
		return;
	if (request == (uint32_t)KFD_IOC_CRIU_OP && op >= 1 && op <= ARRAY_SIZE(criu_ops))
		text_add(text, " %s", criu_ops[op - 1]);
	else
		text_add(text, " %c:0x%02x", _IOC_TYPE(request), _IOC_NR(request));
}

void place_faults(const struct place *place, struct faults *ret_faults)
{
	const char *rest = place->faults, *word;
	size_t length;

	ret_faults->count = 0;
	while (ret_faults->count < FAULTS_MAX && (word = piece_next(&rest, " ", &length))) {
		char *name = ret_faults->names[ret_faults->count++];

		(void)snprintf(name, FAULT_SIZE, "%.*s", (int)length, word);
	}
}

static bool is_soft(const char *fault)
{
	for (size_t i = 0; i < ARRAY_SIZE(soft_faults); i++) {
		if (!strcmp(soft_faults[i], fault))
			return true;
	}
	return false;
}

const char *faults_hardest(const struct faults *faults)
{
	for (size_t i = 0; i < faults->count; i++) {
		if (!is_soft(faults->names[i]))
			return faults->names[i];
	}
	return faults->names[0];
}
