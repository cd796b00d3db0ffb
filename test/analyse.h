/* SPDX-License-Identifier: GPL-2.0-only */
/* For analysers, which read it before each source: that log_error() returns what it is given. They
 * see one file at a time, and would take a failure that was logged for success. */
#include "criu/log.h"

#define log_error(ret, ...)                           \
	({                                            \
		int given_ = (ret);                   \
		(void)log_error(given_, __VA_ARGS__); \
		given_;                               \
	})
