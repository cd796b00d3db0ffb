/* SPDX-License-Identifier: GPL-2.0-only */
/* The log of programs that link the plugin without CRIU. */
#ifndef TEST_MAP_HOST_H
#define TEST_MAP_HOST_H

/* As CRIU counts: 1 errors, 2 warnings, 3 information, 4 debugging. 0, as at first: nothing. */
void host_log_up_to(unsigned int level);

#endif
