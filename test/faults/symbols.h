/* SPDX-License-Identifier: GPL-2.0-only */
/* Functions and lines of the plugin's source, by frame. */
#ifndef TEST_FAULTS_SYMBOLS_H
#define TEST_FAULTS_SYMBOLS_H

#include <stdint.h>

#include "table.h"
#include "tools.h"

struct symbols;

struct symbols *symbols_new(const char *plugin);
void symbols_free(struct symbols *symbols);

/* Looks up these return addresses, except those of other libraries. No other thread may ask
 * meanwhile. */
void symbols_load(struct symbols *symbols, const struct set *frames);

/* The function of a known frame; "" for other libraries. */
const char *symbols_function(const struct symbols *symbols, uint64_t frame);
/* Whether @function is among the callers of @place. */
bool symbols_is_in(const struct symbols *symbols, const struct place *place, const char *function);
/* "file.c:12", or the name of another library. */
const char *symbols_line(const struct symbols *symbols, uint64_t frame);
/* Function and line; for other libraries name and offset. */
void symbols_add_site(const struct symbols *symbols, uint64_t frame, struct text *text);

#endif
