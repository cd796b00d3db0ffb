/* SPDX-License-Identifier: GPL-2.0-only */
/* Words for numbers, and colours. */
#ifndef AMDGPU_PLUGIN_TOOLS_TEXT_H
#define AMDGPU_PLUGIN_TOOLS_TEXT_H

#include <stdint.h>
#include <stdio.h>

#include "amdgpu_plugin_topology.h"
#include "amdgpu_plugin_util.h"
#include "criu-amdgpu.pb-c.h"

/* Words in a colour, if the stream is a terminal and the user does not refuse colours (NO_COLOR);
 * otherwise "". */
const char *text_colour(FILE *stream, const char *escape);
#define TEXT_GREEN "\033[32m"
#define TEXT_RED   "\033[31m"
#define TEXT_PLAIN "\033[0m"

/* "5.5 MiB" */
const char *text_size(uint64_t bytes, char text[16]);
/* "0000:63:00.0"; "-" if the image does not say. */
const char *text_pci(const KfdDeviceEntry *gpu, char text[PCI_SLOT_TEXT]);
/* "GPU-1901ead3a2ecd4a6", a name for device-map; "-" if the image does not say. */
#define TEXT_UNIQUE_ID 24
const char *text_unique_id(const KfdDeviceEntry *gpu, char text[TEXT_UNIQUE_ID]);
/* "gfx90a", of a gfx_target_version; "-" of 0, if the image does not say. */
const char *text_gfx(uint32_t version, char text[16]);

/* Puts a question mark for each byte that a terminal cannot show: programs choose names. */
void text_make_printable(char *text);

#endif
