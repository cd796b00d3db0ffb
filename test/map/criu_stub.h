/* SPDX-License-Identifier: GPL-2.0-only */
/* CRIU's log in programs that link the plugin without CRIU. */
#ifndef TEST_MAP_CRIU_STUB_H
#define TEST_MAP_CRIU_STUB_H

/* The levels of CRIU: 1 errors, 2 warnings, 3 information, 4 debugging. 0 (initial): nothing. */
void criu_stub_set_log_level(unsigned int level);

#endif
