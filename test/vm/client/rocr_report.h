/* SPDX-License-Identifier: GPL-2.0-only */
/* The log of a client on ROCr, to which rocr_say() complains. */
#ifndef CLIENT_ROCR_REPORT_H
#define CLIENT_ROCR_REPORT_H

#include "report.h"

/* To be called once, before the first use of ROCr. */
struct report *rocr_report_init(const char *path);

#endif
