/* SPDX-License-Identifier: GPL-2.0-only */
/* Waits for the VRAM of a process that has just ended. RESTORE fails without it and cannot be
 * repeated. */
#ifndef AMDGPU_PLUGIN_MEMORY_VRAM_H
#define AMDGPU_PLUGIN_MEMORY_VRAM_H

#include "kernel/kfd.h"
#include "memory/restore_shared.h"
#include "session/restore_session.h"

/* Before RESTORE of @state through /dev/kfd @fd: claims the VRAM of its BOs, and waits until each
 * GPU has as much as all tasks claim. After 10 seconds logs a warning and returns: the driver
 * decides. */
void vram_await(struct restore_shared *shared, const struct restored_task *task, int fd,
		const struct kfd_state *state);
/* After RESTORE: ends the claim. */
void vram_end_claim(struct restore_shared *shared, const struct restored_task *task,
		    const struct kfd_state *state);

#endif
