/* SPDX-License-Identifier: GPL-2.0-only */
/* Functions and lines of the plugin's source, by frames. */
#ifndef TEST_FAULTS_SYMBOLS_H
#define TEST_FAULTS_SYMBOLS_H

#include <stdint.h>

#include "table.h"
#include "tools.h"

struct symbols;

struct symbols *symbols_new(const char *plugin);
void symbols_free(struct symbols *symbols);

/* Makes these return addresses known; frames of other libraries than the plugin are left out. Not
 * while other threads ask. */
void symbols_load(struct symbols *symbols, const struct set *frames);

/* Of a known frame: "" in other libraries. */
const char *symbols_function(const struct symbols *symbols, uint64_t frame);
/* Whether a call at @place was made by @function, or by what that has called. */
bool symbols_is_in(const struct symbols *symbols, const struct place *place, const char *function);
/* "file.c:12", or another library's name. */
const char *symbols_line(const struct symbols *symbols, uint64_t frame);
/* Both; of other libraries name and offset. */
void symbols_add_site(const struct symbols *symbols, uint64_t frame, struct text *text);

#endif
