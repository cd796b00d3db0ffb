/* SPDX-License-Identifier: GPL-2.0-only */
/* Places that the injector has met. */
#ifndef TEST_FAULTS_PLACES_H
#define TEST_FAULTS_PLACES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "table.h"
#include "tools.h"

/* What a call can give. */
#define FAULTS_MAX 16

struct faults {
	char names[FAULTS_MAX][FAULT_SIZE];
	size_t count;
};

/* An injector that was killed early has left no table, or an empty one. The caller frees it with
 * free(). */
struct table *table_read(const char *path);

/* Those of @table, which they stay in: the callers' calls together, the outermost first. */
struct places {
	const struct place **items;
	size_t count;
};

void places_list(const struct table *table, struct places *ret_places);
void places_done(struct places *places);

/* 0 is the plugin. */
unsigned int frame_library(uint64_t frame);
uint64_t frame_offset(uint64_t frame);
/* The innermost frame of the plugin; where there is none, the innermost. */
uint64_t place_own_frame(const struct place *place);
/* Whether the plugin itself makes this call. */
bool place_is_own(const struct place *place);
/* As in lists: ioctls with what they do. */
void place_add_call(const struct place *place, struct text *text);

void place_faults(const struct place *place, struct faults *ret_faults);
/* The first that is a failure and not just tried again, or else the first; there must be one. */
const char *faults_hardest(const struct faults *faults);

#endif
