/* SPDX-License-Identifier: GPL-2.0-only */
/* Places (a function and its return addresses) that the injector has met. */
#ifndef TEST_FAULTS_PLACES_H
#define TEST_FAULTS_PLACES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "table.h"
#include "tools.h"

/* The ways in which a call can fail. */
#define FAULTS_MAX 16

struct faults {
	char names[FAULTS_MAX][FAULT_SIZE];
	size_t count;
};

/* Reads the table. An injector that was killed early has left no table, or an empty one. The caller
 * frees the result with free(). */
struct table *table_read(const char *path);

/* Lists the places of @table, which keeps them: the calls of one caller together, the outermost
 * first. */
struct places {
	const struct place **items;
	size_t count;
};

void places_list(const struct table *table, struct places *ret_places);
void places_done(struct places *places);

/* 0 is the plugin. */
unsigned int frame_library(uint64_t frame);
uint64_t frame_offset(uint64_t frame);
/* The innermost frame in the plugin; where no frame is in the plugin, the innermost of all. */
uint64_t place_own_frame(const struct place *place);
/* The caller of that function, or 0 if the list ends with it. */
uint64_t place_caller_frame(const struct place *place);
/* Whether the plugin itself makes this call. */
bool place_is_own(const struct place *place);
/* Whether the plugin itself opens a file there. */
bool place_opens(const struct place *place);
/* The name in lists. An ioctl has its request. */
void place_add_call(const struct place *place, struct text *text);

void place_faults(const struct place *place, struct faults *ret_faults);
/* The first fault that is not just retried, otherwise the first. There must be one. */
const char *faults_hardest(const struct faults *faults);

#endif
