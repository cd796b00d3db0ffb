/* SPDX-License-Identifier: GPL-2.0-only */
/* Two processes that share buffers, in place of a job. */
#ifndef SELFTEST_SHARE_H
#define SELFTEST_SHARE_H

#include "report.h"

/* Forks both, on the first two GPUs of @choice, or on its only GPU, and serves the signals of
 * serve.h. They share what ring.h describes. Must be called before the first thread starts. Return:
 * main()'s status. */
int share_run(struct report *report, const char *choice);

#endif
