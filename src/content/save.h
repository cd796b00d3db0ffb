/* SPDX-License-Identifier: GPL-2.0-only */
/* The way of a save: copies ranges from BOs, and writes them to an image. */
#ifndef AMDGPU_PLUGIN_CONTENT_SAVE_H
#define AMDGPU_PLUGIN_CONTENT_SAVE_H

struct transfer;

/* Copies all ranges. Then the BOs are not needed any more. An error is in the plan of the transfer.
 */
void save_copy(struct transfer *transfer);
/* After save_copy(): waits for ranges that are kept and not written yet, ends the image, and ends
 * the transfer. */
void save_finish(struct transfer *transfer);

#endif
