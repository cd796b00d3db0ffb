/* SPDX-License-Identifier: GPL-2.0-only */
/* For functions that fill or compare memory of a test by itself. No other thread uses that memory
 * by the same addresses, so the thread sanitizer would find nothing, and takes most of the time. */
#ifndef TEST_LIB_NOT_SHARED_H
#define TEST_LIB_NOT_SHARED_H

#define NOT_SHARED __attribute__((no_sanitize("thread")))

#endif
