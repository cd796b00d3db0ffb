/* SPDX-License-Identifier: GPL-2.0-only */
/* The processors that the program may use, as a test chooses them. A test program includes this
 * header once. */
#ifndef TEST_UNIT_PROCESSORS_H
#define TEST_UNIT_PROCESSORS_H

#include <sched.h>

/* 0: the kernel does not tell. */
static unsigned int processors;

int sched_getaffinity(pid_t pid, size_t size, cpu_set_t *set)
{
	(void)pid;
	CPU_ZERO_S(size, set);
	for (unsigned int i = 0; i < processors; i++)
		CPU_SET_S(2 * i, size, set);
	return processors ? 0 : -1;
}

#endif
