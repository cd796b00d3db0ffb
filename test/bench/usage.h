/* SPDX-License-Identifier: GPL-2.0-only */
/* What this process and the machine have used so far. */
#ifndef TEST_BENCH_USAGE_H
#define TEST_BENCH_USAGE_H

/* Processor time of this process. */
double usage_cpu_seconds(void);
/* Of all processors since they were started, but for idling and waiting. What a
 * hypervisor takes away counts. */
double usage_machine_seconds(void);
/* "VmRSS:" or "VmHWM:", in KiB. */
long usage_memory_kib(const char *what);
/* Begins a new peak of "VmHWM:". */
void usage_forget_peak(void);

#endif
