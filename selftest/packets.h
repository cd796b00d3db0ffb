/* SPDX-License-Identifier: GPL-2.0-only */
/* A compute queue whose packets run no kernel, for any GPU. Each packet waits for the one before,
 * and the first one for the CPU, so all of them are in flight until a verification. */
#ifndef SELFTEST_PACKETS_H
#define SELFTEST_PACKETS_H

#include "gpus.h"
#include "report.h"

#define PACKETS_COUNT 16u

struct packets;

/* A failure is reported, and *ret_packets set. */
int packets_new(struct report *report, const struct gpu *gpu, struct packets **ret_packets);
/* @packets may be NULL here and below. */
void packets_free(struct packets *packets);

/* Lets the packets go, and sees that each is complete once and that the last one's event arrives.
 */
int packets_verify(struct packets *packets);
/* Puts new packets into the queue. */
int packets_begin(struct packets *packets);

#endif
