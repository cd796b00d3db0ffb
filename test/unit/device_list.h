/* SPDX-License-Identifier: GPL-2.0-only */
/* Checks the callers of libdrm_amdgpu's functions that use its list of devices. Only drm_calls.h
 * and fake_gpu.h include this, behind their struct gpu. */
#ifndef TEST_UNIT_DEVICE_LIST_H
#define TEST_UNIT_DEVICE_LIST_H

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>

/* Only one thread at a time may use the library's list of devices. */
static inline bool enter_list(void)
{
	gpu.violations += atomic_fetch_add(&gpu.in_list, 1) != 0;
	(void)sched_yield();
	return true;
}

static inline void leave_list(const bool *entered)
{
	gpu.in_list -= *entered;
}

#define IN_LIST __attribute__((cleanup(leave_list), unused)) bool entered = enter_list()

#endif
