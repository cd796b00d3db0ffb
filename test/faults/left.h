/* SPDX-License-Identifier: GPL-2.0-only */
/* The memory that the plugin and the libraries below it have, for the injector (inject.c). */
#ifndef TEST_FAULTS_LEFT_H
#define TEST_FAULTS_LEFT_H

#include <stdbool.h>
#include <stdint.h>

/* Whether call @number of calls.h makes or releases memory. */
bool left_tracks(int number);
/* Around such a call, with its arguments. Another thread cannot get the address of a released block
 * before left_end(). @place: where the call is. */
void left_begin(int number, const long *args);
void left_end(int number, const long *args, long result, uint64_t place);
/* Prints what is left, and forgets it. */
void left_report(void);

#endif
