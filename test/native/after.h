/* SPDX-License-Identifier: GPL-2.0-only */
/* What CRIU does after it has unloaded the plugin: it lets the tasks go, and writes its statistics.
 * A plugin that has contents to write then writes them (include/criu/after.h). */
#ifndef TEST_NATIVE_AFTER_H
#define TEST_NATIVE_AFTER_H

#include <stdbool.h>

#include "workload.h"

/* Whether the images of a dump have a state image for each task. */
bool after_have_state(int image_dir);
/* Whether the plugin waits for the statistics. */
bool after_is_awaited(void);
/* Ends a dump for which the plugin waits: 0 or -errno. No state image may be there yet, and the
 * tasks must run. Until the plugin has written everything, the buffers of @workload that are mapped
 * for the CPU begin with other bytes, which no image may have; NULL: of several tasks. With
 * AMDGPU_HOST_FULL in the environment, the images take no more bytes meanwhile. With
 * AMDGPU_HOST_HELD, they take none from the start of the dump until the plugin waits for them, and
 * no state image may be there by then. Prints "behind". */
int after_write_statistics(int image_dir, const struct workload *workload);

#endif
