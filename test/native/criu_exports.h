/* SPDX-License-Identifier: GPL-2.0-only */
/* What CRIU exports to plugins, as far as this one may use it; and what the part that differs
 * between versions asks of the part that does not. */
#ifndef TEST_NATIVE_CRIU_EXPORTS_H
#define TEST_NATIVE_CRIU_EXPORTS_H

#include <stdbool.h>
#include <stddef.h>

#include "criu_symbols.h"

/* Of the version: how many hooks it has, and the table by whose size the plugin tells them. */
extern const size_t criu_hooks;
/* What becomes of the descriptor that UPDATE_VMA_MAP returns: true: CRIU takes it over and closes
 * it; false: CRIU duplicates it. */
extern const bool criu_takes_mapping_fd;
extern char cr_plugin_ctl[];

/* What the functions of some versions do in all of them. */
int criu_note_plugin(const char *name);
bool criu_claim_plugin(const char *name, size_t length);

#endif
