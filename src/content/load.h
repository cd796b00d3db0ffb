/* SPDX-License-Identifier: GPL-2.0-only */
/* The way of a load: reads the ranges of an image, and copies them to BOs. */
#ifndef AMDGPU_PLUGIN_CONTENT_LOAD_H
#define AMDGPU_PLUGIN_CONTENT_LOAD_H

struct transfer;

/* Copies all ranges. Then the BOs are not needed any more. An error is in the plan of the transfer.
 */
void load_copy(struct transfer *transfer);
/* After load_copy(): compares the checksums, and ends the transfer. */
void load_finish(struct transfer *transfer);

#endif
